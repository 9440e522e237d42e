// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/satchel-dev/satchel/internal/artifact"
)

// TestPackIsReproducible: one packer packs trees of many sizes at the same time, after others that failed, into the same bytes.
func TestPackIsReproducible(t *testing.T) {
	packer := &artifact.Packer{}
	for _, size := range []int{0, 10, 100 << 10, 3 << 20} {
		tree := files(map[string]string{"a/text": strings.Repeat("kind: ConfigMap\n", size/16), "noise": string(noise(1, size)["noise"].Data)})
		want := canonical(t, tree)
		var first bytes.Buffer
		sums, err := packer.Pack(t.Context(), &first, tree)
		if err != nil {
			t.Fatal(err)
		}
		packed := first.Bytes()
		unpacked, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			t.Fatal(err)
		}
		if content, err := io.ReadAll(unpacked); err != nil || !bytes.Equal(content, want) {
			t.Fatalf("%d bytes: %d of %d bytes are in it: %v", size, len(content), len(want), err)
		}
		if "sha256:"+sums.Identity != digestOf(want) || sums.Size == 0 {
			t.Errorf("%d bytes: the sums are %+v", size, sums)
		}
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				broken := &failing{left: size / 2}
				if _, err := packer.Pack(t.Context(), broken, tree); !errors.Is(err, errFull) {
					t.Errorf("%d bytes, failing: %v", size, err)
				}
				var again bytes.Buffer
				sums2, err := packer.Pack(t.Context(), &again, tree)
				if err != nil || sums2 != sums || "sha256:"+sums2.Digest != digestOf(again.Bytes()) || !bytes.Equal(again.Bytes(), packed) {
					t.Errorf("%d bytes: %+v instead of %+v: %v", size, sums2, sums, err)
				}
			})
		}
		group.Wait()
	}
}

var errFull = errors.New("full")

// failing fails once more bytes than allowed were written.
type failing struct{ left int }

func (f *failing) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

// TestPackEndsWithItsContext, and writes nothing after it has returned.
func TestPackEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out := &bytes.Buffer{}
	_, err := new(artifact.Packer).Pack(ctx, out, cancellingFS{noise(1, 4<<20), cancel})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	out.WriteString("used by others") // the race detector reports a write at the same time
}
