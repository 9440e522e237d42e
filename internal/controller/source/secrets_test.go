// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

// secret creates a Secret, or replaces its content.
func (r *rig) secret(t *testing.T, namespace, name string, data map[string]string) {
	t.Helper()
	object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	object.StringData = data
	err := r.admin.Create(t.Context(), object)
	if err == nil {
		return
	}
	if err := r.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
	object.Data, object.StringData = nil, data
	if err := r.admin.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// guarded is a web server with one archive for clients with the current password.
type guarded struct {
	*httptest.Server
	password atomic.Value
	asked    atomic.Int64
}

func newGuarded(t *testing.T, content []byte, password string) *guarded {
	t.Helper()
	g := &guarded{}
	g.password.Store(password)
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		g.asked.Add(1)
		if user, given, _ := request.BasicAuth(); user != "me" || given != g.password.Load() {
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		http.ServeContent(w, request, "bundle.tar", time.Now(), bytes.NewReader(content))
	}))
	t.Cleanup(g.Close)
	return g
}

// TestF16RotatedPassword: the upstream changes the password, and later the Secret is
// updated.
func TestF16RotatedPassword(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	server := newGuarded(t, pack(t, files("a.yaml", "one")), "CANARY-first")
	r.secret(t, namespace, "login", map[string]string{"username": "me", "password": "CANARY-first"})
	key := r.create(t, namespace, "archive", []v1alpha1.Source{{HTTP: &v1alpha1.HTTPSource{
		URL: server.URL + "/b.tar", SecretRef: &v1alpha1.LocalReference{Name: "login"},
	}}}, every(time.Hour))
	r.ready(t, key)

	server.password.Store("CANARY-second")
	failed := r.refresh(t, key)
	if conditions.GetReason(failed, meta.ReadyCondition) != v1alpha1.ReasonUnauthorized || failed.Status.Artifact == nil {
		t.Fatalf("after the password was changed:\n%s", describe(failed))
	}
	if text := describe(failed); !strings.Contains(text, "secret "+namespace+"/login") || strings.Contains(text, "CANARY") {
		t.Errorf("the status should name the Secret and nothing that is in it:\n%s", text)
	}
	r.secret(t, namespace, "login", map[string]string{"username": "me", "password": "CANARY-second"})
	changed := time.Now()
	r.ready(t, key)
	took := time.Since(changed)
	t.Logf("noticed %s after the Secret changed", took.Round(time.Millisecond))
	if took > 60*time.Second {
		t.Errorf("the Secret was noticed after %s", took)
	}
}

// TestMissingSecretIsAwaited: a Secret that is created late is detected, and meanwhile
// the upstream gets no requests.
func TestMissingSecretIsAwaited(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	server := newGuarded(t, pack(t, files("a.yaml", "one")), "CANARY-first")
	key := r.create(t, namespace, "archive", []v1alpha1.Source{{HTTP: &v1alpha1.HTTPSource{
		URL: server.URL + "/b.tar", SecretRef: &v1alpha1.LocalReference{Name: "login"},
	}}}, every(time.Hour))
	failed := r.unready(t, key, v1alpha1.ReasonNotFound)
	if message := conditions.GetMessage(failed, meta.ReadyCondition); !strings.Contains(message, "secret "+namespace+"/login does not exist: create it") {
		t.Errorf("the message is %q", message)
	}
	if asked := server.asked.Load(); asked > 0 {
		t.Errorf("%d requests without a login", asked)
	}
	r.secret(t, namespace, "login", map[string]string{"username": "me", "password": "CANARY-first"})
	r.ready(t, key)
}

// TestMalformedSecrets: messages name the problem, but not the contents.
func TestMalformedSecrets(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	reference := func(name string) *v1alpha1.LocalReference { return &v1alpha1.LocalReference{Name: name} }
	login := func(name string) v1alpha1.HTTPSource {
		return v1alpha1.HTTPSource{SecretRef: reference(name)}
	}
	certificates := func(name string) v1alpha1.HTTPSource {
		return v1alpha1.HTTPSource{CertSecretRef: reference(name)}
	}
	proxy := func(name string) v1alpha1.HTTPSource {
		return v1alpha1.HTTPSource{ProxySecretRef: reference(name)}
	}
	tests := map[string]struct {
		data   map[string]string
		source func(string) v1alpha1.HTTPSource
		says   string
	}{
		"no-login":      {map[string]string{"user": "CANARY"}, login, "it has no login: set username and password, or bearerToken"},
		"both":          {map[string]string{"username": "CANARY", "bearerToken": "CANARY"}, login, "both bearerToken and a password"},
		"line-break":    {map[string]string{"username": "me", "password": "CANARY\r\nHost: x"}, login, "control character"},
		"no-certs":      {map[string]string{"ca": "CANARY"}, certificates, "it has no certificates: set ca.crt"},
		"no-pem":        {map[string]string{"ca.crt": "CANARY"}, certificates, "its ca.crt has no PEM certificate"},
		"half-a-pair":   {map[string]string{"tls.crt": "CANARY"}, certificates, "needs both tls.crt and tls.key"},
		"no-pair":       {map[string]string{"tls.crt": "CANARY", "tls.key": "CANARY"}, certificates, "no pair of a PEM certificate"},
		"no-address":    {map[string]string{"proxy": "CANARY"}, proxy, "its address is no URL"},
		"proxy-login":   {map[string]string{"address": "http://CANARY:CANARY@proxy.example.org"}, proxy, "its address has a login in it"},
		"proxy-scheme":  {map[string]string{"address": "socks5://proxy.example.org"}, proxy, "neither http nor https"},
		"proxy-denied":  {map[string]string{"address": "http://169.254.169.254"}, proxy, "169.254.169.254 is denied (metadata service)"},
		"proxy-garbage": {map[string]string{"address": "http://CANARY:\x7f"}, proxy, "its address is no URL"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r.secret(t, namespace, name, tt.data)
			source := tt.source(name)
			source.URL = "https://archive.example.org/b.tgz"
			failed := r.unready(t, r.create(t, namespace, name, []v1alpha1.Source{{HTTP: &source}}, every(time.Hour)), v1alpha1.ReasonRefused)
			message := conditions.GetMessage(failed, meta.ReadyCondition)
			if !strings.Contains(message, tt.says) || strings.Contains(message, "CANARY") || !conditions.IsTrue(failed, meta.StalledCondition) {
				t.Errorf("the message is %q", message)
			}
		})
	}
}

// TestM9ManyLargeSecrets: the memory for the Secrets of one source is bounded.
func TestM9ManyLargeSecrets(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	var sources []v1alpha1.Source
	for i := range 5 {
		name := fmt.Sprint("large-", i)
		r.secret(t, namespace, name, map[string]string{"username": "me", "password": "CANARY", "rest": strings.Repeat("x", 1<<20-100)})
		sources = append(sources, v1alpha1.Source{Destination: name, HTTP: &v1alpha1.HTTPSource{
			URL: "https://127.0.0.1:1/b.tar", Digest: "sha256:" + strings.Repeat("0", 64), SecretRef: &v1alpha1.LocalReference{Name: name},
		}})
	}
	failed := r.unready(t, r.create(t, namespace, "greedy", sources, every(time.Hour)), v1alpha1.ReasonLimitExceeded)
	if message := conditions.GetMessage(failed, meta.ReadyCondition); !strings.Contains(message, "secret "+namespace+"/large-") || !conditions.IsTrue(failed, meta.StalledCondition) {
		t.Errorf("the message is %q", message)
	}
	r.unready(t, r.create(t, namespace, "modest", sources[:3], every(time.Hour)), v1alpha1.ReasonUnreachable)
}

// TestMissingConfigMapIsAwaited: a ConfigMap that is created late is detected like a
// Secret.
func TestMissingConfigMapIsAwaited(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	key := r.create(t, namespace, "late", []v1alpha1.Source{{ConfigMap: &v1alpha1.LocalReference{Name: "late"}}}, every(time.Hour))
	for range 6 { // by then the next attempt would be half a minute away
		r.refresh(t, key)
	}
	failed := r.unready(t, key, v1alpha1.ReasonNotFound)
	if message := conditions.GetMessage(failed, meta.ReadyCondition); !strings.Contains(message, "configmap "+namespace+"/late does not exist: create it") {
		t.Errorf("the message is %q", message)
	}
	if err := r.admin.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "late"}, Data: map[string]string{"a.yaml": "one"}}); err != nil {
		t.Fatal(err)
	}
	created := time.Now()
	r.ready(t, key)
	t.Logf("noticed %s after it was created", time.Since(created).Round(time.Millisecond))
}

// TestT4SecretsOfOwnNamespaceOnly: the same name in another namespace is no Secret of this one.
func TestT4SecretsOfOwnNamespaceOnly(t *testing.T) {
	r := newRig(t)
	mine, other := controlplane.NewNamespace(t, r.cp), controlplane.NewNamespace(t, r.cp)
	server := newGuarded(t, pack(t, files("a.yaml", "one")), "CANARY-other")
	r.secret(t, other, "login", map[string]string{"username": "me", "password": "CANARY-other"})
	for _, name := range []string{"login"} {
		key := r.create(t, mine, name, []v1alpha1.Source{{HTTP: &v1alpha1.HTTPSource{
			URL: server.URL + "/b.tar", SecretRef: &v1alpha1.LocalReference{Name: name},
		}}}, nil)
		failed := r.unready(t, key, v1alpha1.ReasonNotFound)
		if message := conditions.GetMessage(failed, meta.ReadyCondition); !strings.Contains(message, "secret "+mine+"/"+name+" does not exist") {
			t.Errorf("the message is %q", message)
		}
	}
	tried := &v1alpha1.BundleSource{ObjectMeta: metav1.ObjectMeta{Namespace: mine, Name: "trick"}}
	tried.Spec.Sources = []v1alpha1.Source{{HTTP: &v1alpha1.HTTPSource{
		URL: server.URL + "/b.tar", SecretRef: &v1alpha1.LocalReference{Name: other + "/login"},
	}}}
	if err := r.admin.Create(t.Context(), tried); err == nil {
		t.Error("a name with a slash was taken for that of a Secret")
	}
	if asked := server.asked.Load(); asked > 0 {
		t.Errorf("%d requests reached the server", asked)
	}
}

// TestCertificates: a server of a private CA that requires a client certificate.
func TestCertificates(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	content := pack(t, files("a.yaml", "one"))
	certificate, key := selfSigned(t)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(certificate))
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		http.ServeContent(w, request, "bundle.tar", time.Now(), bytes.NewReader(content))
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	source := []v1alpha1.Source{{HTTP: &v1alpha1.HTTPSource{
		URL: server.URL + "/b.tar", CertSecretRef: &v1alpha1.LocalReference{Name: "certs"},
	}}}
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	r.secret(t, namespace, "certs", map[string]string{"ca.crt": certificate})
	object := r.create(t, namespace, "archive", source, every(time.Hour))
	failed := r.unready(t, object, v1alpha1.ReasonUnreachable)
	if message := conditions.GetMessage(failed, meta.ReadyCondition); !strings.Contains(message, "certificate is not trusted") {
		t.Errorf("a foreign authority: %q", message)
	}
	r.secret(t, namespace, "certs", map[string]string{"ca.crt": authority})
	r.until(t, object, "the server wants a certificate", func(s *v1alpha1.BundleSource) bool {
		return !strings.Contains(conditions.GetMessage(s, meta.ReadyCondition), "is not trusted")
	})
	for range 6 { // by then the next attempt would be half a minute away
		r.refresh(t, object)
	}
	r.secret(t, namespace, "certs", map[string]string{"ca.crt": authority, "tls.crt": certificate, "tls.key": key})
	changed := time.Now()
	r.ready(t, object)
	took := time.Since(changed)
	t.Logf("noticed %s after the Secret had the certificate", took.Round(time.Millisecond))
	if took > 60*time.Second {
		t.Errorf("the Secret was noticed after %s", took)
	}
}

// selfSigned is a certificate for clients and its key, in PEM.
func selfSigned(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "team-a"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}))
}

// TestIgnore: the artifact follows the list, which is checked.
func TestIgnore(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	server := newArchive(t, pack(t, files("a.yaml", "one", "docs/a.md", "two", ".git/config", "three")))
	source := []v1alpha1.Source{{HTTP: &v1alpha1.HTTPSource{URL: server.URL + "/b.tar"}}}
	key := r.create(t, namespace, "archive", source, nil)
	if got := names(t, download(t, r.ready(t, key).Status.Artifact)); strings.Join(got, " ") != "a.yaml docs/a.md" {
		t.Errorf("without a list: %v", got)
	}
	r.edit(t, key, func(s *v1alpha1.BundleSource) { s.Spec.Ignore = "/docs/\n" })
	if got := names(t, download(t, r.ready(t, key).Status.Artifact)); strings.Join(got, " ") != "a.yaml" {
		t.Errorf("with a list: %v", got)
	}
	r.edit(t, key, func(s *v1alpha1.BundleSource) { s.Spec.Ignore = "docs/\n[" })
	failed := r.unready(t, key, v1alpha1.ReasonRefused)
	if message := conditions.GetMessage(failed, meta.ReadyCondition); !strings.Contains(message, `ignore: the pattern "[" in line 2 is malformed`) {
		t.Errorf("the message is %q", message)
	}
}
