// SPDX-License-Identifier: Apache-2.0

// Package lean collects what resolution reads of one package, from the blobs of a catalog in JSON. Package fbc reads catalogs as
// they are published, which needs YAML and the patterns of .indexignore; this one does not.
package lean

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Blob is one JSON value or YAML document of a catalog.
type Blob struct {
	Path    string // of its file
	Number  int    // in its file, from 1
	Schema  string
	Package string // which it belongs to: the name of an olm.package, else the field package
	Name    string
	JSON    []byte // valid until the visit ends
	// Problem says why schema, package or name cannot be read. It is nil if they can.
	Problem error
}

// Where names the blob in messages.
func (b Blob) Where() string { return fmt.Sprintf("%s, blob %d", b.Path, b.Number) }

// Limits bound what is read of a catalog. Exceeding one of the first four refuses the catalog, the others only the
// package.
type Limits struct {
	Bytes    int64 // of all files
	Blob     int64 // bytes of one JSON value or YAML document
	Packages int
	Bundles  int // of all packages

	Entries int // of one channel
	Skips   int // of one entry of a channel
}

// DefaultLimits are several times what public catalogs hold.
func DefaultLimits() Limits {
	return Limits{
		Bytes: 512 << 20, Blob: 16 << 20, Packages: 20_000, Bundles: 200_000,
		Entries: 10_000, Skips: 1_000,
	}
}

// LimitError is a catalog or package that exceeds one of its Limits.
type LimitError struct {
	What string
	Most int64
}

// Error names the limit.
func (e *LimitError) Error() string { return fmt.Sprintf("more than %d %s", e.Most, e.What) }

// Unmarshal reads a blob as encoding/json does: names of fields in upper and lower case are the same.
func Unmarshal(text []byte, into any) error {
	err := json.Unmarshal(text, into)
	var mismatch *json.UnmarshalTypeError
	switch {
	case !errors.As(err, &mismatch):
		return err
	case mismatch.Field == "":
		return fmt.Errorf("a JSON object is expected, not: %s", mismatch.Value)
	}
	return fmt.Errorf("the field %s has the wrong type: %s", strings.ToLower(mismatch.Field), mismatch.Value)
}
