// SPDX-License-Identifier: Apache-2.0

// Package format numbers the layouts of what Satchel stores, in files and in the API, so that what another version wrote is told
// apart from what is damaged. The table of all of them is in table.go.
package format

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// Format is the layout of one kind of stored content. Its version changes with the layout, and with the meaning of what is stored.
type Format struct {
	// Kind is unique.
	Kind    string
	Version int
	// Where it is stored.
	Where string
	// Otherwise says what is done with content of another version.
	Otherwise string
}

// prefix begins the first line of files and the purposes of digests.
const (
	prefix        = "satchel "
	purposePrefix = "satchel.dev/"
)

// String names the format, as in "snapshot 2".
func (f Format) String() string { return f.Kind + " " + strconv.Itoa(f.Version) }

// Line is the first line of a file, with its end.
func (f Format) Line() string { return prefix + f.String() + "\n" }

// Prepend returns the content of a file with its first line.
func (f Format) Prepend(content []byte) []byte { return append([]byte(f.Line()), content...) }

// Cut returns what follows the first line of a file. The error is an *AnotherVersionError for a file of this kind with another
// version, and a *DamagedError for any other one.
func (f Format) Cut(content []byte) (rest []byte, err error) {
	first, rest, ended := bytes.Cut(content, []byte("\n"))
	name, found := bytes.CutPrefix(first[:min(len(first), 64)], []byte(prefix))
	kind, version, _ := strings.Cut(string(name), " ")
	if !ended || !found {
		return nil, &DamagedError{Format: f}
	}
	return rest, f.check(kind, version)
}

// textEnd separates the name of the format from the content of a field.
const textEnd = ":"

// Name is the format as a value of a field beside the content.
func (f Format) Name() string { return f.Kind + "/" + strconv.Itoa(f.Version) }

// CheckName compares such a value with the format. The errors are those of Cut.
func (f Format) CheckName(name string) error {
	kind, version, _ := strings.Cut(name, "/")
	return f.check(kind, version)
}

// Text is the content of a field with the name of its format before it.
func (f Format) Text(content string) string { return f.Name() + textEnd + content }

// CutText returns what Text was given. The errors are those of Cut.
func (f Format) CutText(text string) (content string, err error) {
	name, content, found := strings.Cut(text, textEnd)
	if !found {
		return "", &DamagedError{Format: f}
	}
	return content, f.CheckName(name)
}

// check compares what content says about itself with the format.
func (f Format) check(kind, version string) error {
	number, err := strconv.Atoi(version)
	switch {
	case err != nil || kind != f.Kind:
		return &DamagedError{Format: f}
	case number != f.Version:
		return &AnotherVersionError{Format: f, Found: number}
	}
	return nil
}

// Purpose is the first part of what a digest or a signature is computed of: with another version, all of them are others.
func (f Format) Purpose(of string) string {
	return purposePrefix + of + "/v" + strconv.Itoa(f.Version)
}

// AnotherVersionError says that stored content has a format of another version of Satchel.
type AnotherVersionError struct {
	Format Format
	Found  int
}

// Error implements error.
func (e *AnotherVersionError) Error() string {
	return fmt.Sprintf("it was written by another version of Satchel: it has the format %s %d, and this version reads %s", e.Format.Kind, e.Found, e.Format)
}

// DamagedError says that stored content is not of the kind that it should be.
type DamagedError struct{ Format Format }

// Error implements error.
func (e *DamagedError) Error() string { return "it is damaged: it is not a whole " + e.Format.Kind }
