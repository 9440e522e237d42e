// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package packed

import (
	"errors"
	"os"
)

// nameless is known on Linux only.
func nameless(string) (write, read *os.File, err error) { return nil, nil, errors.ErrUnsupported }
