// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"testing"

	"github.com/satchel-dev/satchel/internal/catalog/fbc"
	"github.com/satchel-dev/satchel/internal/catalog/index"
	"github.com/satchel-dev/satchel/internal/format"
	"github.com/satchel-dev/satchel/tests/formats"
)

// The example has the index and the streams that it points into.
func TestF56Index(t *testing.T) {
	b := build(t, shop(), fbc.DefaultLimits())
	encoded, err := b.index.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, more := range [][]byte{b.all.Bytes(), b.lean.Bytes(), formats.Shape(index.Index{})} {
		encoded = append(encoded, more...)
	}
	formats.Golden(t, format.Index, encoded)
}
