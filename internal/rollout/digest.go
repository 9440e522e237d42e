// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/rollout/revision"
)

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
	UID       string `json:"uid"`
	Wave      string `json:"wave"`
	When      string `json:"when"`
	Revision  string `json:"revision"`
	Current   string `json:"current"`
	Run       int64  `json:"run"`
}

// digest is what a BundleApproval has to name.
func (p wavePlan) digest() string {
	p.Kind = "wave"
	digest, err := revision.DigestOf(p)
	if err != nil {
		return "" // strings and a number are always JSON
	}
	return digest
}

// WavePlan is the digest that a BundleApproval of a wave has to name, to start its clusters (BeforeWave) or to complete it
// (AfterWave). uid is that of the rollout. update and current are digests of revisions; current is empty if there is none. run is status.run.
func WavePlan(namespace, rollout, uid, wave string, when v1alpha1.WaveApproval, update, current string, run int64) string {
	plan := wavePlan{Namespace: namespace, Rollout: rollout, UID: uid, Wave: wave, When: string(when), Revision: update, Current: current, Run: run}
	return plan.digest()
}

// RemovalPlan is the digest that a BundleApproval of a removal has to name: it is for these clusters and no other.
func RemovalPlan(namespace, rollout, uid string, clusters []string) string {
	names := slices.Sorted(slices.Values(clusters))
	digest, err := revision.DigestOf(map[string]any{"kind": "removal", "namespace": namespace, "rollout": rollout, "uid": uid, "clusters": names})
	if err != nil {
		return "" // strings are always JSON
	}
	return digest
}
