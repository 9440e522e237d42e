// SPDX-License-Identifier: Apache-2.0

package source

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// demands is what a source demands of signatures, with the Secrets that its trust
// is in; nil for nothing.
func demands(source v1alpha1.Source) (demand any, from []*v1alpha1.LocalReference) {
	return nil, nil
}

// demandsSignature tells whether one of the sources does.
func demandsSignature(spec *v1alpha1.BundleSourceSpec) bool {
	return slices.ContainsFunc(spec.Sources, func(source v1alpha1.Source) bool {
		demand, _ := demands(source)
		return demand != nil
	})
}

// trust identifies by what a source accepts signatures: another demand, or another
// content of the Secrets, is another trust. Of the contents it tells nothing. It is
// "" where no signature is demanded.
func (s *state) trust(source v1alpha1.Source) string {
	demand, from := demands(source)
	if demand == nil {
		return ""
	}
	hash := sha256.New()
	_ = json.NewEncoder(hash).Encode(demand) // plain structs encode, and a hash takes all
	for _, ref := range from {
		if ref != nil {
			fmt.Fprintln(hash, ref.Name, s.secrets.seen[seenObject{"Secret", ref.Name}])
		}
	}
	return fmt.Sprintf("sha256:%x", hash.Sum(nil))
}
