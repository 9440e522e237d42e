// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/format"
)

// MaxBytes bounds the data of a revision.
const MaxBytes = 512 << 10

// DigestAnnotation holds the whole digest of a revision at the objects that it is stored in: names hold only a part.
const DigestAnnotation = "satchel.dev/rollout-revision-digest"

// digitsOfName are the hexadecimal digits of a digest that name a revision.
const digitsOfName = 10

// Data is all that the BundleDeployments of a revision are rendered from, beside facts of the clusters.
type Data struct {
	// Format is that of the stored revision. It is no part of the revision.
	Format string `json:"format,omitempty"`
	// Content is the digest of the content of the source.
	Content string `json:"content"`
	// Ignore is spec.ignore of the source.
	Ignore string `json:"ignore,omitempty"`
	// Template, Variables and Overrides are those of the spec.
	Template  v1alpha1.RolloutTemplate   `json:"template"`
	Variables []v1alpha1.RolloutVariable `json:"variables,omitempty"`
	Overrides []v1alpha1.RolloutOverride `json:"overrides,omitempty"`
	// Inputs are Secrets and ConfigMaps that all clusters share, as they were when the revision was made.
	Inputs []FrozenInput `json:"inputs,omitempty"`
	// Sources are pinned by digest. They do not count in the digest of the revision: another commit with the same content is no
	// other revision.
	Sources []v1alpha1.Source `json:"sources,omitempty"`
}

// FrozenInput is a Secret or ConfigMap of which a revision has a copy.
type FrozenInput struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Digest of its content; empty if it did not exist, which only an optional one may.
	Digest string `json:"digest,omitempty"`
	// Required tells that the template, or an override, does not let it be missing. It is no part of the revision.
	Required bool `json:"-"`
}

// Digest identifies the revision: see Name.
func (r Data) Digest() (string, error) {
	r.Format, r.Sources = "", nil
	return DigestOf(r)
}

// Name is the name of a revision with a digest: its first 10 hexadecimal digits. Objects have the full digest beside it.
func Name(digest string) string {
	digits := strings.TrimPrefix(digest, "sha256:")
	return digits[:min(digitsOfName, len(digits))]
}

// Encode is the revision as it is stored.
func (r Data) Encode() ([]byte, error) {
	r.Format = format.Revision.Name()
	text, err := canonical(r)
	if err != nil {
		return nil, fmt.Errorf("encoding the revision: %w", err)
	}
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("the sources, the template, the variables and the overrides have %d bytes, more than %d: make them smaller, for instance with values in ConfigMaps",
			len(text), MaxBytes)
	}
	return text, nil
}

// Decode reads a stored revision, and verifies that it is the one with the digest. The error of one that another version of Satchel
// wrote is a *format.AnotherVersionError.
func Decode(data []byte, digest string) (Data, error) {
	if len(data) > MaxBytes {
		return Data{}, errors.New("the stored revision is larger than any that was written")
	}
	var of struct{ Format string }
	if err := json.Unmarshal(data, &of); err != nil {
		return Data{}, fmt.Errorf("decoding the stored revision: %w", err)
	}
	switch err := format.Revision.CheckName(of.Format); {
	case ReasonOf(err) == v1alpha1.ReasonWrittenByAnotherVersion:
		return Data{}, fmt.Errorf("%w: run that version; the BundleDeployments stay as they are", err)
	case err != nil:
		return Data{}, fmt.Errorf("it was changed: %w", err)
	}
	var r Data
	if err := json.Unmarshal(data, &r); err != nil {
		return Data{}, fmt.Errorf("decoding the stored revision: %w", err)
	}
	stored, err := r.Digest()
	if err != nil {
		return Data{}, err
	}
	if stored != digest {
		return Data{}, fmt.Errorf("it was changed: the stored revision has the digest %s, not %s", stored, digest)
	}
	return r, nil
}

// ReasonOf is the reason for an error of Decode.
func ReasonOf(err error) string {
	var another *format.AnotherVersionError
	if errors.As(err, &another) {
		return v1alpha1.ReasonWrittenByAnotherVersion
	}
	return v1alpha1.ReasonRevisionCollision
}
