// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// canonical is the one JSON text of a value: sorted keys, no blanks, numbers as the API server stores them.
func canonical(value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var plain any
	if err := utiljson.Unmarshal(text, &plain); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(plain); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(out.Bytes()), nil
}

// digestOf is the SHA-256 digest of the canonical JSON of a value, as sha256: and 64 hexadecimal digits.
func digestOf(value any) (string, error) {
	text, err := canonical(value)
	if err != nil {
		return "", fmt.Errorf("computing a digest: %w", err)
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// Approval times of a wave, which are part of its plan: an approval to start a wave does not complete it.
const (
	beforeWave = string(v1alpha1.WaveApprovalBefore)
	afterWave  = string(v1alpha1.WaveApprovalAfter)
)

// wavePlan is what an approval of a wave is for: one transition of one wave in one run, to exactly these contents.
type wavePlan struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Rollout   string `json:"rollout"`
	Wave      string `json:"wave"`
	When      string `json:"when"`
	Revision  string `json:"revision"`
	Current   string `json:"current"`
	Run       int64  `json:"run"`
}

// digest is what a BundleApproval has to name.
func (p wavePlan) digest() string {
	p.Kind = "wave"
	digest, err := digestOf(p)
	if err != nil {
		return "" // strings and a number are always JSON
	}
	return digest
}

// RemovalPlan is the digest that a BundleApproval of a removal has to name: it is for these clusters and no other.
func RemovalPlan(namespace, rollout string, clusters []string) string {
	names := slices.Sorted(slices.Values(clusters))
	digest, err := digestOf(map[string]any{"kind": "removal", "namespace": namespace, "rollout": rollout, "clusters": names})
	if err != nil {
		return "" // strings are always JSON
	}
	return digest
}
