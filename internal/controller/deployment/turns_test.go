// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"testing"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/clusters"
)

// Deployments to other clusters have places of their own: however many of them wait, as many deployments to this cluster are
// reconciled as without them, and no namespace has more than half of the places of either kind.
func TestS7RemoteDeploymentsHavePlacesOfTheirOwn(t *testing.T) {
	const local, perNamespace = 8, 4
	remote := clusters.Default().Concurrent
	r := NewReconciler(Deps{Concurrent: local, PerNamespace: perNamespace, Remotely: remote})
	take := func(namespace, name string, elsewhere bool) bool {
		d := &v1alpha1.BundleDeployment{}
		d.Namespace = namespace
		d.Name = name
		if elsewhere {
			d.Spec.Target.ClusterReference = v1alpha1.ClusterReference{ClusterProfileRef: &v1alpha1.ClusterProfileReference{Name: "c1"}}
		}
		_, ok := r.turn(d)
		return ok
	}
	taken := map[string]int{}
	for _, namespace := range []string{"a", "b", "c"} {
		for i := range 100 {
			for kind, elsewhere := range map[string]bool{"remote": true, "local": false} {
				if take(namespace, fmt.Sprint(kind, i), elsewhere) {
					taken[kind]++
					taken[kind+" of "+namespace]++
				}
			}
		}
	}
	// A quarter is reserved for a namespace that has none.
	want := map[string]int{
		"remote": 49, "remote of a": 32, "remote of b": 16, "remote of c": 1,
		"local": 7, "local of a": 4, "local of b": 2, "local of c": 1,
	}
	for what, count := range want {
		if taken[what] != count {
			t.Errorf("%s: %d at once, want %d", what, taken[what], count)
		}
	}
	before := r.remoteTurns.Waiting()
	if !take("d", "local0", false) || r.remoteTurns.Waiting() != before {
		t.Error("another namespace has to wait")
	}
	if take("a", "remote99", false) || r.remoteTurns.Waiting() != before-1 {
		t.Error("a deployment that lost its kubeConfig waits for a turn of the other kind")
	}
}
