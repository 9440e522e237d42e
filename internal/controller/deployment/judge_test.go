// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"crypto/rand"
	"encoding/base64"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/certificate"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
)

// secretSignedBy is a Secret that holds a certificate and the key of the same name.
func secretSignedBy(signer string) *unstructured.Unstructured {
	encode := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	return &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"tls.crt": encode(signer), "tls.key": encode(signer)}}}
}

func TestJudgeSecret(t *testing.T) {
	owner := inventory.Owner{Namespace: "shop", Name: "app"}
	authority, serving := certificate.AuthorityID(owner), inventory.ID{Kind: "Secret", Namespace: "shop", Name: "web-cert"}
	for name, c := range map[string]struct {
		reason      string
		id          inventory.ID
		same, stale bool
		signed      string // by whom the live Secret is
		want        verdict
	}{
		"as applied":             {"nobody touched it", serving, true, true, "a", renew},
		"edited":                 {"somebody means it", serving, false, true, "a", changed},
		"written by us":          {"a process died before it could say so, and somebody labelled it", serving, false, false, "b", done},
		"authority as applied":   {"nobody touched it", authority, true, true, "a", renew},
		"authority half done":    {"its successor came, and the status was not stored", authority, false, true, "b", renew},
		"authority put in place": {"somebody means it", authority, false, true, "a", changed},
	} {
		t.Run(name, func(t *testing.T) {
			s := &state{owner: owner, issued: &issuance{
				found:   map[inventory.ID]*unstructured.Unstructured{c.id: secretSignedBy(c.signed)},
				secrets: map[inventory.ID]*unstructured.Unstructured{c.id: secretSignedBy("b")},
			}}
			if c.stale {
				s.issued.set.Stale = []inventory.ID{c.id}
			}
			if got := s.judgeSecret(c.id, c.same); got != c.want {
				t.Errorf("verdict %d, want %d: %s", got, c.want, c.reason)
			}
		})
	}
}

// newBundle holds an authority.
func newBundle(t *testing.T, owner inventory.Owner) []byte {
	t.Helper()
	set, err := certificate.Make(certificate.Input{
		Now: time.Now(), Entropy: rand.Reader, Owner: owner,
		Wanted: []certificate.Request{{Namespace: "shop", Secret: "web-cert", DNSNames: []string{"web.shop.svc"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return set.Bundle
}

func TestJudgeTrusting(t *testing.T) {
	owner := inventory.Owner{Namespace: "shop", Name: "app"}
	first := newBundle(t, owner)
	both := slices.Concat(first, newBundle(t, owner))
	webhook := func(bundle []byte, policy string) *unstructured.Unstructured {
		return certificate.Inject(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": map[string]any{"name": "check"},
			"webhooks": []any{map[string]any{"failurePolicy": policy, "clientConfig": map[string]any{
				"service": map[string]any{"namespace": "shop", "name": "web"},
			}}},
		}}, bundle)
	}
	hashKey := []byte("key")
	applied := func(object *unstructured.Unstructured) inventory.Entry {
		rendered, err := inventory.HashRendered(object, hashKey)
		if err != nil {
			t.Fatal(err)
		}
		return inventory.Entry{Fields: inventory.Hash{1}, Rendered: rendered}
	}
	interrupted := inventory.Entry{Fields: inventory.Hash{1}}
	for name, c := range map[string]struct {
		reason string
		live   *unstructured.Unstructured
		same   bool
		entry  inventory.Entry
		want   verdict
	}{
		"as applied":              {"only the bundle differs", webhook(first, "Ignore"), true, applied(webhook(first, "Ignore")), renew},
		"begun, not written":      {"the process died before", webhook(first, "Ignore"), true, interrupted, renew},
		"begun, written":          {"the process died after", webhook(both, "Ignore"), true, interrupted, renew},
		"written, then edited":    {"it trusts whom it should, and the edit stays", webhook(both, "Fail"), false, interrupted, done},
		"edited":                  {"somebody means it", webhook(first, "Fail"), false, applied(webhook(first, "Ignore")), changed},
		"begun, then edited":      {"somebody means it", webhook(first, "Fail"), false, interrupted, changed},
		"of a newer revision":     {"what was applied last is another one", webhook(first, "Fail"), true, applied(webhook(first, "Fail")), changed},
		"newer, trusts them both": {"nothing to do", webhook(both, "Fail"), true, applied(webhook(first, "Fail")), done},
	} {
		t.Run(name, func(t *testing.T) {
			s := &state{owner: owner, hashKey: hashKey, issued: &issuance{set: certificate.Set{Bundle: both}}}
			desired := webhook(both, "Ignore")
			got, err := s.judgeTrusting(plan.Action{Object: plan.Object{ID: inventory.IDOf(desired), Desired: desired}, Previous: c.entry}, c.live, c.same)
			if err != nil || got != c.want {
				t.Errorf("verdict %d, want %d: %s (%v)", got, c.want, c.reason, err)
			}
		})
	}
}
