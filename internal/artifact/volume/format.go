// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"errors"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/format"
)

// Cut returns what follows the first line of a file. The reason of the error is fetch.WrittenByAnotherVersion for a file of this kind
// with another version, and fetch.InvalidContent for any other one.
func Cut(f format.Format, content []byte) (rest []byte, err error) {
	rest, err = f.Cut(content)
	var another *format.AnotherVersionError
	switch {
	case errors.As(err, &another):
		return nil, fetch.Errorf(fetch.WrittenByAnotherVersion, "a stored file cannot be used: %w", err)
	case err != nil:
		return nil, fetch.Errorf(fetch.InvalidContent, "a stored file cannot be used: %w", err)
	}
	return rest, nil
}
