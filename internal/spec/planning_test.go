// SPDX-License-Identifier: Apache-2.0

package spec_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/observe"
	"github.com/satchel-dev/satchel/internal/apply/plan/requirement"
	"github.com/satchel-dev/satchel/internal/spec"
)

// deployment has a spec that sets everything that a plan depends on.
func deployment() *v1alpha1.BundleDeployment {
	return &v1alpha1.BundleDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "x"},
		Spec: v1alpha1.BundleDeploymentSpec{
			Target: v1alpha1.DeploymentTarget{Namespace: "install", CreateNamespace: true},
			Apply: v1alpha1.ApplyOptions{
				PodSecurityLabels: true, CollisionProtection: "None", OptionalKinds: []v1alpha1.OptionalKind{{Group: "g", Kind: "K"}},
				CRDs: &v1alpha1.CRDOptions{UpgradeSafety: "Warn", UpgradeSafetyExemptions: []string{"a.b"}, DeletionPolicy: "Delete"},
			},
			Drift:          &v1alpha1.DriftOptions{Ignore: []v1alpha1.IgnoreRule{{Paths: []string{"/data/a"}}}},
			RegistryV1:     &v1alpha1.RegistryV1Options{Requirements: "Warn"},
			DeletionPolicy: v1alpha1.DeletionOrphan,
		},
	}
}

// TestEveryOptionOfAPlanIsMapped fails if an option of a plan gets no value from a spec that sets everything.
func TestEveryOptionOfAPlanIsMapped(t *testing.T) {
	got, err := spec.Observing(deployment(), false)
	if err != nil {
		t.Fatal(err)
	}
	byOthers := map[string]bool{ // by what is installed, and by the bundle
		"Owner": true, "Desired": true, "Previous": true, "Ranks": true, "HashKey": true, "Parallelism": true, "Keeping": true,
		"Requirements": true, "Packages": true, "Lineage": true, "Hooks": true, "Judge": true, "Returning": true,
	}
	value := reflect.ValueOf(got)
	for i := range value.NumField() {
		if name := value.Type().Field(i).Name; value.Field(i).IsZero() != byOthers[name] {
			t.Errorf("%s: %v", name, value.Field(i))
		}
	}
	keeping, err := spec.Observing(deployment(), true)
	want := observe.Request{Keeping: true, InstallNamespace: "install", CreateNamespace: true, Optional: got.Optional, Ignore: got.Ignore}
	if err != nil || !reflect.DeepEqual(keeping, want) {
		t.Errorf("%v: %+v, want %+v", err, keeping, want)
	}
	wrong := deployment()
	wrong.Spec.Drift.Ignore[0].Paths = []string{"/kind"}
	if _, err := spec.Observing(wrong, true); err == nil {
		t.Error("a rule that gives away what an object is passes")
	}
}

func TestPackages(t *testing.T) {
	with := func(name, target, version string, edit ...func(*v1alpha1.BundleDeployment)) v1alpha1.BundleDeployment {
		d := v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Name: name}}
		d.Status.Inventory = &v1alpha1.Inventory{Target: target}
		d.Status.Healthy.Package = &v1alpha1.PackageStatus{Name: "etcd", Version: version}
		for _, change := range edit {
			change(&d)
		}
		return d
	}
	now := metav1.Now()
	got := spec.Packages([]v1alpha1.BundleDeployment{
		with("x", "here", "1"), with("b", "here", "3"), with("a", "here", "2"), with("c", "there", "4"),
		with("d", "here", "5", func(d *v1alpha1.BundleDeployment) { d.DeletionTimestamp = &now }),
		with("e", "here", "6", func(d *v1alpha1.BundleDeployment) { d.Status.Healthy.Package = nil }),
		with("f", "here", "3"),
	}, deployment(), "here")
	if diff := cmp.Diff([]requirement.Package{{Name: "etcd", Version: "2"}, {Name: "etcd", Version: "3"}}, got); diff != "" {
		t.Errorf("neither its own, nor of another cluster, nor on their way out: (-want +got)\n%s", diff)
	}
}
