// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// Keys are the labels and annotations of clusters that a rollout reads. A Secret may have 256 KiB of annotations, and there
// may be thousands: all others are dropped when clusters are listed.
type Keys struct{ labels, annotations sets.Set[string] }

// KeysOf are the keys that a spec and revisions name: in variables, overrides and waves.
func KeysOf(spec *v1alpha1.BundleRolloutSpec, revisions ...Data) Keys {
	k := Keys{sets.Set[string]{}, sets.Set[string]{}}
	k.add(spec.Variables, spec.Overrides)
	for i := range revisions {
		k.add(revisions[i].Variables, revisions[i].Overrides)
	}
	for i := range spec.Strategy.Waves {
		wave := &spec.Strategy.Waves[i]
		k.selector(&wave.Selector)
		k.labels.Insert(wave.OrderBy)
	}
	return k
}

func (k Keys) add(variables []v1alpha1.RolloutVariable, overrides []v1alpha1.RolloutOverride) {
	for i := range variables {
		k.labels.Insert(variables[i].Label)
		k.annotations.Insert(variables[i].Annotation)
	}
	for i := range overrides {
		k.selector(&overrides[i].Selector)
	}
}

func (k Keys) selector(selector *metav1.LabelSelector) {
	for key := range selector.MatchLabels {
		k.labels.Insert(key)
	}
	for i := range selector.MatchExpressions {
		k.labels.Insert(selector.MatchExpressions[i].Key)
	}
}

// Cover tells whether nothing is dropped that other keys name.
func (k Keys) Cover(other Keys) bool {
	return k.labels.IsSuperset(other.labels) && k.annotations.IsSuperset(other.annotations)
}

// Keep drops what no key names from a cluster. Of values that are too long only so much is kept that they still are.
func (k Keys) Keep(cluster *Cluster) {
	cluster.Labels = kept(cluster.Labels, k.labels)
	cluster.Annotations = kept(cluster.Annotations, k.annotations)
}

func kept(from map[string]string, keys sets.Set[string]) map[string]string {
	var found map[string]string
	for key := range keys {
		value, has := from[key]
		if !has {
			continue
		}
		if found == nil {
			found = map[string]string{}
		}
		found[key] = strings.Clone(value[:min(len(value), MaxValueBytes+1)])
	}
	return found
}
