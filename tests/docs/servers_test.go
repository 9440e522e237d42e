// SPDX-License-Identifier: Apache-2.0

//go:build linux

package docs

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/gittestserver"

	"github.com/satchel-dev/satchel/tests/upstream"
)

// exampleHosts are the public hosts of examples; privateHost demands a login as
// puller, with the password "secret".
var exampleHosts = []string{"registry.example.org", "git.example.org", "downloads.example.org", "quay.io", "ghcr.io", "github.com"}

const privateHost = "private.example.org"

// servers are what the examples fetch from: a registry and a Git server, with TLS, on loopback.
type servers struct {
	registry  *upstream.Registry
	open      *httptest.Server
	guarded   *httptest.Server
	authority string // a file with the certificates of both
	names     *strings.Replacer
	back      *strings.Replacer
}

func startServers(t *testing.T, dir string) *servers {
	t.Helper()
	// The settings of repositories that are created by a push, as on the large hosts.
	for name, value := range map[string]string{
		"GIT_CONFIG_COUNT": "2", "GIT_CONFIG_KEY_0": "uploadpack.allowAnySHA1InWant", "GIT_CONFIG_VALUE_0": "true",
		"GIT_CONFIG_KEY_1": "init.defaultBranch", "GIT_CONFIG_VALUE_1": "main",
	} {
		t.Setenv(name, value)
	}
	git, err := gittestserver.NewTempGitServer()
	if err != nil {
		t.Fatal(err)
	}
	git.AutoCreate()
	if err := git.StartHTTP(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { git.StopHTTP(); _ = os.RemoveAll(git.Root()) })
	s := &servers{registry: upstream.NewRegistry(t.Context())}
	t.Cleanup(s.registry.Close)
	mux := http.NewServeMux()
	mux.Handle("/", proxy(t, git.HTTPAddress()))
	mux.Handle("/v2/", proxy(t, "http://"+s.registry.Host()))
	s.open, s.guarded = httptest.NewTLSServer(mux), httptest.NewTLSServer(login(mux))
	t.Cleanup(s.open.Close)
	t.Cleanup(s.guarded.Close)
	s.authority = filepath.Join(dir, "authority.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.open.Certificate().Raw})
	if err := os.WriteFile(s.authority, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	s.replace()
	return s
}

// replace prepares the way from the hosts of examples to those of the test, and back.
func (s *servers) replace() {
	host := func(server *httptest.Server) string { return strings.TrimPrefix(server.URL, "https://") }
	forth := []string{privateHost, host(s.guarded)}
	for _, name := range exampleHosts {
		forth = append(forth, name, host(s.open))
	}
	s.names = strings.NewReplacer(forth...)
	s.back = strings.NewReplacer(host(s.guarded), privateHost, "https://"+host(s.open), "https://git.example.org", host(s.open), "registry.example.org")
}

// proxy passes requests on to a server, with the host that was asked, for addresses in answers.
func proxy(t *testing.T, to string) http.Handler {
	t.Helper()
	address, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(address)
		r.Out.Host = r.In.Host
		r.SetXForwarded()
	}}
}

// login wants a name and a password, as a private registry or Git server does.
func login(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, given := r.BasicAuth(); !given || user != "puller" || password != "secret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="private"`)
			http.Error(w, `{"errors":[{"code":"UNAUTHORIZED","message":"log in first"}]}`, http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}
