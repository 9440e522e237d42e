// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/rollout"
	"github.com/satchel-dev/satchel/internal/rollout/forecast"
)

// Leaving is the state of a cluster that is no longer selected, and still has a BundleDeployment; Unmatched of one that no wave selects.
const (
	Leaving   = "Leaving"
	Unmatched = "Unmatched"
)

// States are all states of a cluster.
var States = []string{
	string(rollout.Starting), string(rollout.Pending), string(rollout.Held), string(rollout.Unreachable), string(rollout.Updating),
	string(rollout.Failed), string(rollout.Updated), Leaving, Unmatched,
}

// Cluster is a cluster of a rollout. Its JSON form is what rollout clusters -o json prints.
type Cluster struct {
	Name  string `json:"name"`
	Wave  string `json:"wave,omitempty"`
	State string `json:"state"`
	// Revision is the name of the revision that its BundleDeployment was started with last, and Version the version of the bundle that
	// is applied there.
	Revision   string       `json:"revision,omitempty"`
	Version    string       `json:"version,omitempty"`
	Ready      string       `json:"ready,omitempty"`
	Reason     string       `json:"reason,omitempty"`
	Message    string       `json:"message,omitempty"`
	Since      *metav1.Time `json:"since,omitempty"`
	Deployment string       `json:"deployment,omitempty"`
}

// Clusters are the clusters of a rollout, in the order of the waves, and those that leave at the end.
func Clusters(seen *forecast.Seen) []Cluster {
	in := seen.Input()
	decision := rollout.Decide(in)
	all := []Cluster{}
	selected := map[string]bool{}
	order := map[string]int{}
	remedies := map[string]string{}
	for _, one := range decision.Rebuilt {
		remedies[one.Cluster] = one.Remedy
	}
	for i := range in.Clusters {
		fact := &in.Clusters[i]
		state, reason, since := decision.State(i)
		one := clusterOf(fact.Name, seen.Children[fact.Name])
		one.State = string(state)
		one.Reason = cmp.Or(reason, one.Reason)
		one.Since = when(since)
		one.Message = cmp.Or(fact.Invalid, remedies[fact.Name], one.Message)
		order[fact.Name] = len(in.Strategy.Waves)
		if fact.Wave >= 0 {
			one.Wave = in.Strategy.Waves[fact.Wave].Name
			order[fact.Name] = fact.Wave
		} else {
			one.State = Unmatched
		}
		selected[fact.Name] = true
		all = append(all, one)
	}
	for name, child := range seen.Children {
		if !selected[name] {
			one := clusterOf(name, child)
			one.State = Leaving
			order[name] = len(in.Strategy.Waves) + 1
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b Cluster) int {
		return cmp.Or(cmp.Compare(order[a.Name], order[b.Name]), cmp.Compare(a.Name, b.Name))
	})
	return all
}

func clusterOf(name string, child *v1alpha1.BundleDeployment) Cluster {
	one := Cluster{Name: name}
	if child == nil {
		return one
	}
	seen := rollout.ChildOf(child)
	one.Revision = seen.Revision
	one.Deployment = child.Name
	one.Version = child.Status.Applied.Version
	one.Reason = seen.Reason
	one.Message = seen.Message
	one.Ready = string(metav1.ConditionFalse)
	if seen.Ready {
		one.Ready = string(metav1.ConditionTrue)
	}
	return one
}

func when(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t}
}
