// SPDX-License-Identifier: Apache-2.0

package escalation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
)

// key is a label or an annotation at a place.
type key struct{ place, noun, name string }

func (k key) compare(other key) int {
	return cmp.Or(strings.Compare(k.place, other.place), strings.Compare(k.noun, other.noun), strings.Compare(k.name, other.name))
}

// harmlessKeys are labels and annotations that describe an object, and that no controller takes for an instruction that
// reaches beyond it.
var harmlessKeys = []string{
	v1alpha1.DeploymentLabel, v1alpha1.NamespaceLabel, v1alpha1.HookRunAnnotation, v1alpha1.OrphanedAnnotation, ownership.AnnotationPhase,
	"deployment.kubernetes.io/revision", "helm.sh/chart", "helm.sh/hook", "helm.sh/hook-delete-policy", "helm.sh/hook-weight",
	"kubectl.kubernetes.io/default-container", "kubectl.kubernetes.io/default-logs-container", "kubectl.kubernetes.io/last-applied-configuration",
	"kubectl.kubernetes.io/restartedAt", "prometheus.io/path", "prometheus.io/port", "prometheus.io/scheme", "prometheus.io/scrape",
}

// harmlessPrefixes are domains of such keys.
var harmlessPrefixes = []string{
	"app.kubernetes.io/", "batch.kubernetes.io/", "checksum/", "controller-gen.kubebuilder.io/", "features.operators.openshift.io/",
	"meta.helm.sh/", "operatorframework.io/", "operators.openshift.io/", "operators.operatorframework.io/",
}

// strictNames are the keys without a domain that are harmless also where others select objects by labels to give
// them more: Secrets, ServiceAccounts, Namespaces and ClusterRoles.
var strictNames = []string{"app", "chart", "heritage", "release"}

// identityLabel without a domain gives a Pod an identity in Azure.
const identityLabel = "aadpodidbinding"

// judgedElsewhere begins the labels by which ClusterRoles are aggregated: see package impact.
const judgedElsewhere = "rbac.authorization.k8s.io/aggregate-to-"

// isHarmlessKey tells whether a label or annotation goes on without an approval. Keys without a domain are private to the
// users of the cluster.
func isHarmlessKey(name string, strict bool) bool {
	switch {
	case slices.Contains(harmlessKeys, name) || strings.HasPrefix(name, judgedElsewhere):
		return true
	case !strings.Contains(name, "/"):
		return !strict && name != identityLabel || slices.Contains(strictNames, name)
	}
	return slices.ContainsFunc(harmlessPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// metadata reads that of an object or of a Pod template.
func (f *facts) metadata(place string, metadata map[string]any, strict bool) {
	f.keysOf(place, metadata, strict)
	for _, name := range []string{"finalizers", "ownerReferences"} {
		f.leave(strings.TrimPrefix(place+".metadata."+name, "."), metadata[name])
	}
}

// keysOf reads labels and annotations.
func (f *facts) keysOf(place string, metadata map[string]any, strict bool) {
	for field, noun := range map[string]string{"labels": "label", "annotations": "annotation"} {
		for name, value := range fields(metadata[field]) {
			if !isHarmlessKey(name, strict) {
				f.keys[key{place, noun, name}] = scalar(value)
			}
		}
	}
}

// keyChanges lists labels and annotations that are added, changed or removed.
func keyChanges(had, has *facts) []string {
	all := maps.Clone(had.keys)
	maps.Copy(all, has.keys)
	var words []string
	for _, k := range slices.SortedFunc(maps.Keys(all), key.compare) {
		on := ""
		if k.place != "" {
			on = " in ." + k.place
		}
		before, had := had.keys[k]
		after, set := has.keys[k]
		switch {
		case !had:
			words = append(words, fmt.Sprintf("gets the %s %s%s%s", k.noun, k.name, has.shown("=", after), on))
		case !set:
			words = append(words, fmt.Sprintf("loses the %s %s%s%s", k.noun, k.name, has.shown("=", before), on))
		case before != after:
			words = append(words, fmt.Sprintf("changes the %s %s%s%s%s", k.noun, k.name, has.shown(" from ", before), has.shown(" to ", after), on))
		}
	}
	return words
}
