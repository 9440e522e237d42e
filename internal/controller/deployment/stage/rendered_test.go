// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/certificate"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/artifact/lastapplied"
	"github.com/satchel-dev/satchel/internal/controller/deployment/certificates"
	"github.com/satchel-dev/satchel/internal/controller/deployment/snapshot"
	"github.com/satchel-dev/satchel/internal/convert"
)

// The CA bundle of a webhook counts as applied by this deployment only if certify
// injected it last, or does now.
func TestBundlesOfTheLastApply(t *testing.T) {
	webhook := func(name, from string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
			"metadata": map[string]any{"name": name, "annotations": map[string]any{certificate.InjectAnnotation: from}},
			"webhooks": []any{map[string]any{"clientConfig": map[string]any{"service": map[string]any{"namespace": "tools", "name": "web"}}}},
		}}
	}
	first, second := convert.Certificate{Namespace: "tools", Secret: "first"}, convert.Certificate{Namespace: "tools", Secret: "second"}
	cases := map[string]struct {
		reason    string
		last, now string // from which Secret; now empty: not in the revision
		want      bool
	}{
		"stays":     {"it trusts the same as before", "tools/first", "tools/first", true},
		"renamed":   {"the Secret has another name", "tools/first", "tools/second", true},
		"released":  {"it trusted our certificates, and does no longer", "tools/first", "tools/of-others", true},
		"taken":     {"another client injected it before", "tools/of-others", "tools/second", true},
		"of others": {"it never was ours", "tools/of-others", "tools/of-others", false},
		"gone":      {"it never was ours, and left the bundle", "tools/of-others", "", false},
	}
	last := snapshot.Snapshot{Certificates: []convert.Certificate{first}}
	of := &Subject{Object: &v1alpha1.BundleDeployment{}}
	r := &Rendered{Issued: &certificates.Issuance{}, Wanted: []convert.Certificate{second}}
	of.Object.UID = "uid"
	for name, c := range cases {
		last.Objects = append(last.Objects, webhook(name, c.last))
		if c.now != "" {
			r.Desired = append(r.Desired, webhook(name, c.now))
		}
	}
	snapshots, err := lastapplied.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	of.Snapshot = snapshot.NewReader(snapshots, "uid")
	data, err := json.Marshal(last)
	if err == nil {
		err = snapshots.Save("uid", data)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			fields := r.LastFields(of, inventory.IDOf(webhook(name, "")))
			hooks, found, _ := unstructured.NestedSlice(fields.Object, "webhooks")
			if !found {
				t.Fatal("it is not in the snapshot")
			}
			_, got, _ := unstructured.NestedString(hooks[0].(map[string]any), "clientConfig", "caBundle") //nolint:forcetypeassert // as above
			if got != c.want {
				t.Errorf("the bundle counts: %v, want %v: %s", got, c.want, c.reason)
			}
		})
	}
	if r.LastFields(of, inventory.IDOf(webhook("new", ""))) != nil {
		t.Error("an object that was never applied had fields")
	}
}
