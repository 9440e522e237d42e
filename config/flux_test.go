// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// fluxStatus is what a health of Argo CD is for Flux, which waits or fails and knows no more: Argo CD waits for what is
// suspended as for what is in progress.
var fluxStatus = map[string]status.Status{
	healthy: status.CurrentStatus, degraded: status.FailedStatus, progressing: status.InProgressStatus, suspended: status.InProgressStatus,
}

// healthCheckExprs are those that config/flux ships.
func healthCheckExprs(t *testing.T) []kustomize.CustomHealthCheck {
	t.Helper()
	text, err := os.ReadFile("flux/health-check-exprs.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return exprsOf(t, string(text))
}

// exprsOf are those of a Kustomization.
func exprsOf(t *testing.T, text string) []kustomize.CustomHealthCheck {
	t.Helper()
	var kustomization struct {
		Spec struct {
			HealthCheckExprs []kustomize.CustomHealthCheck `json:"healthCheckExprs"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal([]byte(text), &kustomization); err != nil {
		t.Fatal(err)
	}
	return kustomization.Spec.HealthCheckExprs
}

// evaluator evaluates the health of a kind as kustomize-controller does.
func evaluator(t *testing.T, kind string) *cel.StatusEvaluator {
	t.Helper()
	for _, check := range healthCheckExprs(t) {
		if check.Kind != kind || check.APIVersion != v1alpha1.GroupVersion.String() {
			continue
		}
		made, err := cel.NewStatusEvaluator(&check.HealthCheckExpressions)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	t.Fatalf("there are no expressions for a %s", kind)
	return nil
}

func checkFluxHealth(t *testing.T, of *cel.StatusEvaluator, object runtime.Object, argo, reason string) {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	result, err := of.Evaluate(t.Context(), &unstructured.Unstructured{Object: content})
	if err != nil {
		t.Fatalf("%v: %s", err, reason)
	}
	if want := fluxStatus[argo]; result.Status != want {
		t.Errorf("it is %s for Flux, want %s, as it is %s for Argo CD: %s", result.Status, want, argo, reason)
	}
}

func TestFluxHealth(t *testing.T) {
	of := evaluator(t, v1alpha1.BundleDeploymentKind)
	for name, tc := range deploymentStates() {
		t.Run(name, func(t *testing.T) { checkFluxHealth(t, of, deploymentIn(tc), tc.argo, tc.reason) })
	}
}

func TestFluxHealthOfSources(t *testing.T) {
	of := evaluator(t, v1alpha1.BundleSourceKind)
	for name, tc := range sourceStates() {
		t.Run(name, func(t *testing.T) { checkFluxHealth(t, of, sourceIn(tc), tc.argo, tc.reason) })
	}
}

// TestFluxHealthOfRollouts is R32: Flux judges a BundleRollout by kstatus, without expressions.
func TestFluxHealthOfRollouts(t *testing.T) {
	for name, tc := range rolloutStates() {
		t.Run(name, func(t *testing.T) {
			object := rolloutIn(tc)
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
			if err != nil {
				t.Fatal(err)
			}
			result, err := status.Compute(&unstructured.Unstructured{Object: content})
			if err != nil {
				t.Fatal(err)
			}
			want := fluxStatus[tc.argo]
			if object.DeletionTimestamp != nil {
				want = status.TerminatingStatus
			}
			if result.Status != want {
				t.Errorf("it is %s for Flux, want %s, as it is %s for Argo CD: %s", result.Status, want, tc.argo, tc.reason)
			}
		})
	}
}

// TestGuideHasTheHealthCheckExprs wants the Kustomization of the guide to have the expressions that are tested here.
func TestGuideHasTheHealthCheckExprs(t *testing.T) {
	guide, err := os.ReadFile("../docs/guides/flux.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(guide), -1) {
		if strings.Contains(match[1], "healthCheckExprs:") {
			if diff := cmp.Diff(healthCheckExprs(t), exprsOf(t, match[1])); diff != "" {
				t.Errorf("config/flux/health-check-exprs.yaml and the guide (-file +guide):\n%s", diff)
			}
			return
		}
	}
	t.Error("the guide has no healthCheckExprs")
}

// TestFluxComponent builds the component on CRDs of the shape that Flux's have.
func TestFluxComponent(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, alerts string
		fails          bool
	}{
		"Flux 2.8":        {"the kinds are added", "v1beta3", false},
		"another version": {"the paths may lead elsewhere: nothing is changed, and the user is told", "v1", true},
	} {
		t.Run(name, func(t *testing.T) {
			files := filesys.MakeFsInMemory()
			for _, file := range []string{"kustomization.yaml", "rbac.yaml"} {
				content, err := os.ReadFile("flux/" + file)
				if err != nil {
					t.Fatal(err)
				}
				writeFile(t, files, "/flux/"+file, string(content))
			}
			writeFile(t, files, "/cluster/kustomization.yaml", "resources: [crds.yaml]\ncomponents: [../flux]\n")
			writeFile(t, files, "/cluster/crds.yaml", notificationCRD("alerts", "Alert", tc.alerts, "eventSources")+"---\n"+notificationCRD("receivers", "Receiver", "v1", "resources"))
			built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, "/cluster")
			if (err != nil) != tc.fails {
				t.Fatalf("%v: %s", err, tc.reason)
			}
			if tc.fails {
				return
			}
			for _, resource := range built.Resources() {
				if resource.GetKind() == "CustomResourceDefinition" {
					checkKinds(t, resource.MustYaml())
				}
			}
		})
	}
}

// notificationCRD is the part of a CRD of Flux that is patched.
func notificationCRD(plural, kind, version, list string) string {
	return strings.NewReplacer("PLURAL", plural, "KIND", kind, "VERSION", version, "LIST", list).Replace(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: PLURAL.notification.toolkit.fluxcd.io}
spec:
  group: notification.toolkit.fluxcd.io
  names: {kind: KIND, plural: PLURAL}
  versions:
  - name: VERSION
    schema:
      openAPIV3Schema:
        properties:
          spec:
            properties:
              LIST:
                items:
                  properties:
                    kind: {type: string, enum: [Bucket, ExternalArtifact]}
`)
}

// checkKinds wants the kinds of Satchel beside those of Flux.
func checkKinds(t *testing.T, text string) {
	t.Helper()
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal([]byte(text), &crd); err != nil {
		t.Fatal(err)
	}
	for name, list := range crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties {
		var kinds []string
		for _, value := range list.Items.Schema.Properties["kind"].Enum {
			kinds = append(kinds, strings.Trim(string(value.Raw), `"`))
		}
		if diff := cmp.Diff([]string{"Bucket", "ExternalArtifact", v1alpha1.BundleSourceKind, v1alpha1.BundleDeploymentKind}, kinds); diff != "" {
			t.Errorf("%s of %s (-want +got):\n%s", name, crd.Name, diff)
		}
	}
}

func writeFile(t *testing.T, files filesys.FileSystem, name, content string) {
	t.Helper()
	if err := files.WriteFile(name, []byte(content)); err != nil {
		t.Fatal(err)
	}
}
