// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/certificate"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/artifact/lastapplied"
	"github.com/satchel-dev/satchel/internal/controller/deployment/certificates"
	"github.com/satchel-dev/satchel/internal/controller/deployment/snapshot"
	"github.com/satchel-dev/satchel/internal/convert"
)

const oldLayout = `{"revision":"v1","target":"uid","objects":[{"apiVersion":"v1","data":{"a":"b"},"kind":"ConfigMap","metadata":{"name":"a","namespace":"shop"}}]}`

// A snapshot of the layout without certificates is read and written unchanged.
func TestF30SnapshotOfTheOldLayout(t *testing.T) {
	snapshots, err := lastapplied.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := snapshots.Save("uid", []byte(oldLayout)); err != nil {
		t.Fatal(err)
	}
	last, found, err := snapshot.Read(snapshots, "uid")
	if err != nil || !found || len(last.Objects) != 1 || len(last.Certificates) != 0 {
		t.Fatalf("read %+v, found %v (%v)", last, found, err)
	}
	if listed := last.Inventory(certificate.AuthorityID(inventory.Owner{Namespace: "shop", Name: "app"})); listed.Len() != 1 {
		t.Errorf("the inventory lists %v, want the ConfigMap alone", listed.Entries)
	}
	again, err := json.Marshal(last)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(oldLayout, string(again)); diff != "" {
		t.Errorf("without certificates the layout is another one (-want +got):\n%s", diff)
	}
}

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
	s := &state{subject: subject{object: &v1alpha1.BundleDeployment{}}, rendered: rendered{issued: &certificates.Issuance{}, wanted: []convert.Certificate{second}}}
	s.object.UID = "uid"
	for name, c := range cases {
		last.Objects = append(last.Objects, webhook(name, c.last))
		if c.now != "" {
			s.rendered.desired = append(s.rendered.desired, webhook(name, c.now))
		}
	}
	snapshots, err := lastapplied.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s.snapshot = snapshot.NewReader(snapshots, "uid")
	data, err := json.Marshal(last)
	if err == nil {
		err = snapshots.Save("uid", data)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			fields := s.lastFields(inventory.IDOf(webhook(name, "")))
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
	if s.lastFields(inventory.IDOf(webhook("new", ""))) != nil {
		t.Error("an object that was never applied had fields")
	}
}

// With a lost status, what certify added is found through the snapshot.
func TestSnapshotListsTheSecrets(t *testing.T) {
	last := snapshot.Snapshot{Target: "uid", Certificates: []convert.Certificate{{Namespace: "tools", Secret: "web-cert"}}}
	listed := last.Inventory(certificate.AuthorityID(inventory.Owner{Namespace: "shop", Name: "app"}))
	for _, id := range []inventory.ID{{Kind: "Secret", Namespace: "shop", Name: "satchel-ca-app"}, {Kind: "Secret", Namespace: "tools", Name: "web-cert"}} {
		if entry, found := listed.Get(id); !found || entry.Confirmed() {
			t.Errorf("%s: listed %v, confirmed %v; want it listed as planned", id, found, entry.Confirmed())
		}
	}
}
