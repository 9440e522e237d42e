// SPDX-License-Identifier: Apache-2.0

package dependency_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/dependency"
	"github.com/satchel-dev/satchel/tests/caches"
)

const namespace = "many"

// deployment provides the package with the name of its own, and depends on others.
func deployment(name string, dependencies ...string) v1alpha1.BundleDeployment {
	d := v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: "1"}}
	for _, other := range dependencies {
		d.Spec.DependsOn = append(d.Spec.DependsOn, v1alpha1.Dependency{Name: other})
	}
	d.Status.Healthy.Package = &v1alpha1.PackageStatus{Name: name, Version: "1.0.0"}
	return d
}

// graph is a graph of dependencies among many pairs of other deployments: "app" needs "api" and "web", both need "db", and "db"
// needs one that does not exist.
func graph(pairs int) *v1alpha1.BundleDeploymentList {
	list := &v1alpha1.BundleDeploymentList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
	list.Items = append(list.Items, deployment("app", "api", "web"), deployment("api", "db"), deployment("web", "db"), deployment("db", "none"))
	for i := range pairs {
		first := fmt.Sprint("pair-", i)
		list.Items = append(list.Items, deployment(first), deployment(first+"-user", first))
	}
	return list
}

// lookups are what is found for deployments among others, and what that allocates.
func lookups(t *testing.T, pairs int) uint64 {
	t.Helper()
	list := graph(pairs)
	reader := caches.Of(t, list, dependency.IndexIn)
	var upstream dependency.Deployments
	var downstream []string
	var providing []v1alpha1.BundleDeployment
	allocated := caches.Allocated(func() {
		var err error
		if upstream, err = dependency.Upstream(t.Context(), reader, &list.Items[0]); err != nil {
			t.Fatal(err)
		}
		if downstream, err = dependency.Downstream(t.Context(), reader, namespace, "db"); err != nil {
			t.Fatal(err)
		}
		if providing, err = dependency.Providing(t.Context(), reader, namespace, map[string]bool{"api": true, "none": true}); err != nil {
			t.Fatal(err)
		}
	})
	slices.Sort(downstream)
	got := [][]string{slices.Sorted(maps.Keys(upstream)), downstream, {providing[0].Name}}
	if diff := cmp.Diff([][]string{{"api", "db", "web"}, {"api", "app", "web"}, {"api"}}, got); diff != "" || len(providing) != 1 {
		t.Errorf("found (-want +got):\n%s", diff)
	}
	return allocated
}

// TestOthersCostTheSameAmongMany looks for dependencies, dependents and packages: what that costs does not grow with the number
// of deployments that have nothing to do with them.
func TestOthersCostTheSameAmongMany(t *testing.T) {
	const few, many = 20, 1000
	amongFew, amongMany := lookups(t, few), lookups(t, many)
	t.Logf("%d KiB are allocated among %d pairs, and %d KiB among %d", amongFew>>10, few, amongMany>>10, many)
	if amongMany > 2*amongFew+64<<10 {
		t.Error("that grows with the number of deployments")
	}
}
