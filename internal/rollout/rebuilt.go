// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// Rebuilt is a cluster that is another one than the one that its objects are in.
type Rebuilt struct {
	Cluster string
	// Replace tells to delete its BundleDeployment without a removal of its objects: it is created again with the next start.
	Replace bool
	// Remedy says what to do, or what happens.
	Remedy string
}

// mostReplaced is how many clusters are replaced in one decision.
const mostReplaced = 50

// What to do about a cluster that was rebuilt. They fit into a message of status.worst.
const (
	remedyReplaced  = "it was rebuilt: its BundleDeployment is replaced, and objects on the former cluster are not removed"
	remedySuspended = "it was rebuilt: its BundleDeployment is replaced when the rollout is not suspended any more and all clusters could be listed"
	remedyAbandon   = "it was rebuilt, and nothing is changed on it: set spec.removal.whenClusterGone to Abandon, and its BundleDeployment is replaced; objects on the former cluster are not removed then"
	remedyByHand    = "it is another cluster than before, and nothing is changed on it: restore the kubeconfig; or, if the former cluster is gone, set " +
		v1alpha1.AbandonAnnotation + "=now on its BundleDeployment and delete that: it is created again"
)

// findRebuilt finds clusters that are another one than the one that their objects are in, and decides which are replaced:
//
//	the object that stands for it is the same, or none is known    held: the kubeconfig may be wrong
//	Abandon is not set                                             held
//	suspended, or the clusters could not be listed                 held for now
//	else                                                           replaced
//
// One that a user suspended, that has two names, or for which no BundleDeployment can be rendered, is not replaced.
func (d *decider) findRebuilt() {
	replaced := 0
	for i := range d.in.Clusters {
		fact := &d.in.Clusters[i]
		if fact.Wave < 0 || d.seen[i].state != Held || d.seen[i].reason != v1alpha1.ReasonTargetChanged || fact.Child.Suspended {
			continue
		}
		one := Rebuilt{Cluster: fact.Name, Remedy: remedyByHand}
		switch {
		case !fact.isAnotherObject():
		case !d.in.Abandon:
			one.Remedy = remedyAbandon
		case d.in.Suspended || !d.in.Known:
			one.Remedy = remedySuspended
		case fact.Invalid == "" && replaced < mostReplaced:
			replaced++
			one.Replace, one.Remedy = true, remedyReplaced
		default:
			one.Remedy = remedyReplaced
		}
		d.out.Rebuilt = append(d.out.Rebuilt, one)
	}
}

// isAnotherObject tells whether another object stands for the cluster than the one with which its BundleDeployment was installed. One
// that was ready since the present object was created was installed with that.
func (f *Fact) isAnotherObject() bool {
	c := f.Child
	return c.ClusterUID != "" && f.ClusterUID != "" && c.ClusterUID != f.ClusterUID && !c.LastHealthy.After(f.ClusterCreated)
}

// StartsWith is the UID that a start writes to a BundleDeployment, of the object that stands for its cluster: uid, if the
// BundleDeployment is new or was ready since that object was created; else the one that it has, so that a start between
// the rebuild of a cluster and its discovery does not hide it. child is nil if there is none.
func StartsWith(child *Child, uid string, created time.Time) string {
	if child == nil || uid == "" || !child.OtherTarget && child.LastHealthy.After(created) {
		return uid
	}
	return child.ClusterUID
}

// reachesAnother tells whether a BundleDeployment reaches another cluster than the one that its objects are in.
func reachesAnother(d *v1alpha1.BundleDeployment) bool {
	ready := apimeta.FindStatusCondition(d.Status.Conditions, v1alpha1.ReadyCondition)
	if ready != nil && ready.Status != metav1.ConditionTrue && ready.Reason == v1alpha1.ReasonTargetChanged {
		return true
	}
	blocked := apimeta.FindStatusCondition(d.Status.Conditions, v1alpha1.RemovalBlockedCondition)
	return blocked != nil && blocked.Status == metav1.ConditionTrue && blocked.Reason == v1alpha1.ReasonTargetChanged
}
