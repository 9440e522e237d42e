// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// waitingStates are the states in which an attempt waits: the next revision of a deployment, and what its status says then.
// Each applies the ConfigMaps "kept", which does not change, "changing", which it has not written yet, and "written", which it has while
// a phase waits.
var waitingStates = map[string]struct {
	says  string
	chart bool
	next  func(t *testing.T, r *rig, namespace string) fstest.MapFS
	spec  func(*v1alpha1.BundleDeployment)
}{
	"hook before an upgrade": {"hook", true, func(*testing.T, *rig, string) fstest.MapFS {
		return fstest.MapFS{"h.yaml": hookJob("migrate", hookTerms("pre-upgrade", 0, ""), "suspend: true")}
	}, nil},
	"CRD that is not established": {"is not established", false, func(t *testing.T, r *rig, namespace string) fstest.MapFS {
		r.create(t, namedCRD(namespace, "widgets"))
		crd := strings.NewReplacer("PLURAL", "gizmos", "GROUP", namespace+".example.org").Replace(crdOfWidgets)
		return fstest.MapFS{"d.yaml": file(crd), "r.yaml": file("{apiVersion: " + namespace + ".example.org/v1, kind: Widget, metadata: {name: one}}")}
	}, nil},
	"phase": {"phase 10 waits", false, func(*testing.T, *rig, string) fstest.MapFS {
		return fstest.MapFS{"s.yaml": sickWorkload("", "nodeSelector: {example.org/there-is: none}"), "p.yaml": inPhase("10", configMap("late", "1"))}
	}, nil},
	"dependency": {"missing", false, nil, func(d *v1alpha1.BundleDeployment) {
		d.Spec.DependsOn = []v1alpha1.Dependency{{Name: "missing"}}
	}},
}

const crdOfWidgets = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: PLURAL.GROUP}, spec: {group: GROUP, scope: Namespaced,
  names: {kind: Widget, plural: PLURAL}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}`

func namedCRD(namespace, plural string) client.Object {
	object := &unstructured.Unstructured{}
	_ = yaml.Unmarshal([]byte(strings.NewReplacer("PLURAL", plural, "GROUP", namespace+".example.org").Replace(crdOfWidgets)), &object.Object)
	return object
}

// repaired wants a ConfigMap to have a value again within a second (6 s here).
func (r *rig) repaired(t *testing.T, namespace, name, want string) {
	t.Helper()
	began := time.Now()
	r.holds(t, namespace, name, want)
	if took := time.Since(began); took > 6*time.Second {
		t.Errorf("the repair of %s took %s", name, took)
	}
}

// F58: while an attempt waits, edits and deletions of what the running revision applied are repaired within a second (6 s here), but for
// what the attempt has written.
func TestF58WaitsBesideTheAppliedRevision(t *testing.T) {
	t.Parallel()
	for name, tc := range waitingStates {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			namespace := r.namespace(t)
			bundle := func(value string, more fstest.MapFS) fstest.MapFS {
				files := fstest.MapFS{"k.yaml": configMap("kept", "one"), "c.yaml": configMap("changing", value), "w.yaml": configMap("written", value)}
				if value == "two" && !tc.chart {
					files["c.yaml"] = inPhase("20", configMap("changing", value))
				}
				for path, content := range more {
					files[path] = content
				}
				if tc.chart {
					return charted(files)
				}
				return files
			}
			first := r.publish(t, namespace, "app", "v1", bundle("one", nil))
			key := r.deploy(t, namespace, "app", func(d *v1alpha1.BundleDeployment) {
				if tc.chart {
					helmed(d)
				}
				d.Spec.Interval = v1alpha1.Duration{Duration: time.Hour}
				d.Spec.Timeout = v1alpha1.Duration{Duration: 10 * time.Minute}
			})
			r.ready(t, key, first.Revision)
			var more fstest.MapFS
			if tc.next != nil {
				more = tc.next(t, r, namespace)
			}
			if tc.spec != nil {
				r.edit(t, key, tc.spec)
			}
			r.publish(t, namespace, "app", "v2", bundle("two", more))
			waits := func(d *v1alpha1.BundleDeployment) bool {
				return !conditions.IsTrue(d, "Ready") && d.Status.LastAppliedRevision == first.Revision && says(tc.says)(d)
			}
			r.until(t, key, "it waits", waits)
			for _, object := range []string{"kept", "changing"} {
				r.patch(t, r.must(t, aConfigMap(namespace, object)), `{"data":{"value":"edited"}}`)
				r.repaired(t, namespace, object, "one")
				if err := r.admin.Delete(t.Context(), r.must(t, aConfigMap(namespace, object))); err != nil {
					t.Fatal(err)
				}
				r.repaired(t, namespace, object, "one")
			}
			r.until(t, key, "it waits still", waits)
			written := "one"
			if name == "phase" {
				written = "two"
			}
			r.holds(t, namespace, "written", written)
			r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.DependsOn = nil })
			third := r.publish(t, namespace, "app", "v3", bundle("three", nil))
			r.ready(t, key, third.Revision)
			for _, object := range []string{"changing", "written"} {
				r.holds(t, namespace, object, "three")
			}
		})
	}
}
