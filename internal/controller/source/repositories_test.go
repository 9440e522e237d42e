// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"crypto/ed25519"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"golang.org/x/crypto/ssh"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/upstream"
)

func newGit(t *testing.T) *upstream.Git {
	t.Helper()
	git, err := upstream.NewGit()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := git.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := git.Commit("first", files("a.yaml", "one")); err != nil {
		t.Fatal(err)
	}
	return git
}

// before puts a login before a server, and returns its URL.
func before(t *testing.T, target string, allowed func(*http.Request) bool) string {
	t.Helper()
	parsed, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: parsed.Scheme, Host: parsed.Host})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if !allowed(request) {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		request.Header.Del("Authorization")
		proxy.ServeHTTP(w, request)
	}))
	t.Cleanup(server.Close)
	return server.URL + parsed.Path
}

func identity(t *testing.T) string {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "CANARY")
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(block))
}

func TestGitLogin(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	git := newGit(t)
	basic := before(t, git.URL(), func(request *http.Request) bool {
		user, password, _ := request.BasicAuth()
		return user == "me" && password == "CANARY-git"
	})
	bearer := before(t, git.URL(), func(request *http.Request) bool { return request.Header.Get("Authorization") == "Bearer CANARY-token" })
	overSSH, knownHosts, stop, err := git.ServeSSH()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	r.secret(t, namespace, "password", map[string]string{"username": "me", "password": "CANARY-git"})
	r.secret(t, namespace, "token", map[string]string{"bearerToken": "CANARY-token"})
	r.secret(t, namespace, "key", map[string]string{"identity": identity(t), "known_hosts": knownHosts})
	r.secret(t, namespace, "no-hosts", map[string]string{"identity": identity(t)})
	r.secret(t, namespace, "other-hosts", map[string]string{"identity": identity(t), "known_hosts": strings.Replace(knownHosts, "127.0.0.1", "127.0.0.2", 1)})
	r.secret(t, namespace, "half-app", map[string]string{"githubAppID": "12", "githubAppPrivateKey": "CANARY"})
	tests := map[string]struct {
		git          v1alpha1.GitSource
		secret       string
		reason, says string
	}{
		"password":    {v1alpha1.GitSource{URL: basic}, "password", "", ""},
		"token":       {v1alpha1.GitSource{URL: bearer}, "token", "", ""},
		"name":        {v1alpha1.GitSource{URL: basic, Ref: &v1alpha1.GitRef{Name: "refs/heads/main"}}, "password", "", ""},
		"ssh":         {v1alpha1.GitSource{URL: overSSH}, "key", "", ""},
		"anonymous":   {v1alpha1.GitSource{URL: basic}, "", v1alpha1.ReasonUnauthorized, "check the URL"},
		"wrong":       {v1alpha1.GitSource{URL: bearer}, "password", v1alpha1.ReasonUnauthorized, "secret " + namespace + "/password"},
		"no-hosts":    {v1alpha1.GitSource{URL: overSSH}, "no-hosts", v1alpha1.ReasonRefused, "known_hosts"},
		"other-hosts": {v1alpha1.GitSource{URL: overSSH}, "other-hosts", v1alpha1.ReasonRefused, "known_hosts has no key of"},
		"half-app": {v1alpha1.GitSource{URL: "https://git.example.org/a", Provider: "github"}, "half-app", v1alpha1.ReasonRefused,
			"either githubAppInstallationID or githubAppInstallationOwner"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.secret != "" {
				tt.git.SecretRef = &v1alpha1.LocalReference{Name: tt.secret}
			}
			key := r.create(t, namespace, name, []v1alpha1.Source{{Git: &tt.git}}, every(time.Hour))
			if tt.reason == "" {
				if got := names(t, download(t, r.ready(t, key).Status.Artifact)); strings.Join(got, " ") != "a.yaml" {
					t.Errorf("files %v", got)
				}
				return
			}
			failed := r.unready(t, key, tt.reason)
			if message := conditions.GetMessage(failed, meta.ReadyCondition); !strings.Contains(message, tt.says) || strings.Contains(message, "CANARY") {
				t.Errorf("the message is %q", message)
			}
		})
	}
}

// TestM15GitRules: invalid repositories and contradictory fields are refused on writes.
func TestM15GitRules(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	secret := &v1alpha1.LocalReference{Name: "x"}
	tests := map[string]struct {
		git  v1alpha1.GitSource
		says string
	}{
		"file":         {v1alpha1.GitSource{URL: "file:///etc"}, "must be a url"},
		"local":        {v1alpha1.GitSource{URL: "/srv/git"}, "must be a url"},
		"ext":          {v1alpha1.GitSource{URL: "ext::sh -c touch"}, "must be a url"},
		"option":       {v1alpha1.GitSource{URL: "--upload-pack=x"}, "must be a url"},
		"scp":          {v1alpha1.GitSource{URL: "git@example.org:a/b"}, "must be a url"},
		"password":     {v1alpha1.GitSource{URL: "https://me:CANARY@example.org/a"}, "must be a url"},
		"ssh-password": {v1alpha1.GitSource{URL: "ssh://me:CANARY@example.org/a", SecretRef: secret}, "must be a url"},
		"newline":      {v1alpha1.GitSource{URL: "https://example.org/a\nb"}, "must be a url"},
		"no-secret":    {v1alpha1.GitSource{URL: "ssh://git@example.org/a"}, "needs secretref"},
		"app":          {v1alpha1.GitSource{URL: "https://example.org/a", Provider: "github"}, "needs an https:// repository and secretref"},
		"app-over-ssh": {v1alpha1.GitSource{URL: "ssh://git@example.org/a", Provider: "github", SecretRef: secret}, "needs an https:// repository"},
		"short-name":   {v1alpha1.GitSource{URL: "https://example.org/a", Ref: &v1alpha1.GitRef{Name: "main"}}, "begins with refs/"},
		"two-refs":     {v1alpha1.GitSource{URL: "https://example.org/a", Ref: &v1alpha1.GitRef{Name: "refs/x", Tag: "y"}}, "at most one of"},
		"ssh":          {v1alpha1.GitSource{URL: "ssh://git@example.org:22/a/b.git", SecretRef: secret}, ""},
	}
	for name, tt := range tests {
		object := &v1alpha1.BundleSource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		object.Spec.Sources = []v1alpha1.Source{{Git: &tt.git}}
		object.Spec.Suspend = true
		err := r.admin.Create(t.Context(), object)
		switch {
		case tt.says == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tt.says != "" && (err == nil || !strings.Contains(strings.ToLower(err.Error()), tt.says)):
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, ref := range map[string]v1alpha1.GitRef{"config": {Name: "refs/heads/../../config"}, "dash": {Branch: "-x"}, "upstream": {Branch: "@{u}"}} {
		object := &v1alpha1.BundleSource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ref-" + name}}
		object.Spec.Sources = []v1alpha1.Source{{Git: &v1alpha1.GitSource{URL: "https://git.example.org/a", Ref: &ref}}}
		if err := r.admin.Create(t.Context(), object); err == nil || !strings.Contains(err.Error(), "git check-ref-format") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
