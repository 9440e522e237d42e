// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

// private puts a login before the registry, and returns its host.
func (r *rig) private(t *testing.T, user, password string) string {
	t.Helper()
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: r.registry.Host()})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if u, p, _ := request.BasicAuth(); u != user || p != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="private"`)
			http.Error(w, `{"errors":[{"code":"UNAUTHORIZED"}]}`, http.StatusUnauthorized)
			return
		}
		proxy.ServeHTTP(w, request)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func dockerConfig(host, user, password string) map[string]string {
	return map[string]string{corev1.DockerConfigJsonKey: fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`,
		host, base64.StdEncoding.EncodeToString([]byte(user+":"+password)))}
}

func TestImageLogin(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	if _, err := r.registry.Push(t.Context(), "private:v1", files("a.yaml", "one")); err != nil {
		t.Fatal(err)
	}
	host := r.private(t, "me", "CANARY-pull")
	r.secret(t, namespace, "pull", dockerConfig(host, "me", "CANARY-pull"))
	r.secret(t, namespace, "other", dockerConfig("registry.example.org", "me", "CANARY-other"))
	r.secret(t, namespace, "broken", map[string]string{corev1.DockerConfigJsonKey: `{"auths":{"` + host + `":{"auth":"CANARY"}}}`})
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "puller"},
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "other"}, {Name: "missing"}, {Name: "pull"}}}
	if err := r.admin.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		secret, account string
		reason, says    string
	}{
		"secret":          {secret: "pull"},
		"account":         {account: "puller"},
		"both":            {secret: "other", account: "puller"},
		"anonymous":       {reason: v1alpha1.ReasonUnauthorized, says: "check the name"},
		"of-others":       {secret: "other", reason: v1alpha1.ReasonUnauthorized, says: "secret " + namespace + "/other"},
		"malformed":       {secret: "broken", reason: v1alpha1.ReasonRefused, says: "secret " + namespace + "/broken"},
		"missing":         {secret: "missing", reason: v1alpha1.ReasonNotFound, says: "secret " + namespace + "/missing does not exist"},
		"missing-account": {account: "missing", reason: v1alpha1.ReasonNotFound, says: "serviceaccount " + namespace + "/missing does not exist"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := image(host + "/private:v1")
			if tt.secret != "" {
				source[0].Image.SecretRef = &v1alpha1.LocalReference{Name: tt.secret}
			}
			key := r.create(t, namespace, name, source, func(s *v1alpha1.BundleSource) { s.Spec.ServiceAccountName = tt.account })
			if tt.reason == "" {
				r.ready(t, key)
				return
			}
			failed := r.unready(t, key, tt.reason)
			if message := conditions.GetMessage(failed, meta.ReadyCondition); !strings.Contains(message, tt.says) || strings.Contains(message, "CANARY") {
				t.Errorf("the message is %q", message)
			}
		})
	}
}

func TestImageRange(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	for _, tag := range []string{"v1.2.0", "v1.10.0", "v2.0.0", "v1.11.0-rc.1", "latest"} {
		if _, err := r.registry.Push(t.Context(), "ranged:"+tag, files("a.yaml", tag)); err != nil {
			t.Fatal(err)
		}
	}
	source := image(r.registry.Host() + "/ranged")
	source[0].Image.Version = ">=1.2 <2"
	key := r.create(t, namespace, "ranged", source, every(time.Second))
	if s := r.ready(t, key); !strings.HasPrefix(s.Status.Artifact.Revision, "v1.10.0@sha256:") {
		t.Errorf("revision %s", s.Status.Artifact.Revision)
	}
	if _, err := r.registry.Push(t.Context(), "ranged:v1.12.0", files("a.yaml", "newer")); err != nil {
		t.Fatal(err)
	}
	r.until(t, key, "the newer version is followed", func(s *v1alpha1.BundleSource) bool {
		return s.Status.Artifact != nil && strings.HasPrefix(s.Status.Artifact.Revision, "v1.12.0@sha256:")
	})
}

// TestImageRules: contradictory fields are refused on writes.
func TestImageRules(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	secret := &v1alpha1.LocalReference{Name: "x"}
	tests := map[string]struct {
		image v1alpha1.ImageSource
		says  string
	}{
		"range-and-tag":    {v1alpha1.ImageSource{Reference: "example.org:5000/a:v1", Version: "1"}, "remove tag and digest"},
		"range-and-digest": {v1alpha1.ImageSource{Reference: "example.org/a@sha256:" + strings.Repeat("0", 64), Version: "1"}, "remove tag and digest"},
		"cloud-and-proxy":  {v1alpha1.ImageSource{Reference: "example.org/a", Provider: "aws", ProxySecretRef: secret}, ""},
		"cloud-and-ca":     {v1alpha1.ImageSource{Reference: "example.org/a", Provider: "gcp", CertSecretRef: secret}, "a cloud's login goes to that cloud only"},
		"cloud-and-plain":  {v1alpha1.ImageSource{Reference: "example.org/a", Provider: "azure", Insecure: true}, "a cloud's login goes to that cloud only"},
		"unknown-cloud":    {v1alpha1.ImageSource{Reference: "example.org/a", Provider: "ibm"}, "supported values"},
		"range-with-port":  {v1alpha1.ImageSource{Reference: "example.org:5000/a", Version: "1"}, ""},
		"long-range":       {v1alpha1.ImageSource{Reference: "example.org/a", Version: strings.Repeat(">=0 || ", 10_000) + ">=0"}, "may not be more than 255"},
	}
	for name, tt := range tests {
		object := &v1alpha1.BundleSource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		object.Spec.Sources = []v1alpha1.Source{{Image: &tt.image}}
		object.Spec.Suspend = true
		err := r.admin.Create(t.Context(), object)
		switch {
		case tt.says == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tt.says != "" && (err == nil || !strings.Contains(strings.ToLower(err.Error()), tt.says)):
			t.Errorf("%s: %v", name, err)
		}
	}
	source := []v1alpha1.Source{{Image: &v1alpha1.ImageSource{Reference: "123456789012.dkr.ecr.eu-west-1.amazonaws.com/a", Provider: "aws"}}}
	failed := r.unready(t, r.create(t, namespace, "cloud", source, nil), v1alpha1.ReasonRefused)
	if message := conditions.GetMessage(failed, meta.ReadyCondition); !strings.Contains(message, "--cloud-logins does not permit") {
		t.Errorf("the message is %q", message)
	}
}
