// SPDX-License-Identifier: Apache-2.0

package lean

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/satchel-dev/satchel/internal/catalog"
)

// mostParsed bounds a parsed package. Those of the largest public catalog have at most a tenth of that. It bounds what each
// resolution decodes and goes through.
const mostParsed = 2 << 20

// Parsed is what resolution reads of a package.
type Parsed struct {
	// Package is a catalog.Package as JSON; empty if there is a problem.
	Package []byte
	// Problem is why the package is left out; "" for none.
	Problem string
}

// Parse reads the blobs of a package, one in each line. That takes seconds and several times the memory of the blobs: a controller
// has it done in a worker process. An error means that the blobs are not JSON.
func Parse(name string, blobs io.Reader) (Parsed, error) {
	builder := NewBuilder(name, DefaultLimits())
	lines := bufio.NewReaderSize(blobs, 64<<10)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return Parsed{}, fmt.Errorf("reading the package: %w", err)
		}
		last := err != nil
		if len(bytes.TrimSpace(line)) > 0 {
			var blob struct{ Schema string }
			if err := json.Unmarshal(line, &blob); err != nil {
				return Parsed{}, fmt.Errorf("line %d of the package: %w", number, err)
			}
			builder.Add(Blob{Path: name, Number: number, Schema: blob.Schema, Package: name, JSON: line})
		}
		if last {
			break
		}
	}
	built, err := builder.Package()
	switch {
	case err != nil:
		return Parsed{Problem: err.Error()}, nil
	case built == nil: // blobs of other schemas only
		built = &catalog.Package{Name: name}
	}
	encoded, err := json.Marshal(built)
	if err != nil {
		return Parsed{}, fmt.Errorf("encoding the package: %w", err)
	}
	if len(encoded) > mostParsed {
		return Parsed{Problem: fmt.Sprintf("what resolution reads of it has %d bytes, more than %d: divide the package, or remove old bundles from the catalog",
			len(encoded), mostParsed)}, nil
	}
	return Parsed{Package: encoded}, nil
}
