// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

// signedServer serves an archive with a detached signature, or fails as it is told.
type signedServer struct {
	*httptest.Server
	archive, signature atomic.Int64 // statuses
}

func serveSigned(t *testing.T, s signer) *signedServer {
	t.Helper()
	content := pack(t, files("a.yaml", "one"))
	signature := s.sign(t, content)
	served := &signedServer{}
	served.archive.Store(http.StatusOK)
	served.signature.Store(http.StatusOK)
	served.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		status, body := served.archive.Load(), content
		if strings.HasSuffix(request.URL.Path, ".sig") {
			status, body = max(status, served.signature.Load()), []byte(signature)
		}
		if status != http.StatusOK {
			w.WriteHeader(int(status))
			return
		}
		http.ServeContent(w, request, "b.tar", time.Time{}, bytes.NewReader(body))
	}))
	t.Cleanup(served.Close)
	return served
}

func (s *signedServer) sources() []v1alpha1.Source {
	return []v1alpha1.Source{{HTTP: &v1alpha1.HTTPSource{URL: s.URL + "/b.tar", Verify: &v1alpha1.ArchiveVerification{
		SignatureURL: s.URL + "/b.tar.sig", SecretRef: &v1alpha1.LocalReference{Name: "keys"},
	}}}}
}

// TestM34TrustIsTakenAway: content that was accepted by a removed key is not offered any more, whatever else fails and
// however long the interval is; the restored key accepts it again without the upstream.
func TestM34TrustIsTakenAway(t *testing.T) {
	r := newRig(t)
	alice, mallory := newSigner(t), newSigner(t)
	for name, tc := range map[string]struct {
		reason             string
		archive, signature int64
		suspend, withdrawn bool
	}{
		"not-found": {"the archive is gone", http.StatusNotFound, http.StatusOK, false, false},
		"failing":   {"the server fails", http.StatusInternalServerError, http.StatusOK, false, false},
		"unsigned":  {"only the signature fails", http.StatusOK, http.StatusInternalServerError, false, false},
		"suspended": {"nothing is asked", http.StatusOK, http.StatusOK, true, false},
		"interval":  {"it is asked at once, and there is no trusted signature", http.StatusOK, http.StatusOK, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := controlplane.NewNamespace(t, r.cp)
			server := serveSigned(t, alice)
			r.secret(t, namespace, "keys", map[string]string{"alice.pub": alice.public(t)})
			key := r.create(t, namespace, name, server.sources(), func(s *v1alpha1.BundleSource) {
				s.Spec.Interval.Duration, s.Spec.ExternalArtifact = 24*time.Hour, true
			})
			first := r.ready(t, key)
			if name == "suspended" {
				r.edit(t, key, func(s *v1alpha1.BundleSource) { s.Spec.Suspend = true })
			}
			server.archive.Store(tc.archive)
			server.signature.Store(tc.signature)
			r.secret(t, namespace, "keys", map[string]string{"mallory.pub": mallory.public(t)})
			if tc.withdrawn {
				r.withdrawn(t, key)
				return
			}
			changed := r.until(t, key, "the trust has changed", func(s *v1alpha1.BundleSource) bool {
				return conditions.GetReason(s, v1alpha1.SourceVerifiedCondition) == v1alpha1.ReasonTrustChanged
			})
			if !conditions.IsUnknown(changed, v1alpha1.SourceVerifiedCondition) || changed.Status.Artifact == nil || changed.Status.Artifact.Revision != first.Status.Artifact.Revision {
				t.Errorf("%s: %s", tc.reason, describe(changed))
			}
			r.told(t, changed, "the trust settings of the sources have changed")
			r.untilExternal(t, key, "nothing is offered", func(a *meta.Artifact) bool { return a == nil })

			r.secret(t, namespace, "keys", map[string]string{"alice.pub": alice.public(t), "mallory.pub": mallory.public(t)})
			again := r.until(t, key, "it is accepted again without the upstream", func(s *v1alpha1.BundleSource) bool {
				return conditions.IsTrue(s, v1alpha1.SourceVerifiedCondition)
			})
			if !strings.Contains(again.Status.Resolved[0].VerifiedBy, "alice.pub") || again.Status.Resolved[0].Trust == first.Status.Resolved[0].Trust {
				t.Errorf("%s: %+v", tc.reason, again.Status.Resolved)
			}
			r.untilExternal(t, key, "it is offered again", func(a *meta.Artifact) bool { return a != nil })

			r.secret(t, namespace, "keys", map[string]string{"note": "the last key was removed"})
			r.until(t, key, "withdrawn", func(s *v1alpha1.BundleSource) bool {
				return s.Status.Artifact == nil && conditions.IsFalse(s, v1alpha1.SourceVerifiedCondition) && conditions.IsFalse(s, meta.ReadyCondition)
			})
		})
	}
}

// untilExternal waits for what the ExternalArtifact of a source offers.
func (r *rig) untilExternal(t *testing.T, key client.ObjectKey, what string, holds func(*meta.Artifact) bool) {
	t.Helper()
	r.until(t, key, what, func(*v1alpha1.BundleSource) bool {
		found := r.external(t, key)
		return found != nil && holds(found.Status.Artifact)
	})
}
