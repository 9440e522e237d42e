// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

// presenting is a server over TLS that notes which certificate each request came with.
type presenting struct {
	*httptest.Server
	mu    sync.Mutex
	certs []string
}

func newPresenting(t *testing.T, next http.Handler) *presenting {
	t.Helper()
	p := &presenting{}
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		p.mu.Lock()
		p.certs = append(p.certs, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: request.TLS.PeerCertificates[0].Raw})))
		p.mu.Unlock()
		next.ServeHTTP(w, request)
	}))
	p.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAnyClientCert}
	p.StartTLS()
	t.Cleanup(p.Close)
	return p
}

// seen returns the certificates of the requests since the last time.
func (p *presenting) seen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.certs
	p.certs = nil
	return all
}

// F16: the client certificate in a Secret is replaced before the old one expires. From the
// next reconcile on every request uses the new one: no connection that was opened with the
// old one is used again.
func TestF16RotatedClientCertificate(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	git := newGit(t)
	if _, err := r.registry.Push(t.Context(), "rotated:v1", files("a.yaml", "one")); err != nil {
		t.Fatal(err)
	}
	content := pack(t, files("a.yaml", "one"))
	proxied := func(to string) http.Handler {
		parsed, err := url.Parse(to)
		if err != nil {
			t.Fatal(err)
		}
		return httputil.NewSingleHostReverseProxy(&url.URL{Scheme: parsed.Scheme, Host: parsed.Host})
	}
	cases := map[string]struct {
		handler http.Handler
		source  func(server string, secret *v1alpha1.LocalReference) v1alpha1.Source
	}{
		"http": {http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			http.ServeContent(w, request, "b.tar", time.Time{}, bytes.NewReader(content))
		}), func(server string, secret *v1alpha1.LocalReference) v1alpha1.Source {
			return v1alpha1.Source{HTTP: &v1alpha1.HTTPSource{URL: server + "/b.tar", CertSecretRef: secret}}
		}},
		"git": {proxied(git.URL()), func(server string, secret *v1alpha1.LocalReference) v1alpha1.Source {
			return v1alpha1.Source{Git: &v1alpha1.GitSource{URL: server + git.URL()[strings.LastIndex(git.URL(), "/"):], SecretRef: secret}}
		}},
		"image": {proxied("http://" + r.registry.Host()), func(server string, secret *v1alpha1.LocalReference) v1alpha1.Source {
			return v1alpha1.Source{Image: &v1alpha1.ImageSource{Reference: strings.TrimPrefix(server, "https://") + "/rotated:v1", CertSecretRef: secret}}
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := newPresenting(t, tc.handler)
			authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
			present := func() (certificate string) {
				certificate, key := selfSigned(t)
				r.secret(t, namespace, name, map[string]string{"ca.crt": authority, "tls.crt": certificate, "tls.key": key})
				return certificate
			}
			first := present()
			key := r.create(t, namespace, name, []v1alpha1.Source{tc.source(server.URL, &v1alpha1.LocalReference{Name: name})}, every(time.Hour))
			r.ready(t, key)
			r.refresh(t, key)
			cameWith(t, "before", server.seen(), first)
			second := present()
			r.refresh(t, key)
			r.ready(t, key)
			cameWith(t, "after the Secret changed", server.seen(), second)
		})
	}
}

// cameWith fails unless there were requests, all with one certificate.
func cameWith(t *testing.T, when string, seen []string, want string) {
	t.Helper()
	others := 0
	for _, certificate := range seen {
		if certificate != want {
			others++
		}
	}
	if len(seen) == 0 || others > 0 {
		t.Errorf("%s: %d of %d requests came with another certificate", when, others, len(seen))
	}
}
