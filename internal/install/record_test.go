// SPDX-License-Identifier: Apache-2.0

package install

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestRecord(t *testing.T) {
	want := Record{
		Version: "v1.2.3", OwnNamespace: true,
		Options: Options{Namespace: "platform", Values: map[string]any{"image": map[string]any{"registry": "example.org/a"}}},
		Objects: []ID{{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "platform", Name: "a"}, {Version: "v1", Kind: "Namespace", Name: "platform"}},
	}
	kept, err := want.ConfigMap()
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadRecord(kept)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" || kept.GetNamespace() != "platform" {
		t.Errorf("-want +got:\n%s", diff)
	}
	other := []ID{{Group: "apps", Version: "v1beta1", Kind: "Deployment", Namespace: "platform", Name: "a"}}
	if left := got.Without(other); len(left) != 1 || left[0].String() != "Namespace platform" {
		t.Errorf("left are %v", left)
	}
	_ = unstructured.SetNestedField(kept.Object, "nonsense", "data", "options")
	if _, err := ReadRecord(kept); err == nil {
		t.Error("nonsense was read")
	}
}

func TestReleaseOrder(t *testing.T) {
	for name, tc := range map[string]struct {
		a, b  string
		order int
		known bool
	}{
		"older":     {"v1.2.3", "v1.10.0", -1, true},
		"candidate": {"v1.2.3-rc.1", "v1.2.3", -1, true},
		"same":      {"v1.2.3", "v1.2.3", 0, true},
		"described": {"v1.2.3-4-gabcdef0", "v1.2.3", 0, false},
		"dirty":     {"v1.2.3-dirty", "v1.2.3", 0, false},
		"commit":    {"abcdef0", "v1.2.3", 0, false},
		"none":      {"", "v1.2.3", 0, false},
	} {
		if order, known := Order(tc.a, tc.b); order != tc.order || known != tc.known {
			t.Errorf("%s: %d %t", name, order, known)
		}
	}
	if !IsRelease("v1.2.3") || IsRelease("1.2.3") || IsRelease("devel") || IsRelease("") {
		t.Error("releases are not told from others")
	}
}
