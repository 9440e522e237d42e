// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"bytes"
	"strconv"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// Format is the layout of a kind of file, which its first line names. The version changes with the layout: a controller of another
// version then says so, instead of taking the file for damaged.
type Format struct {
	Kind    string
	Version int
}

// formatPrefix begins the first line of all files.
const formatPrefix = "satchel "

// Line is the first line of a file, with its end.
func (f Format) Line() string { return formatPrefix + f.String() + "\n" }

// String names the format, as in "snapshot 2".
func (f Format) String() string { return f.Kind + " " + strconv.Itoa(f.Version) }

// Prepend returns the content of a file with its first line.
func (f Format) Prepend(content []byte) []byte { return append([]byte(f.Line()), content...) }

// Cut returns what follows the first line. The reason of the error is fetch.WrittenByAnotherVersion for a file of the same kind with
// another version, and fetch.InvalidContent for any other one.
func (f Format) Cut(content []byte) (rest []byte, err error) {
	if rest, found := bytes.CutPrefix(content, []byte(f.Line())); found {
		return rest, nil
	}
	first, _, ended := bytes.Cut(content[:min(len(content), 64)], []byte("\n"))
	version, ofKind := bytes.CutPrefix(first, []byte(formatPrefix+f.Kind+" "))
	if number, err := strconv.Atoi(string(version)); ended && ofKind && err == nil {
		return nil, fetch.Errorf(fetch.WrittenByAnotherVersion, "the file was written by another version of the controller: it has the format %s %d, and this version reads %s",
			f.Kind, number, f)
	}
	return nil, fetch.Errorf(fetch.InvalidContent, "the file is damaged: it is not a whole %s", f.Kind)
}
