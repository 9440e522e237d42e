// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/tests/workspace"
)

// casks is the CRD of an operator with the given conversion and versions: "v1" is served, "v1!" is stored as well, "v1-" is neither.
func casks(namespace, conversion string, versions ...string) string {
	var text strings.Builder
	fmt.Fprintf(&text, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: casks.%[1]s.example.org}
spec:
  group: %[1]s.example.org
  scope: Namespaced
  names: {plural: casks, singular: cask, kind: Cask, listKind: CaskList}
  conversion: %[2]s
  versions:
`, namespace, conversion)
	for _, version := range versions {
		name := strings.TrimRight(version, "!-")
		fmt.Fprintf(&text, "  - {name: %s, served: %t, storage: %t, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}}\n",
			name, !strings.HasSuffix(version, "-"), strings.HasSuffix(version, "!"))
	}
	return text.String()
}

// Conversions of casks.
const noConversion = "{strategy: None}"

func byService(name string) string {
	return "{strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {namespace: NS, name: " + name + ", path: /convert}}}}"
}

// casksServer is the Service of a conversion webhook, and a workload behind it.
func casksServer(name, kind string) string { return casksService(name) + casksWorkload(name, kind) }

func casksService(name string) string {
	return fmt.Sprintf("---\n{apiVersion: v1, kind: Service, metadata: {name: %[1]s, namespace: NS}, spec: {ports: [{port: 443}], selector: {app: %[1]s}}}\n", name)
}

func casksWorkload(name, kind string) string {
	extra := map[string]string{"StatefulSet": "serviceName: none, ", "Deployment": "replicas: 1, "}[kind]
	return fmt.Sprintf("---\n{apiVersion: apps/v1, kind: %[2]s, metadata: {name: %[1]s, namespace: NS}, spec: {%[3]sselector: {matchLabels: {app: %[1]s}}, "+
		"template: {metadata: {labels: {app: %[1]s, more: labels}}, spec: {nodeSelector: {NS: casks}, containers: [{name: manager, image: registry.example.org/m}]}}}}\n", name, kind, extra)
}

func caskOf(namespace, version, name string) string {
	return fmt.Sprintf("---\n{apiVersion: %s.example.org/%s, kind: Cask, metadata: {name: %s}, spec: {litres: 3}}\n", namespace, version, name)
}

// runs lets the workloads of casksWorkload run: their Pods need a node with a label of the namespace.
func (w *world) runs() {
	w.T.Helper()
	nodes, err := w.Admin.CoreV1().Nodes().List(w.T.Context(), metav1.ListOptions{})
	if err != nil {
		w.T.Fatal(err)
	}
	label := fmt.Sprintf(`{"metadata": {"labels": {%q: "casks"}}}`, w.Namespace)
	if _, err := w.Admin.CoreV1().Nodes().Patch(w.T.Context(), nodes.Items[0].Name, types.MergePatchType, []byte(label), metav1.PatchOptions{}); err != nil {
		w.T.Fatal(err)
	}
}

// caskState describes the CRD on the cluster: its conversion and its versions as casks takes them.
func (w *world) caskState() string {
	w.T.Helper()
	crd, err := w.Dynamic.Resource(definitions).Get(w.T.Context(), "casks."+w.Namespace+".example.org", metav1.GetOptions{})
	if err != nil {
		w.T.Fatal(err)
	}
	state, _, _ := unstructured.NestedString(crd.Object, "spec", "conversion", "webhook", "clientConfig", "service", "name")
	if state == "" {
		state, _, _ = unstructured.NestedString(crd.Object, "spec", "conversion", "strategy")
	}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, version := range versions {
		fields, _ := version.(map[string]any)
		state += fmt.Sprintf(" %s", fields["name"])
		switch {
		case fields["storage"] == true:
			state += "!"
		case fields["served"] == false:
			state += "-"
		}
	}
	return state
}

// brews writes a cask in a version, and reports why that failed.
func (w *world) brews(version, name string) error {
	group := w.Namespace + ".example.org"
	cask := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/" + version, "kind": "Cask", "metadata": map[string]any{"name": name}, "spec": map[string]any{"size": int64(1)},
	}}
	resource := schema.GroupVersionResource{Group: group, Version: version, Resource: "casks"}
	_, err := w.Dynamic.Resource(resource).Namespace(w.Namespace).Apply(w.T.Context(), name, cask, metav1.ApplyOptions{FieldManager: "user"})
	return err
}

// applyCasks plans and applies manifests in which NS is the namespace.
func (w *world) applyCasks(manifests string) apply.Result {
	w.T.Helper()
	return w.Apply(strings.ReplaceAll(manifests, "NS", w.Namespace))
}

// endCasks removes the CRD after the test, with its conversion.
func (w *world) endCasks() {
	w.T.Cleanup(func() {
		name, none := "casks."+w.Namespace+".example.org", []byte(`{"spec":{"conversion":{"strategy":"None","webhook":null}}}`)
		_, _ = w.Dynamic.Resource(definitions).Patch(context.Background(), name, types.MergePatchType, none, metav1.PatchOptions{})
		_ = w.Dynamic.Resource(definitions).Delete(context.Background(), name, metav1.DeleteOptions{})
	})
}

// F50: a conversion webhook is switched on when the workloads behind its Service are available. Until then custom resources are
// written as before, the former revision can be applied again, and another process goes on.
func TestF50ConversionIsSwitchedOnInTwoSteps(t *testing.T) {
	tests := map[string]struct {
		reason        string
		first         func(ns string) string // the former revision
		next          func(ns string) string
		elsewhere     string // exists beside the bundle
		interim, then string
	}{
		"None to Webhook": {"the case of olm-convrace",
			func(ns string) string { return casks(ns, noConversion, "v1!") },
			func(ns string) string {
				return casks(ns, byService("new"), "v1", "v2!") + casksServer("new", "Deployment")
			},
			"", "None v1! v2", "new v1 v2!"},
		"StatefulSet": {"another kind of workload",
			func(ns string) string { return casks(ns, noConversion, "v1!") },
			func(ns string) string {
				return casks(ns, byService("new"), "v1", "v2!") + casksServer("new", "StatefulSet")
			},
			"", "None v1! v2", "new v1 v2!"},
		"DaemonSet": {"another kind of workload",
			func(ns string) string { return casks(ns, noConversion, "v1!") },
			func(ns string) string {
				return casks(ns, byService("new"), "v1", "v2!") + casksServer("new", "DaemonSet")
			},
			"", "None v1! v2", "new v1 v2!"},
		"same storage": {"only the conversion changes",
			func(ns string) string { return casks(ns, noConversion, "v1!") },
			func(ns string) string {
				return casks(ns, byService("new"), "v1!", "v2") + casksServer("new", "Deployment")
			},
			"", "None v1! v2", "new v1! v2"},
		"old version not served": {"clients of v1 go on until v2 is stored",
			func(ns string) string { return casks(ns, noConversion, "v1!") },
			func(ns string) string {
				return casks(ns, byService("new"), "v1-", "v2!") + casksServer("new", "Deployment")
			},
			"", "None v1! v2", "new v1- v2!"},
		"a version goes": {"the former Pods may use it",
			func(ns string) string { return casks(ns, noConversion, "v1!", "v1beta1") },
			func(ns string) string {
				return casks(ns, byService("new"), "v1", "v2!") + casksServer("new", "Deployment")
			},
			"", "None v1! v2 v1beta1", "new v1 v2!"},
		"server exists": {"its Service and Deployment are of another bundle",
			func(ns string) string { return casks(ns, noConversion, "v1!") },
			func(ns string) string { return casks(ns, byService("new"), "v1", "v2!") },
			casksServer("new", "Deployment"), "None v1! v2", "new v1 v2!"},
		"workload exists": {"only the Service is in the bundle",
			func(ns string) string { return casks(ns, noConversion, "v1!") },
			func(ns string) string { return casks(ns, byService("new"), "v1", "v2!") + casksService("new") },
			casksWorkload("new", "Deployment"), "None v1! v2", "new v1 v2!"},
		"another webhook": {"the former one goes on converting",
			func(ns string) string { return casks(ns, byService("old"), "v1!") + casksServer("old", "Deployment") },
			func(ns string) string {
				return casks(ns, byService("new"), "v1", "v2!") + casksServer("new", "Deployment")
			},
			"", "old v1! v2", "new v1 v2!"},
		"another version of one webhook": {"the former Pods behind the same Service do not know v2",
			func(ns string) string { return casks(ns, byService("new"), "v1!") + casksServer("new", "Deployment") },
			func(ns string) string {
				return casks(ns, byService("new"), "v1", "v2!") + casksServer("new", "Deployment")
			},
			"", "new v1! v2", "new v1 v2!"},
		"resources of the new version": {"without the webhook they would lose fields",
			func(ns string) string { return casks(ns, noConversion, "v1!") },
			func(ns string) string {
				return casks(ns, byService("new"), "v1", "v2!") + casksServer("new", "Deployment") + caskOf(ns, "v2", "own")
			},
			"", "None v1! v2", "new v1 v2!"},
		"resources of the former version": {"they are written meanwhile",
			func(ns string) string { return casks(ns, noConversion, "v1!") },
			func(ns string) string {
				return casks(ns, byService("new"), "v1!", "v2") + casksServer("new", "Deployment") + caskOf(ns, "v1", "own")
			},
			"", "None v1! v2", "new v1! v2"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, workspace.Everything...)
			w.GrantCluster("installer", workspace.Everything...)
			w.endCasks()
			first, next := tt.first(w.Namespace), tt.next(w.Namespace)
			if result := w.applyCasks(first); !result.Complete() {
				t.Fatal(result.Pending)
			}
			workspace.Eventually(t, "a cask", func() error { return w.brews("v1", "one") })
			if tt.elsewhere != "" {
				other := w.second()
				if result := other.applyCasks(tt.elsewhere); !result.Complete() {
					t.Fatal(result.Pending)
				}
			}
			waits := func() {
				t.Helper()
				result := w.applyCasks(next)
				if result.Complete() || len(result.Errors()) > 0 || result.Waits == nil || !strings.Contains(result.Pending, "new") || !strings.Contains(result.Pending, "stored as v1") {
					t.Errorf("%s: it does not wait for the webhook: %q %v", tt.reason, result.Pending, result.Errors())
				}
				if state := w.caskState(); state != tt.interim {
					t.Errorf("%s: meanwhile the CRD is %q, want %q", tt.reason, state, tt.interim)
				}
				if err := w.brews("v1", "two"); err != nil {
					t.Errorf("%s: meanwhile nothing can be written: %v", tt.reason, err)
				}
			}
			waits()
			w.Restart()
			waits() // also another process
			if result := w.applyCasks(first); !result.Complete() {
				t.Fatalf("%s: the way back: %q %v", tt.reason, result.Pending, result.Errors())
			}
			waits()
			w.runs()
			workspace.Eventually(t, "the webhook is switched on", func() error {
				if result := w.applyCasks(next); !result.Complete() {
					return fmt.Errorf("%q %v", result.Pending, result.Errors())
				}
				return nil
			})
			if state := w.caskState(); state != tt.then {
				t.Errorf("%s: in the end the CRD is %q, want %q", tt.reason, state, tt.then)
			}
			if strings.Contains(next, "{name: own}") {
				return // no webhook answers here
			}
			if p := w.Plan(w.Objects(strings.ReplaceAll(next, "NS", w.Namespace))); p.Count(plan.Unchanged) != p.Len() {
				t.Errorf("%s: the same plan again: %s", tt.reason, p.Summary())
			}
		})
	}
}

// F50: where its server comes after what needs it, a conversion webhook is switched on at once, and the plan says what that means.
func TestF50ConversionThatIsSwitchedOnAtOnce(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.GrantCluster("installer", workspace.Everything...)
	w.endCasks()
	if result := w.applyCasks(casks(w.Namespace, noConversion, "v1!")); !result.Complete() {
		t.Fatal(result.Pending)
	}
	late := strings.Replace(casksWorkload("new", "Deployment"), "metadata: {name: new,", `metadata: {name: new, annotations: {satchel.dev/phase: "10"},`, 1)
	next := strings.ReplaceAll(casks(w.Namespace, byService("new"), "v1", "v2!")+casksService("new")+late+caskOf(w.Namespace, "v2", "own"), "NS", w.Namespace)
	p, _ := w.safePlan(w.Objects(next), plan.Enforce)
	if text := strings.Join(p.Warnings, "; "); !strings.Contains(text, "at once, because") || !strings.Contains(text, "phase 10") || !strings.Contains(text, "neither read nor written") {
		t.Errorf("the plan warns %q", text)
	}
	w.runs()
	workspace.Eventually(t, "the revision is applied", func() error {
		if result := w.applyCasks(next); !result.Complete() {
			return fmt.Errorf("%q %v", result.Pending, result.Errors())
		}
		return nil
	})
}

// F50: after the switch an earlier CRD without the new version can be applied while the webhook answers: everything is stored
// in the earlier version first. A webhook that does not answer holds that only where there are resources.
func TestF50GoingBackAfterTheSwitch(t *testing.T) {
	for name, count := range map[string]int{"with resources": 2, "without": 0} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, workspace.Everything...)
			w.GrantCluster("installer", workspace.Everything...)
			c := newConverter(t)
			next := c.bundle(w, "v1")
			first := unconverting(c.bundle(w, "v1alpha1"))
			start, end := strings.Index(first, "  - name: v1\n"), strings.Index(first, "---\napiVersion: v1\nkind: ConfigMap")
			first = first[:start] + first[end:]
			w.MustApply(first)
			w.MustApply(next)
			for i := range count {
				widget := &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": w.widget().GroupVersion().String(), "kind": "Widget",
					"metadata": map[string]any{"name": fmt.Sprintf("w%d", i)}, "spec": map[string]any{"bulk": int64(i + 1)},
				}}
				workspace.Eventually(t, "a widget", func() error {
					_, err := w.Dynamic.Resource(w.widget()).Namespace(w.Namespace).Apply(t.Context(), widget.GetName(), widget, metav1.ApplyOptions{FieldManager: "user"})
					return err
				})
			}
			c.die(w)
			result := w.Apply(first)
			if count > 0 {
				for _, words := range []string{"could not be written as v1alpha1", "stores v1alpha1 again", "--subresource=status"} {
					if !strings.Contains(result.Pending, words) {
						t.Errorf("with a dead webhook: %q does not say %q %v", result.Pending, words, result.Errors())
					}
				}
				c.revive()
				w.MustApply(first)
			} else if !result.Complete() {
				t.Errorf("without resources: %q %v", result.Pending, result.Errors())
			}
			if stored := w.stored(); len(stored) != 1 || stored[0] != "v1alpha1" {
				t.Errorf("stored versions %v", stored)
			}
			list, err := w.Dynamic.Resource(w.alpha()).Namespace(w.Namespace).List(t.Context(), metav1.ListOptions{})
			if err != nil || len(list.Items) != count {
				t.Fatalf("%d widgets, %v", len(list.Items), err)
			}
			for _, item := range list.Items {
				if size, _, _ := unstructured.NestedInt64(item.Object, "spec", "size"); size == 0 {
					t.Errorf("%s lost its value: %v", item.GetName(), item.Object["spec"])
				}
			}
			if p := w.Plan(w.Objects(first)); !p.Quiet() {
				t.Error(p.Summary())
			}
		})
	}
}
