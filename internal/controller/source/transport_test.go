// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

// T26: the status tells by which certificate authorities the published content was fetched, so that content that came from another
// server is not taken for a new revision of the approved one.
func TestT26ContentByOtherAuthorities(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	var content atomic.Pointer[[]byte]
	serve := func(text string) { packed := pack(t, files("a.yaml", text)); content.Store(&packed) }
	serve("one")
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		packed := *content.Load()
		w.Header().Set("ETag", fmt.Sprintf(`"%x"`, sha256.Sum256(packed)))
		http.ServeContent(w, request, "bundle.tar", time.Time{}, bytes.NewReader(packed))
	}))
	t.Cleanup(server.Close)
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	another, _ := selfSigned(t)
	r.secret(t, namespace, "certs", map[string]string{"ca.crt": authority})
	key := r.create(t, namespace, "archive", []v1alpha1.Source{{HTTP: &v1alpha1.HTTPSource{
		URL: server.URL + "/b.tar", CertSecretRef: &v1alpha1.LocalReference{Name: "certs"},
	}}}, every(time.Hour))
	transport := func(s *v1alpha1.BundleSource) string { return s.Status.Resolved[0].Transport }
	first := r.ready(t, key)
	if transport(first) == "" {
		t.Fatal("the status does not say by which authorities the archive was fetched")
	}
	serve("two")
	second := r.refresh(t, key)
	if second.Status.Artifact.Revision == first.Status.Artifact.Revision || transport(second) != transport(first) {
		t.Errorf("a new revision by the same authorities: %q, before %q", transport(second), transport(first))
	}
	r.secret(t, namespace, "certs", map[string]string{"ca.crt": authority + another})
	if unmoved := r.refresh(t, key); transport(unmoved) != transport(first) {
		t.Errorf("the published content did not come by the new authorities: %q, before %q", transport(unmoved), transport(first))
	}
	serve("three")
	if third := r.refresh(t, key); third.Status.Artifact.Revision == second.Status.Artifact.Revision || transport(third) == transport(first) {
		t.Errorf("a new revision by other authorities: %q, before %q", transport(third), transport(first))
	}
}
