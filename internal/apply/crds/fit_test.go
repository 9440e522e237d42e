// SPDX-License-Identifier: Apache-2.0

package crds_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/apply/crds"
)

func crd(t *testing.T, kind, scope, conversion string, versions ...string) *unstructured.Unstructured {
	t.Helper()
	var list strings.Builder
	for _, version := range versions {
		name, unserved := strings.CutSuffix(version, " unserved")
		fmt.Fprintf(&list, "  - {name: %s, served: %t}\n", name, !unserved)
	}
	object := &unstructured.Unstructured{}
	text := fmt.Sprintf("spec:\n  scope: %s\n  names: {kind: %s}\n  conversion: {strategy: %s}\n  versions:\n%s", scope, kind, conversion, &list)
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestUnfit(t *testing.T) {
	for name, tc := range map[string]struct {
		reason       string
		live, wanted *unstructured.Unstructured
		want         string
	}{
		"more versions":    {"all that is used is served", crd(t, "Mouse", "Namespaced", "None", "v1", "v2"), crd(t, "Mouse", "Namespaced", "None", "v1"), ""},
		"version is gone":  {"clients of v1 get errors", crd(t, "Mouse", "Namespaced", "None", "v2"), crd(t, "Mouse", "Namespaced", "None", "v1"), "does not serve version v1"},
		"not served":       {"it is as if it were gone", crd(t, "Mouse", "Namespaced", "None", "v1 unserved", "v2"), crd(t, "Mouse", "Namespaced", "None", "v1"), "does not serve version v1"},
		"was never served": {"it has no clients", crd(t, "Mouse", "Namespaced", "None", "v2"), crd(t, "Mouse", "Namespaced", "None", "v1 unserved", "v2"), ""},
		"webhook":          {"without the webhook resources cannot be read", crd(t, "Mouse", "Namespaced", "Webhook", "v1", "v2"), crd(t, "Mouse", "Namespaced", "None", "v1"), "only the webhook of the newer revision converts"},
		"both webhook":     {"the earlier revision has the webhook, too", crd(t, "Mouse", "Namespaced", "Webhook", "v1", "v2"), crd(t, "Mouse", "Namespaced", "Webhook", "v1"), ""},
		"nothing converts": {"one version needs no conversion", crd(t, "Mouse", "Namespaced", "Webhook", "v1"), crd(t, "Mouse", "Namespaced", "None", "v1"), ""},
		"scope":            {"its resources are others", crd(t, "Mouse", "Cluster", "None", "v1"), crd(t, "Mouse", "Namespaced", "None", "v1"), "defines Mouse (Cluster) and not Mouse (Namespaced)"},
	} {
		t.Run(name, func(t *testing.T) {
			got := crds.Unfit(tc.live, tc.wanted)
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestFinalizers(t *testing.T) {
	if got := crds.Finalizers([]string{"foregroundDeletion", "example.org/cleanup", "orphan"}); len(got) != 1 || got[0] != "example.org/cleanup" {
		t.Errorf("got %v", got)
	}
}
