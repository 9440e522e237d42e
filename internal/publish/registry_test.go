// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
	sigstore "github.com/sigstore/cosign/v3/pkg/cosign"

	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/image"
	"github.com/satchel-dev/satchel/internal/fetch/verify/cosign"
	"github.com/satchel-dev/satchel/internal/publish"
	"github.com/satchel-dev/satchel/tests/images"
	"github.com/satchel-dev/satchel/tests/upstream"
)

// registry writes to the servers of tests.
func registry(t testing.TB) publish.Registry {
	t.Helper()
	return publish.Registry{Client: images.Client(t), Keychain: authn.NewMultiKeychain(), UserAgent: "test", Pause: time.Millisecond}
}

func tagged(t testing.TB, text string) name.Tag {
	t.Helper()
	tag, err := name.NewTag(text, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	return tag
}

// TestFetchedAsItWasPushed pushes both kinds to a real registry. What the source controller's fetcher makes of them is
// the tree with the printed digest, and a second push changes nothing.
func TestFetchedAsItWasPushed(t *testing.T) {
	server := upstream.NewRegistry(t.Context())
	defer server.Close()
	p := packed(t, tree("manifests/a.yaml", configMap, "manifests/b/c.yaml", strings.Repeat("x: y\n", 100_000), "metadata/annotations.yaml", "annotations: {a: b}\n"))
	for _, kind := range []publish.Kind{publish.Image, publish.Artifact} {
		made, err := p.Image(publish.Options{Kind: kind})
		want := digestOf(t, made, err)
		to := tagged(t, server.Host()+"/org/"+string(kind)+":v1")
		r := registry(t)
		sent := int64(0)
		r.Progress = func(n, _ int64) { sent = n }
		for range 2 {
			if err := r.Push(t.Context(), to, made); err != nil {
				t.Fatal(err)
			}
		}
		if sent == 0 {
			t.Error("no progress was told")
		}
		f := images.Fetcher(t, to.String(), nil)
		resolved, err := f.Resolve(t.Context())
		if err != nil || resolved.Digest != want {
			t.Fatalf("%s: the tag is %s (%v), want %s", kind, resolved.Digest, err, want)
		}
		fetched, err := fetch.NewTree(t.TempDir(), fetch.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		defer fetched.Close()
		if _, err := f.Fetch(t.Context(), resolved, fetched); err != nil {
			t.Fatal(err)
		}
		sum := sha256Writer()
		if err := artifact.WriteCanonical(t.Context(), sum, fetched.FS()); err != nil {
			t.Fatal(err)
		}
		if got := sum.digest(); got != p.Content.String() {
			t.Errorf("%s: the source controller makes %s of it, and %s was said", kind, got, p.Content)
		}
	}
}

// cosignKey is a private key in the form of cosign, and the public one.
func cosignKey(t testing.TB, private crypto.Signer, password string) (key, public []byte) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := encrypted.Encrypt(der, []byte(password))
	if err != nil {
		t.Fatal(err)
	}
	spki, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED SIGSTORE PRIVATE KEY", Bytes: sealed}), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: spki})
}

// TestSign signs with each kind of key. The verifier of the source controller accepts that, and refuses it with another key.
func TestSign(t *testing.T) {
	generate := map[string]func() (crypto.Signer, error){
		"P-256": func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) },
		"P-384": func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P384(), rand.Reader) },
		"RSA":   func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, 2048) },
		"Ed25519": func() (crypto.Signer, error) {
			_, private, err := ed25519.GenerateKey(rand.Reader)
			return private, err
		},
	}
	server := images.New(t, true)
	generated, err := sigstore.GenerateKeyPair(func(bool) ([]byte, error) { return []byte("secret"), nil })
	if err != nil {
		t.Fatal(err)
	}
	other := generated.PublicBytes
	check := func(t *testing.T, repository string, sealed, public []byte) {
		key, err := publish.ReadKey(sealed, []byte("secret"))
		if err != nil {
			t.Fatal(err)
		}
		if said, err := key.Public(); err != nil || string(said) != string(public) {
			t.Errorf("its public key is\n%s (%v), want\n%s", said, err, public)
		}
		made, err := packed(t, tree("manifests/a.yaml", configMap)).Image(publish.Options{Kind: publish.Artifact})
		digest := digestOf(t, made, err)
		to := tagged(t, server.RegistryStr()+"/org/"+repository+":v1")
		r := registry(t)
		if err := r.Push(t.Context(), to, made); err != nil {
			t.Fatal(err)
		}
		for i, want := range []bool{true, false} {
			if fresh, err := r.Sign(t.Context(), to.Digest(digest), key); fresh != want || err != nil {
				t.Fatalf("signing, time %d: %v, %v", i+1, fresh, err)
			}
		}
		if by, err := images.Verified(t, to.String(), trusting(t, public)); err != nil || by == "" {
			t.Errorf("our own verifier says %q, %v", by, err)
		}
		if by, err := images.Verified(t, to.String(), trusting(t, other)); string(public) != string(other) && fetch.ReasonOf(err) != fetch.Unverified {
			t.Errorf("with another key: %q, %v", by, err)
		}
		second, err := publish.ReadKey(generated.PrivateBytes, []byte("secret"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Sign(t.Context(), to.Digest(digest), second); err != nil {
			t.Fatal(err)
		}
		for _, one := range [][]byte{public, other} {
			if by, err := images.Verified(t, to.String(), trusting(t, one)); err != nil || by == "" {
				t.Errorf("signed twice, our own verifier says %q, %v", by, err)
			}
		}
	}
	for name, generate := range generate {
		t.Run(name, func(t *testing.T) {
			private, err := generate()
			if err != nil {
				t.Fatal(err)
			}
			sealed, public := cosignKey(t, private, "secret")
			check(t, strings.ToLower(name), sealed, public)
		})
	}
	t.Run("as cosign writes it", func(t *testing.T) { check(t, "cosign", generated.PrivateBytes, generated.PublicBytes) })
}

func trusting(t testing.TB, public []byte) image.Verifier {
	t.Helper()
	v, err := cosign.New(cosign.Options{Keys: map[string][]byte{"a.pub": public}})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestReadKey(t *testing.T) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sealed, public := cosignKey(t, private, "CANARY-secret")
	if !publish.Encrypted(sealed) || publish.Encrypted(public) {
		t.Error("it is not told whether a key has a password")
	}
	for name, c := range map[string]struct{ data, password, want string }{
		"a wrong password": {string(sealed), "wrong", "password"},
		"no password":      {string(sealed), "", "password"},
		"no key":           {"CANARY-secret", "", "not one private key in PEM"},
		"a public key":     {string(public), "", `"PUBLIC KEY", no private key`},
		"two keys":         {string(sealed) + string(sealed), "CANARY-secret", "not one private key"},
		"damaged":          {"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "", "no key in PKCS #8"},
	} {
		_, err := publish.ReadKey([]byte(c.data), []byte(c.password))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAnswers checks the messages about failing registries.
func TestAnswers(t *testing.T) {
	answer := func(status int, body string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodGet && r.URL.Path == "/v2/" {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
			return true
		}
	}
	p := packed(t, tree("a.yaml", configMap))
	made, err := p.Image(publish.Options{Kind: publish.Artifact})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(http.ResponseWriter, *http.Request) bool
		reason fetch.Reason
		want   []string
	}{
		"401": {answer(401, `{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}`), fetch.Unauthorized, []string{"401 Unauthorized: UNAUTHORIZED \"authentication required\"", "docker login"}},
		"403": {answer(403, `{"errors":[{"code":"DENIED","message":"no \u001b[2Jpush"}]}`), fetch.Unauthorized, []string{`403 Forbidden: DENIED "no \x1b[2Jpush"`, "docker login"}},
		"404": {answer(404, `{"errors":[{"code":"NAME_UNKNOWN","message":"repository name not known"}]}`), fetch.NotFound, []string{"404 Not Found: NAME_UNKNOWN", "created first"}},
		"413": {answer(413, `<html>too large</html>`), fetch.Unreachable, []string{"413", "smaller"}},
		"429": {answer(429, `{"errors":[{"code":"TOOMANYREQUESTS","message":"slow down"}]}`), fetch.RateLimited, []string{"429 Too Many Requests", "slow down", "try again"}},
		"503": {answer(503, ``), fetch.Unreachable, []string{"503 Service Unavailable", "try again later"}},
		"405": {answer(405, `{"errors":[{"code":"UNSUPPORTED","message":"read only"}]}`), fetch.Unreachable, []string{"405", "read only", "permits"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := images.New(t, true)
			server.Alter(c.change)
			err := registry(t).Push(t.Context(), server.Tag("v1"), made)
			if err == nil || fetch.ReasonOf(err) != c.reason || !strings.Contains(err.Error(), server.Tag("v1").Name()) {
				t.Fatalf("%v (%s)", err, fetch.ReasonOf(err))
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in: %v", want, err)
				}
			}
		})
	}
}

// TestTriesAgain: temporary failures are retried, and an interrupted push ends at once.
func TestTriesAgain(t *testing.T) {
	p := packed(t, tree("a.yaml", configMap))
	made, err := p.Image(publish.Options{Kind: publish.Artifact})
	if err != nil {
		t.Fatal(err)
	}
	server := images.New(t, true)
	failed := make(chan struct{}, 2)
	server.Alter(func(w http.ResponseWriter, _ *http.Request) bool {
		select {
		case failed <- struct{}{}:
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		default:
			return false
		}
	})
	if err := registry(t).Push(t.Context(), server.Tag("v1"), made); err != nil || len(failed) != 2 {
		t.Errorf("%v after %d failures", err, len(failed))
	}
	ctx, cancel := context.WithCancel(t.Context())
	server.Alter(func(http.ResponseWriter, *http.Request) bool { cancel(); <-ctx.Done(); return false })
	if err := registry(t).Push(ctx, server.Tag("v2"), made); err == nil || ctx.Err() == nil {
		t.Errorf("interrupted: %v", err)
	}
	unknown := tagged(t, "registry.invalid/a:v1")
	if err := registry(t).Push(t.Context(), unknown, made); fetch.ReasonOf(err) != fetch.Unreachable && fetch.ReasonOf(err) != fetch.Refused {
		t.Errorf("a host that does not exist: %v", err)
	}
}
