// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// TestPageExamples creates all YAML of the pages about the kinds in a dry run. What begins with spec is that of the kind.
// tests/docs does so with the examples of all other pages.
func TestPageExamples(t *testing.T) {
	a := newAdmission(t)
	for kind, file := range map[string]string{
		v1alpha1.BundleSourceKind:     "../../docs/bundlesource.md",
		v1alpha1.BundleDeploymentKind: "../../docs/bundledeployment.md",
		v1alpha1.BundleApprovalKind:   "../../docs/bundleapproval.md",
		v1alpha1.BundleCatalogKind:    "../../docs/bundlecatalog.md",

		v1alpha1.BundleImagePolicyKind: "../../docs/bundleimagepolicy.md",
	} {
		texts := regexp.MustCompile("(?s)\n```yaml\n(.*?)```\n").FindAllStringSubmatch(read(t, file), -1)
		if len(texts) < 2 {
			t.Errorf("only %d examples were found in %s", len(texts), file)
		}
		for i, match := range texts {
			t.Run(fmt.Sprint(kind, i+1), func(t *testing.T) { a.example(t, kind, match[1]) })
		}
	}
}

// TestSamples creates the samples of sources in a dry run.
func TestSamples(t *testing.T) {
	a := newAdmission(t)
	samples, err := filepath.Glob("../../config/samples/templates/sources/*.yaml")
	if err != nil || len(samples) < 3 {
		t.Fatalf("%d samples: %v", len(samples), err)
	}
	for _, sample := range samples {
		if filepath.Base(sample) != "kustomization.yaml" {
			t.Run(filepath.Base(sample), func(t *testing.T) { a.example(t, v1alpha1.BundleSourceKind, read(t, sample)) })
		}
	}
}

// resources are the kinds in the examples that the control plane knows.
var resources = map[string]schema.GroupVersionResource{
	"BundleSource":      v1alpha1.GroupVersion.WithResource("bundlesources"),
	"BundleDeployment":  v1alpha1.GroupVersion.WithResource("bundledeployments"),
	"BundleApproval":    v1alpha1.GroupVersion.WithResource("bundleapprovals"),
	"BundleCatalog":     v1alpha1.GroupVersion.WithResource("bundlecatalogs"),
	"BundleImagePolicy": v1alpha1.GroupVersion.WithResource("bundleimagepolicies"),
	"ServiceAccount":    {Version: "v1", Resource: "serviceaccounts"},
	"ConfigMap":         {Version: "v1", Resource: "configmaps"},
	"Role":              {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
	"RoleBinding":       {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
	"NetworkPolicy":     {Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"},
}

// example creates all objects of a text in a dry run.
func (a admission) example(t *testing.T, kind, text string) {
	t.Helper()
	for document := range strings.SplitSeq(text, "\n---\n") {
		a.exampleObject(t, kind, document)
	}
}

func (a admission) exampleObject(t *testing.T, kind, text string) {
	t.Helper()
	if strings.HasPrefix(text, "spec:\n") {
		text = "apiVersion: " + v1alpha1.GroupVersion.String() + "\nkind: " + kind + "\nmetadata:\n  name: example\n" + text
	}
	var content map[string]any
	if err := yaml.UnmarshalStrict([]byte(text), &content); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	object := &unstructured.Unstructured{Object: content}
	resource, known := resources[object.GetKind()]
	if !known {
		t.Fatalf("the kind %s is not known to this test", object.GetKind())
	}
	object.SetNamespace(a.namespace)
	_, err := a.client.Resource(resource).Namespace(a.namespace).Create(t.Context(), object, metav1.CreateOptions{
		FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll},
	})
	if err != nil {
		t.Errorf("%v in\n%s", err, text)
	}
}
