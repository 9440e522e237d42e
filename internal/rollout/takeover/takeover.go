// SPDX-License-Identifier: Apache-2.0

// Package takeover decides whether a rollout may take over the BundleDeployments of a former rollout of the same name, which was deleted
// with the policy Orphan. Else a rollout with waves that need an approval could be deleted, and created without approvals.
//
// The gates of a rollout are what the admission policy satchel-rollouts lets only approvers change: the waves, and the entries of
// clusters but for annotations. While a rollout has a wave that needs an approval, each of its BundleDeployments is marked with its UID and
// its gates. The first line that holds decides:
//
//	no BundleDeployment has the mark of another rollout            go on
//	all marks have the gates of this rollout                       go on
//	every cluster of this rollout needs an approval before it begins  go on
//	an approval of exactly this takeover exists                    go on
//	else                                                           wait for one
package takeover

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/rollout"
	"github.com/satchel-dev/satchel/internal/rollout/revision"
)

// gates are the guarded fields of a rollout.
type gates struct {
	Waves     []wave                     `json:"waves"`
	Unmatched v1alpha1.UnmatchedClusters `json:"unmatched"`
	Clusters  []v1alpha1.RolloutClusters `json:"clusters"`
}

type wave struct {
	Name     string                `json:"name"`
	Selector metav1.LabelSelector  `json:"selector"`
	Approval v1alpha1.WaveApproval `json:"approval"`
}

// digest identifies the gates of a rollout.
func digest(spec *v1alpha1.BundleRolloutSpec) (string, error) {
	of := gates{Unmatched: cmp.Or(spec.Strategy.UnmatchedClusters, v1alpha1.UnmatchedLastWave)}
	for i := range spec.Strategy.Waves {
		one := &spec.Strategy.Waves[i]
		of.Waves = append(of.Waves, wave{one.Name, one.Selector, cmp.Or(one.Approval, v1alpha1.WaveApprovalNone)})
	}
	for i := range spec.Clusters {
		one := *spec.Clusters[i].DeepCopy()
		if one.Cluster != nil {
			one.Cluster.Annotations = nil
		}
		of.Clusters = append(of.Clusters, one)
	}
	found, err := revision.DigestOf(of)
	if err != nil {
		return "", fmt.Errorf("computing the gates of the rollout: %w", err)
	}
	return found, nil
}

// isGuarded tells whether a wave needs an approval.
func isGuarded(spec *v1alpha1.BundleRolloutSpec) bool {
	return slices.ContainsFunc(spec.Strategy.Waves, func(w v1alpha1.RolloutWave) bool {
		return cmp.Or(w.Approval, v1alpha1.WaveApprovalNone) != v1alpha1.WaveApprovalNone
	})
}

// allWait tells whether every cluster needs an approval before it begins.
func allWait(spec *v1alpha1.BundleRolloutSpec) bool {
	waves := spec.Strategy.Waves
	if len(waves) == 0 || slices.ContainsFunc(waves, func(w v1alpha1.RolloutWave) bool {
		return w.Approval != v1alpha1.WaveApprovalBefore && w.Approval != v1alpha1.WaveApprovalBoth
	}) {
		return false
	}
	last := &waves[len(waves)-1].Selector
	return spec.Strategy.UnmatchedClusters == v1alpha1.UnmatchedExclude || len(last.MatchLabels) == 0 && len(last.MatchExpressions) == 0
}

// Mark is the value of the annotation satchel.dev/rollout-gates at the BundleDeployments of a rollout; empty if no wave needs an approval.
func Mark(of *v1alpha1.BundleRollout) (string, error) {
	if !isGuarded(&of.Spec) {
		return "", nil
	}
	own, err := digest(&of.Spec)
	return string(of.UID) + "/" + own, err
}

// IsOwn tells whether a mark is one of this rollout.
func IsOwn(of *v1alpha1.BundleRollout, mark string) bool {
	uid, _, _ := strings.Cut(mark, "/")
	return uid != "" && uid == string(of.UID)
}

// Decision is what a rollout does with the BundleDeployments that are there.
type Decision struct {
	// Clusters have a BundleDeployment with the mark of a former rollout.
	Clusters []string
	// Plan is what an approval has to name; empty if none is needed.
	Plan string
	// Approval is the one that permits the takeover, and Denied tells that one denies it.
	Approval string
	Denied   bool
}

// Waits tells whether the rollout has to wait for an approver.
func (d Decision) Waits() bool { return d.Plan != "" && d.Approval == "" }

// Decide decides by the marks of the BundleDeployments of the rollout, by cluster.
func Decide(of *v1alpha1.BundleRollout, marks map[string]string, approvals []rollout.Approval, now time.Time) (Decision, error) {
	own, err := digest(&of.Spec)
	if err != nil {
		return Decision{}, err
	}
	var d Decision
	var former []string
	for cluster, mark := range marks {
		if mark == "" || IsOwn(of, mark) {
			continue
		}
		if _, gates, _ := strings.Cut(mark, "/"); gates != own {
			former = append(former, mark)
		}
		d.Clusters = append(d.Clusters, cluster)
	}
	slices.Sort(d.Clusters)
	slices.Sort(former)
	if len(former) == 0 || allWait(&of.Spec) {
		return d, nil
	}
	d.Plan, err = revision.DigestOf(map[string]any{
		"kind": "takeover", "namespace": of.Namespace, "rollout": of.Name, "uid": of.UID, "former": slices.Compact(former), "gates": own,
	})
	if err != nil {
		return Decision{}, err
	}
	for _, approval := range approvals {
		switch {
		case approval.Plan != d.Plan:
		case approval.Denies:
			d.Approval, d.Denied = "", true
			return d, nil
		case !approval.Consumed && (approval.Expires.IsZero() || approval.Expires.After(now)):
			d.Approval = approval.Name
		}
	}
	return d, nil
}
