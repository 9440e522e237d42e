// SPDX-License-Identifier: Apache-2.0

package cosign

import (
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/types"
)

func verifier(t testing.TB, o Options) *Verifier {
	t.Helper()
	v, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// manifestBytes is a manifest as it stands.
type manifestBytes struct {
	raw       []byte
	mediaType types.MediaType
}

func (m manifestBytes) RawManifest() ([]byte, error)        { return m.raw, nil }
func (m manifestBytes) MediaType() (types.MediaType, error) { return m.mediaType, nil }
