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

// converting is a CRD with a conversion; of its versions "v1!" is stored, "v1-" not served.
func converting(t *testing.T, conversion string, versions ...string) *unstructured.Unstructured {
	t.Helper()
	text := "spec:\n"
	if conversion != "" {
		text += "  conversion: " + conversion + "\n"
	}
	text += "  versions:\n"
	for _, version := range versions {
		text += fmt.Sprintf("  - {name: %s, served: %t, storage: %t}\n",
			strings.TrimRight(version, "!-"), !strings.HasSuffix(version, "-"), strings.HasSuffix(version, "!"))
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

func service(more string) string {
	return "{strategy: Webhook, webhook: {clientConfig: {service: {namespace: a, name: b" + more + "}}}}"
}

const (
	url      = "{strategy: Webhook, webhook: {clientConfig: {url: https://example.org/convert}}}"
	none     = "{strategy: None}"
	injected = "{strategy: Webhook, webhook: {clientConfig: {caBundle: QUJD, service: {namespace: a, name: b}}}}"
)

func TestF50Interim(t *testing.T) {
	tests := map[string]struct {
		reason        string
		live, desired *unstructured.Unstructured
		strategy      string // of the interim one; empty for none
		storage       string
		why           string // it is applied at once
	}{
		"None to a Service":     {"the webhook cannot answer yet", converting(t, none, "v1!"), converting(t, service(""), "v1", "v2!"), "None", "v1", ""},
		"no conversion":         {"None is the default", converting(t, "", "v1!"), converting(t, service(""), "v1", "v2!"), "None", "v1", ""},
		"another Service":       {"the former one goes on", converting(t, service(""), "v1!"), converting(t, strings.Replace(service(""), "name: b", "name: c", 1), "v1!", "v2"), "Webhook", "v1", ""},
		"another path":          {"the former Pods do not know it", converting(t, service(", path: /a"), "v1!"), converting(t, service(", path: /b"), "v1!"), "Webhook", "v1", ""},
		"another port":          {"the former Pods do not listen there", converting(t, service(""), "v1!"), converting(t, service(", port: 8443"), "v1!"), "Webhook", "v1", ""},
		"URL to a Service":      {"the former one goes on", converting(t, url, "v1!"), converting(t, service(""), "v1!"), "Webhook", "v1", ""},
		"same, another storage": {"the former Pods do not know v2", converting(t, service(""), "v1!"), converting(t, service(", port: 443"), "v1", "v2!"), "Webhook", "v1", ""},
		"same":                  {"nothing changes", converting(t, service(""), "v1!"), converting(t, service(", port: 443"), "v1!", "v2"), "", "", ""},
		"injected CA":           {"trust is no other webhook", converting(t, injected, "v1!"), converting(t, service(""), "v1!"), "", "", ""},
		"to None":               {"the migrator takes care", converting(t, service(""), "v1!"), converting(t, none, "v1!"), "", "", ""},
		"None to None":          {"nothing is called", converting(t, none, "v1!"), converting(t, none, "v1", "v2!"), "", "", ""},
		"to a URL":              {"nothing tells when it answers", converting(t, none, "v1!"), converting(t, url, "v1", "v2!"), "", "", "it calls a URL, and not a Service"},
		"stored version goes":   {"the API server takes no such CRD", converting(t, none, "v1!"), converting(t, service(""), "v2!"), "", "", "spec.versions lacks v1, in which resources are stored"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			before := tt.desired.DeepCopy()
			interim := crds.Interim(tt.live, tt.desired)
			if why := crds.WhyNoInterim(tt.live, tt.desired); why != tt.why {
				t.Errorf("%s: at once because %q, want %q", tt.reason, why, tt.why)
			}
			if (interim == nil) != (tt.strategy == "") {
				t.Fatalf("%s: got %v", tt.reason, interim)
			}
			if fmt.Sprint(before) != fmt.Sprint(tt.desired) {
				t.Errorf("%s: the desired CRD was changed: %v", tt.reason, tt.desired)
			}
			if interim == nil {
				return
			}
			strategy, _, _ := unstructured.NestedString(interim.Object, "spec", "conversion", "strategy")
			storage, _ := crds.Versions(interim)
			if strategy != tt.strategy || storage != tt.storage {
				t.Errorf("%s: got %s, stored as %s", tt.reason, strategy, storage)
			}
		})
	}
}

func TestF50StoredBefore(t *testing.T) {
	stored := func(crd *unstructured.Unstructured, versions ...any) *unstructured.Unstructured {
		_ = unstructured.SetNestedSlice(crd.Object, versions, "status", "storedVersions")
		return crd
	}
	for name, tt := range map[string]struct {
		reason        string
		live, desired *unstructured.Unstructured
		want          string
	}{
		"the newer version goes": {"its webhook converts to v1", stored(converting(t, service(""), "v1", "v2!"), "v1", "v2"), converting(t, none, "v1!"), "v1"},
		"no webhook":             {"fields would be lost", stored(converting(t, none, "v1", "v2!"), "v1", "v2"), converting(t, none, "v1!"), ""},
		"all stay":               {"nothing ends", stored(converting(t, service(""), "v1", "v2!"), "v1", "v2"), converting(t, none, "v1!", "v2"), ""},
		"not stored":             {"the API server accepts it", stored(converting(t, service(""), "v1!", "v2"), "v1"), converting(t, none, "v1!"), ""},
		"unknown version":        {"nothing can be stored in it", stored(converting(t, service(""), "v2!"), "v2"), converting(t, none, "v1!"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := crds.StoredBefore(tt.live, tt.desired); got != tt.want {
				t.Errorf("%s: got %q, want %q", tt.reason, got, tt.want)
			}
		})
	}
}

// F50: a dry run of an earlier CRD keeps the versions that are stored until the apply has stored another one.
func TestF50WithVersionsOf(t *testing.T) {
	live, desired := converting(t, service(""), "v1", "v2!"), converting(t, none, "v1!")
	got := crds.WithVersionsOf(live, desired)
	if served := crds.ServedVersions(got); strings.Join(served, " ") != "v1 v2" {
		t.Errorf("it serves %v", served)
	}
	if storage, _ := crds.Versions(got); storage != "v1" || crds.ConvertsByWebhook(got) {
		t.Errorf("stored as %s: %v", storage, got)
	}
	if storage, _ := crds.Versions(live); storage != "v2" || len(crds.ServedVersions(desired)) != 1 {
		t.Errorf("the arguments were changed: %v %v", live, desired)
	}
}
