// SPDX-License-Identifier: Apache-2.0

package sourceusers_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/sourceusers"
	"github.com/satchel-dev/satchel/tests/caches"
)

const namespace = "fleet"

// children are so many deployments of the source current, and as many of another, each with a status of some kilobytes.
func children(count int) *v1alpha1.BundleDeploymentList {
	list := &v1alpha1.BundleDeploymentList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
	for i := range 2 * count {
		d := v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("cluster-", i), ResourceVersion: "1"}}
		d.Spec.SourceRef = &v1alpha1.SourceReference{Kind: v1alpha1.BundleSourceKind, Name: []string{"current", "previous"}[i%2]}
		d.Status.Applied.Revision = fmt.Sprint("v1@sha256:", i)
		for j := range 6 {
			d.Status.Conditions = append(d.Status.Conditions, metav1.Condition{Type: fmt.Sprint("Type", j), Status: metav1.ConditionTrue, Reason: "Succeeded", Message: strings.Repeat("m", 200)})
		}
		for j := range 10 {
			d.Status.History = append(d.Status.History, v1alpha1.RevisionRecord{Revision: fmt.Sprint("v", j, "@sha256:", strings.Repeat("a", 64))})
		}
		list.Items = append(list.Items, d)
	}
	inline := v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "inline", ResourceVersion: "1"}}
	flux := v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "flux", ResourceVersion: "1"}}
	flux.Spec.SourceRef = &v1alpha1.SourceReference{Kind: "OCIRepository", Name: "current"}
	list.Items = append(list.Items, inline, flux)
	return list
}

// Each finds the deployments of a source among those of others, inline sources by the name of the deployment, and no sources of
// Flux. For a source with 2,000 deployments among 4,000 it allocates a fraction of what copies of all take.
func TestUsersOfASourceAreNotCopied(t *testing.T) {
	const count = 2000
	list := children(count)
	reader := caches.Of(t, list, sourceusers.IndexIn)
	found := func(source string) (names map[string]bool) {
		names = map[string]bool{}
		if err := sourceusers.Each(t.Context(), reader, client.ObjectKey{Namespace: namespace, Name: source}, func(d *v1alpha1.BundleDeployment) {
			names[d.Name] = true
		}); err != nil {
			t.Fatal(err)
		}
		return names
	}
	for source, want := range map[string]int{"current": count, "previous": count, "inline": 1, "flux": 0, "none": 0} {
		if got := found(source); len(got) != want {
			t.Errorf("%s: %d deployments, want %d", source, len(got), want)
		}
	}
	users := 0
	indexed := caches.Allocated(func() {
		_ = sourceusers.Each(t.Context(), reader, client.ObjectKey{Namespace: namespace, Name: "current"}, func(*v1alpha1.BundleDeployment) { users++ })
	})
	var all v1alpha1.BundleDeploymentList
	copies := caches.Allocated(func() {
		if err := reader.List(t.Context(), &all, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
	})
	t.Logf("the %d deployments of a source among %d: %d KiB are allocated, and %d KiB for copies of all", users, len(all.Items), indexed>>10, copies>>10)
	if indexed > copies/5 {
		t.Error("that is not a fraction")
	}
}
