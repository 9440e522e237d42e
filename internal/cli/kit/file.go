// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"
	"io"
	"os"
)

// ReadFile reads the file of a flag, or standard input where the file is "-". The name is what errors call it.
func ReadFile(flag, file string, in io.Reader, most int64) (name string, data []byte, err error) {
	name = file
	if file == "-" {
		name = "standard input"
	} else {
		opened, err := os.Open(file)
		if err != nil {
			return name, nil, fmt.Errorf("reading %s: %w", flag, err)
		}
		defer opened.Close() //nolint:errcheck // opened for reading only: closing cannot lose anything
		in = opened
	}
	data, err = io.ReadAll(io.LimitReader(in, most+1))
	switch {
	case err != nil:
		return name, nil, fmt.Errorf("reading %s from %s: %w", flag, name, WithoutPath(err))
	case int64(len(data)) > most:
		return name, nil, fmt.Errorf("reading %s from %s: it is larger than %d MiB", flag, name, most>>20)
	}
	return name, data, nil
}
