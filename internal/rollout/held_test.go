// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// checkReplaced wants all clusters that were rebuilt with another object to be replaced at the end.
func (f *fleet) checkReplaced() {
	for range 10 { // the cache may be late, and a process killed
		f.list(f.processes[0])
		f.reconcileRollout(f.processes[0])
	}
	for _, m := range f.members {
		c := m.newest().child
		isProven := c != nil && c.OtherTarget && m.newest().kube == m.kubeConfig() && c.ClusterUID != fmt.Sprint(m.object) && !c.LastHealthy.After(m.created)
		if m.selected && isProven && !c.Suspended && !m.invalid && !m.refuses {
			f.fail("R31: %s was rebuilt, and is not replaced: %+v", m.name, c)
		}
	}
}

// checkReleased wants no cluster to wait for a user at the end of which the kubeconfig was corrected.
func (f *fleet) checkReleased() {
	if f.lastWhy != v1alpha1.ReasonHeld && f.lastWhy != v1alpha1.ReasonComplete {
		return
	}
	isHeld := false
	for _, m := range f.members {
		c := m.newest().child
		if !m.selected || c == nil {
			continue
		}
		isHeld = isHeld || c.Suspended || m.leadsAway()
		if f.lastWhy == v1alpha1.ReasonComplete && !c.Suspended && !m.refuses && !m.invalid && m.newest().kube != m.kubeConfig() {
			f.fail("the rollout is complete, and %s has a former kubeconfig", m.name)
		}
	}
	if f.lastWhy == v1alpha1.ReasonHeld && !isHeld {
		f.fail("the rollout is held, and every cluster is reached by its kubeconfig")
	}
}

// checkOutdated is R30: a cluster that cannot be reached, and goes on with its last start when it can, has what it is to get at the end.
func (f *fleet) checkOutdated() {
	isReturn, open := Returns(&f.status), 0
	for open < len(f.status.Waves) && f.status.Waves[open].CompletionTime != nil {
		open++
	}
	want := f.status.UpdateRevision
	if isReturn {
		want = f.status.CurrentRevision
	}
	for _, m := range f.members {
		c, away := m.newest().child, m.newest().away
		switch {
		case !m.selected, m.invalid, c == nil, away.IsZero(), f.now.Sub(away) < f.strategy.unreachableAfter, c.Suspended, c.hasEnded():
		case f.halted && !isReturn, m.wave > open && !isReturn:
		case c.SpecHash != m.specOf(want.Name):
			f.fail("R30: %s gets %s when it can be reached again, want %s: %s", m.name, c.Revision, want.Name, f.lastWhy)
		default:
			f.moved++
		}
	}
}

// checkRebuilt is R31: what is replaced is held, because it is another cluster and another object stands for it, and the rollout permits it.
func (f *fleet) checkRebuilt(v *view) {
	for _, one := range v.out.Rebuilt {
		at := slices.IndexFunc(v.in.Clusters, func(fact Fact) bool { return fact.Name == one.Cluster })
		fact := &v.in.Clusters[at]
		_, started := v.started[one.Cluster]
		switch {
		case v.states[at] != Held || !fact.Child.OtherTarget || started:
			f.fail("R31: %s is %s, and counts as rebuilt", one.Cluster, v.states[at])
		case !one.Replace:
		case !v.in.Abandon || v.in.Suspended || !v.in.Known:
			f.fail("R31: %s is replaced, which the rollout does not permit", one.Cluster)
		case fact.Child.ClusterUID == fact.ClusterUID || fact.Child.Suspended:
			f.fail("R31: %s is replaced without evidence", one.Cluster)
		}
	}
}

// checkHeld wants a cluster to be held only while a user has to act: it is suspended, or the kubeconfig that it has, which is that of the
// rollout, leads to another cluster.
func (f *fleet) checkHeld(v *view) {
	for i, state := range v.states {
		fact := &v.in.Clusters[i]
		if state != Held || fact.Child.Suspended {
			continue
		}
		wanted := fact.Wanted
		if v.in.Return {
			wanted = fact.WantedCurrent
		}
		isTried := fact.Child.ObservedGeneration == fact.Child.Generation
		if !fact.Child.OtherTarget || !isTried || fact.OtherKubeConfig && fact.Child.SpecHash != wanted {
			f.fail("%s is held, and no user has to act: %+v", fact.Name, fact.Child)
		}
	}
}
