// SPDX-License-Identifier: Apache-2.0

package spec_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/helm"
	"github.com/satchel-dev/satchel/internal/convert/registryv1"
	"github.com/satchel-dev/satchel/internal/spec"
)

func TestConversion(t *testing.T) {
	limits := convert.Limits{Objects: 7}
	for name, tc := range map[string]struct {
		reason string
		spec   v1alpha1.BundleDeploymentSpec
		given  spec.Given
		want   convert.Options
	}{
		"least": {
			reason: "defaults hold also where the API server filled in none",
			want: convert.Options{InstallNamespace: "team", Limits: limits, RegistryV1: registryv1.Options{
				CertificateProvider: registryv1.SelfSigned, PodAnnotations: registryv1.AllAnnotations,
			}, Helm: helm.Options{ReleaseName: "x"}},
		},
		"all": {
			reason: "every field has an effect",
			spec: v1alpha1.BundleDeploymentSpec{
				Path: "a", Format: v1alpha1.FormatRegistryV1, Target: v1alpha1.DeploymentTarget{Namespace: "b"},
				Helm: &v1alpha1.HelmOptions{ReleaseName: "e", SchemaValidation: "Warn", ValuesFiles: []v1alpha1.ValuesFile{"h.yaml", "i.yaml"}},
				RegistryV1: &v1alpha1.RegistryV1Options{
					WatchNamespaces: []string{"c"}, CertificateProvider: "service-ca", PodAnnotations: "Required",
					OperatorConditions: true, APIClusterRoles: true, IncludeCustomResources: true,
					DeploymentConfig: &apiextensionsv1.JSON{Raw: []byte(`{"env":[{"name":"D"}]}`)},
				},
			},
			given: spec.Given{Values: map[string]any{"f": "g"}, Capabilities: helm.Capabilities{KubeVersion: "v1.2.3"}},
			want: convert.Options{
				Helm:        helm.Options{ReleaseName: "e", Values: map[string]any{"f": "g"}, Capabilities: helm.Capabilities{KubeVersion: "v1.2.3"}, Schemas: helm.SchemasWarn},
				ValuesFiles: []string{"h.yaml", "i.yaml"},
				Format:      convert.RegistryV1, Path: "a", InstallNamespace: "b", Limits: limits,
				RegistryV1: registryv1.Options{
					WatchNamespaces: []string{"c"}, CertificateProvider: registryv1.ServiceCA, PodAnnotations: registryv1.RequiredAnnotations,
					OperatorConditions: true, APIClusterRoles: true, IncludeCustomResources: true,
					DeploymentConfig: json.RawMessage(`{"env":[{"name":"D"}]}`),
				},
			},
		},
	} {
		d := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "x"}, Spec: tc.spec}
		if diff := cmp.Diff(tc.want, spec.Conversion(d, tc.given, limits)); diff != "" {
			t.Errorf("%s (%s):\n%s", name, tc.reason, diff)
		}
	}
}

// TestEveryOptionIsMapped fails if an option of the converter gets no value from a spec that sets everything.
func TestEveryOptionIsMapped(t *testing.T) {
	given := v1alpha1.RegistryV1Options{
		WatchNamespaces: []string{"a"}, CertificateProvider: "cert-manager", DeploymentConfig: &apiextensionsv1.JSON{Raw: []byte(`{}`)},
		OperatorConditions: true, APIClusterRoles: true, PodAnnotations: "Required", IncludeCustomResources: true, Requirements: "Warn", DuplicateKeys: "Last",
	}
	options := reflect.ValueOf(spec.RegistryV1(&given))
	for i := range options.NumField() {
		if name := options.Type().Field(i).Name; options.Field(i).IsZero() && name != "InstallNamespace" {
			t.Errorf("%s of the converter's options has no value", name)
		}
	}
}
