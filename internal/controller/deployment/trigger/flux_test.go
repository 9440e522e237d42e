// SPDX-License-Identifier: Apache-2.0

package trigger_test

import (
	"fmt"
	"slices"
	"testing"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/trigger"
	"github.com/satchel-dev/satchel/tests/caches"
)

// woken are the deployments that an OCIRepository wakes among many others, and how many bytes that allocates.
func woken(t *testing.T, others int) (names []string, allocated uint64) {
	t.Helper()
	list := &v1alpha1.BundleDeploymentList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
	add := func(name, kind, source string) {
		d := v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "many", Name: name, ResourceVersion: "1"}}
		d.Spec.SourceRef = &v1alpha1.SourceReference{Kind: kind, Name: source}
		list.Items = append(list.Items, d)
	}
	add("first", "OCIRepository", "app")
	add("second", "OCIRepository", "app")
	add("of-git", "GitRepository", "app")
	add("of-satchel", v1alpha1.BundleSourceKind, "app")
	for i := range others {
		add(fmt.Sprint("other-", i), "OCIRepository", fmt.Sprint("other-", i))
	}
	mapper := trigger.Mapper{Client: caches.Of(t, list, trigger.IndexFlux)}
	source := &sourcev1.OCIRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "many", Name: "app"}}
	allocated = caches.Allocated(func() {
		for _, request := range mapper.UsersOfFlux(t.Context(), "OCIRepository", source) {
			names = append(names, request.Name)
		}
	})
	slices.Sort(names)
	return names, allocated
}

// A source of Flux wakes its deployments, and what that costs does not grow with the number of others.
func TestFluxSourceWakesItsUsers(t *testing.T) {
	const few, many = 20, 1000
	names, amongFew := woken(t, few)
	if diff := cmp.Diff([]string{"first", "second"}, names); diff != "" {
		t.Errorf("woken (-want +got):\n%s", diff)
	}
	_, amongMany := woken(t, many)
	t.Logf("%d KiB are allocated among %d others, and %d KiB among %d", amongFew>>10, few, amongMany>>10, many)
	if amongMany > 2*amongFew+64<<10 {
		t.Error("that grows with the number of deployments")
	}
}
