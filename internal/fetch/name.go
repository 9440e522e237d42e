// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxNameBytes is the longest file name that common file systems store.
const maxNameBytes = 255

// cleanName returns the canonical form of a path from outside: relative, "/" between the parts, "." for the folder
// itself. A leading "./" and a trailing "/" are taken off, as tar writes both; anything else that is not canonical
// or not safe on every file system is an error that does not repeat the name.
func cleanName(name string) (string, error) {
	if name == "" {
		return "", errors.New("its name is empty")
	}
	if strings.HasPrefix(name, "/") {
		return "", errors.New("its name is an absolute path")
	}
	if !utf8.ValidString(name) {
		return "", errors.New("its name is not valid UTF-8")
	}
	clean := strings.TrimSuffix(name, "/")
	for strings.HasPrefix(clean, "./") {
		clean = clean[len("./"):]
	}
	if clean == "." {
		return clean, nil
	}
	for part := range strings.SplitSeq(clean, "/") {
		if err := checkPart(part); err != nil {
			return "", err
		}
	}
	return clean, nil
}

// checkPart refuses what must not be a file name.
func checkPart(part string) error {
	switch {
	case part == "" || part == ".":
		return errors.New("its name has an empty part")
	case part == "..":
		return errors.New("its name leads out of the archive")
	case part[0] == '-':
		return errors.New("its name begins with a dash")
	case len(part) > maxNameBytes:
		return fmt.Errorf("a part of its name has more than %d bytes", maxNameBytes)
	case strings.Contains(part, `\`):
		return errors.New("its name has a backslash")
	case len(part) > 1 && part[1] == ':' && isLetter(part[0]):
		return errors.New("its name begins with a drive letter")
	}
	for _, r := range part {
		if !unicode.IsGraphic(r) {
			return errors.New("its name has a control or invisible character")
		}
	}
	return nil
}

func isLetter(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z'
}
