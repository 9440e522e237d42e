// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

func TestMain(m *testing.M) { os.Exit(controlplane.RunMain(m)) }

// admission creates and updates objects as a user does, with unknown fields refused.
type admission struct {
	t         *testing.T
	client    dynamic.Interface
	namespace string
}

// rolloutCRD is the CRD of BundleRollout, which is no part of the default installation.
const rolloutCRD = "../../config/rollouts/crd/satchel.dev_bundlerollouts.yaml"

var installed struct {
	sync.Once
	err error
}

func newAdmission(t *testing.T) admission {
	t.Helper()
	cp := controlplane.Shared(t)
	installed.Do(func() {
		_, installed.err = envtest.InstallCRDs(cp.RESTConfig(), envtest.CRDInstallOptions{
			Paths: []string{"../../config/crd/bases", rolloutCRD}, ErrorIfPathMissing: true,
		})
	})
	if installed.err != nil {
		t.Fatalf("installing the CRDs: %v", installed.err)
	}
	client, err := dynamic.NewForConfig(cp.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return admission{t: t, client: client, namespace: controlplane.NewNamespace(t, cp)}
}

func (a admission) resource(object *unstructured.Unstructured) dynamic.ResourceInterface {
	name := strings.Replace(strings.ToLower(object.GetKind())+"s", "policys", "policies", 1)
	return a.client.Resource(v1alpha1.GroupVersion.WithResource(name)).Namespace(a.namespace)
}

func (a admission) create(object *unstructured.Unstructured, dryRun ...string) (*unstructured.Unstructured, error) {
	return a.resource(object).Create(a.t.Context(), object,
		metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun})
}

func (a admission) update(object *unstructured.Unstructured) error {
	_, err := a.resource(object).Update(a.t.Context(), object,
		metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}})
	return err
}

// object makes an object of a kind from its spec in YAML; "" leaves the spec out.
func object(t *testing.T, kind, name, spec string) *unstructured.Unstructured {
	t.Helper()
	content := map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": kind,
		"metadata": map[string]any{"name": name},
	}
	if spec != "" {
		content["spec"] = parse(t, spec)
	}
	return &unstructured.Unstructured{Object: content}
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var content map[string]any
	if err := yaml.Unmarshal([]byte(text), &content); err != nil {
		t.Fatalf("the test's YAML: %v\n%s", err, text)
	}
	return content
}

// refusal is what a user reads, without the object's name and without the long values.
func refusal(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	if _, after, found := strings.Cut(text, `" is invalid: `); found {
		text = after
	}
	// What the API server adds when a field breaks its schema says nothing about that field.
	if first, _, found := strings.Cut(text, ", <nil>: Invalid value: null: some validation rules were not checked"); found {
		text = strings.TrimPrefix(first, "[")
	}
	for _, letter := range []string{"a", "9", ">=0 || "} {
		text = shortenRun(text, letter)
	}
	return text
}

// shortenRun replaces a long run of one letter.
func shortenRun(text, letter string) string {
	run := strings.Repeat(letter, 30)
	for {
		before, after, found := strings.Cut(text, run)
		if !found {
			return text
		}
		text = before + "[" + letter + " many times]" + strings.TrimLeft(after, letter)
	}
}

// admitted is one object that a user might write.
type admitted struct {
	reason string
	name   string // "x" when empty
	spec   string
	want   string // what the user reads; empty when the object is accepted
}

func checkAdmission(t *testing.T, kind string, cases map[string]admitted) {
	t.Helper()
	a := newAdmission(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objectName := tc.name
			if objectName == "" {
				objectName = "x"
			}
			_, err := a.create(object(t, kind, objectName, tc.spec), metav1.DryRunAll)
			if diff := cmp.Diff(tc.want, refusal(err)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// change is an edit of an object that exists.
type change struct {
	reason string
	from   string
	to     string
	want   string
}

func checkChanges(t *testing.T, kind string, cases map[string]change) {
	t.Helper()
	a := newAdmission(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			stored, err := a.create(object(t, kind, "x", tc.from))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := a.resource(stored).Delete(context.Background(), "x", metav1.DeleteOptions{}); err != nil {
					t.Error(err)
				}
			})
			stored.Object["spec"] = parse(t, tc.to)
			if diff := cmp.Diff(tc.want, refusal(a.update(stored))); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
