// SPDX-License-Identifier: Apache-2.0

package source

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/sourcefetch/credentials"
)

// demands returns the verification settings of a source, with the Secrets that hold its
// trust; nil for none.
func demands(source v1alpha1.Source) (demand any, from []*v1alpha1.LocalReference) {
	switch {
	case source.Image != nil && source.Image.Verify != nil:
		v := source.Image.Verify
		return v, []*v1alpha1.LocalReference{v.SecretRef, v.TrustedRootSecretRef}
	case source.Git != nil && source.Git.Verify != nil:
		v := source.Git.Verify
		return v, []*v1alpha1.LocalReference{&v.SecretRef}
	case source.HTTP != nil && source.HTTP.Verify != nil:
		v := source.HTTP.Verify
		return v, []*v1alpha1.LocalReference{v.SecretRef, v.TrustedRootSecretRef}
	}
	return nil, nil
}

// trust is a digest of the trust settings of a source: the verification settings and
// the versions of the Secrets. It does not reveal their contents. It is "" if no
// signature is required.
func (s *state) trust(source v1alpha1.Source) string {
	demand, from := demands(source)
	if demand == nil {
		return ""
	}
	hash := sha256.New()
	_ = json.NewEncoder(hash).Encode(demand) // plain structs can be encoded, and writes to a hash do not fail
	for _, ref := range from {
		if ref != nil {
			fmt.Fprintln(hash, ref.Name, s.secrets.Seen[credentials.SeenObject{Kind: "Secret", Name: ref.Name}])
		}
	}
	return fmt.Sprintf("sha256:%x", hash.Sum(nil))
}
