// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

// signer is an identity with a key.
type signer struct{ *ecdsa.PrivateKey }

func newSigner(t *testing.T) signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return signer{key}
}

func (s signer) public(t *testing.T) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(s.Public())
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func (s signer) sign(t *testing.T, data []byte) string {
	t.Helper()
	sum := sha256.Sum256(data)
	signature, err := ecdsa.SignASN1(rand.Reader, s.PrivateKey, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(signature)
}

// signImage pushes a signature of a digest, as cosign does without a log.
func (r *rig) signImage(t *testing.T, s signer, repository, digest string) {
	t.Helper()
	r.addSignature(t, s, mutate.MediaType(empty.Image, types.OCIManifestSchema1), repository, digest)
}

// signImageToo adds a signature to those that are there.
func (r *rig) signImageToo(t *testing.T, s signer, repository, digest string) {
	t.Helper()
	ref, err := name.ParseReference(r.registry.Host()+"/"+signatureTag(repository, digest), name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	signatures, err := remote.Image(ref, remote.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	r.addSignature(t, s, signatures, repository, digest)
}

func signatureTag(repository, digest string) string {
	return repository + ":" + strings.Replace(digest, ":", "-", 1) + ".sig"
}

func (r *rig) addSignature(t *testing.T, s signer, to v1.Image, repository, digest string) {
	t.Helper()
	payload := fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":""},"image":{"docker-manifest-digest":%q},"type":"cosign container image signature"},"optional":null}`, digest)
	layer := static.NewLayer(payload, types.MediaType("application/vnd.dev.cosign.simplesigning.v1+json"))
	signature, err := mutate.Append(to, mutate.Addendum{
		Layer: layer, Annotations: map[string]string{"dev.cosignproject.cosign/signature": s.sign(t, payload)},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.push(t, signatureTag(repository, digest), signature)
}

func (r *rig) push(t *testing.T, reference string, image v1.Image) {
	t.Helper()
	ref, err := name.ParseReference(r.registry.Host()+"/"+reference, name.Insecure)
	if err == nil {
		err = remote.Write(ref, image, remote.WithContext(t.Context()))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// withdrawn waits until nothing is published for lack of a signature.
func (r *rig) withdrawn(t *testing.T, key client.ObjectKey) *v1alpha1.BundleSource {
	t.Helper()
	return r.until(t, key, "the artifact is withdrawn", func(s *v1alpha1.BundleSource) bool {
		return s.Status.Artifact == nil && conditions.GetReason(s, meta.ReadyCondition) == v1alpha1.ReasonVerificationFailed &&
			conditions.IsFalse(s, v1alpha1.SourceVerifiedCondition)
	})
}

// TestM14Images changes the signature of an image and the trust in it step by step.
func TestM14Images(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	alice, mallory := newSigner(t), newSigner(t)
	first, err := r.registry.Push(t.Context(), "signed:v1", files("a.yaml", "one"))
	if err != nil {
		t.Fatal(err)
	}
	r.signImage(t, mallory, "signed", first)
	r.secret(t, namespace, "keys", map[string]string{"alice.pub": alice.public(t)})
	source := image(r.registry.Host() + "/signed:v1")
	source[0].Image.Verify = &v1alpha1.ImageVerification{Provider: "cosign", SecretRef: &v1alpha1.LocalReference{Name: "keys"}}
	key := r.create(t, namespace, "signed", source, every(time.Second))
	refused := r.unready(t, key, v1alpha1.ReasonVerificationFailed)
	if refused.Status.Artifact != nil || !conditions.IsFalse(refused, v1alpha1.SourceVerifiedCondition) || conditions.IsTrue(refused, meta.StalledCondition) {
		t.Fatalf("a foreign signature:\n%s", describe(refused))
	}
	r.signImage(t, alice, "signed", first)
	s := r.ready(t, key)
	if by := s.Status.Resolved[0].VerifiedBy; !strings.Contains(by, "alice.pub") || !conditions.IsTrue(s, v1alpha1.SourceVerifiedCondition) ||
		!strings.Contains(conditions.GetMessage(s, v1alpha1.SourceVerifiedCondition), by) {
		t.Errorf("verified by %q:\n%s", by, describe(s))
	}
	r.told(t, s, "signed by")

	second, err := r.registry.Push(t.Context(), "signed:v1", files("a.yaml", "two"))
	if err != nil {
		t.Fatal(err)
	}
	stays := r.unready(t, key, v1alpha1.ReasonVerificationFailed)
	if stays.Status.Artifact == nil || stays.Status.Resolved[0].Digest != first {
		t.Errorf("after the tag moved to an unsigned image:\n%s", describe(stays))
	}
	r.signImage(t, alice, "signed", second)
	r.until(t, key, "the signed image is followed", func(s *v1alpha1.BundleSource) bool { return s.Status.Resolved[0].Digest == second })

	r.secret(t, namespace, "keys", map[string]string{"mallory.pub": mallory.public(t)})
	gone := r.withdrawn(t, key)
	if code, _ := get(t, s.Status.Artifact.URL); gone.Status.Artifact != nil {
		t.Errorf("still advertised, %d", code)
	}
	r.secret(t, namespace, "keys", map[string]string{"alice.pub": alice.public(t), "mallory.pub": mallory.public(t)})
	r.ready(t, key)
	for _, c := range []struct {
		data             map[string]string
		says, saidBefore string // the status of the case before is refused, too
	}{
		{map[string]string{"alice.pub": alice.public(t), "a.pub": "CANARY"}, `"a.pub"`, ""},
		{map[string]string{"note": "no key"}, "secret " + namespace + "/keys", `"a.pub"`},
	} {
		r.secret(t, namespace, "keys", c.data)
		failed := r.until(t, key, "it is refused", func(s *v1alpha1.BundleSource) bool {
			message := conditions.GetMessage(s, meta.ReadyCondition)
			return conditions.GetReason(s, meta.ReadyCondition) == v1alpha1.ReasonRefused && strings.Contains(message, c.says) &&
				(c.saidBefore == "" || !strings.Contains(message, c.saidBefore))
		})
		if message := conditions.GetMessage(failed, meta.ReadyCondition); !strings.Contains(message, "secret "+namespace+"/keys") || strings.Contains(message, "CANARY") {
			t.Errorf("%q", message)
		}
		if c.saidBefore != "" && failed.Status.Artifact != nil {
			t.Errorf("no key is left, and what it signed is published:\n%s", describe(failed))
		}
	}
	r.secret(t, namespace, "keys", map[string]string{"alice.pub": alice.public(t)})
	r.ready(t, key)
	if err := r.admin.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "keys"}}); err != nil {
		t.Fatal(err)
	}
	// The accepted artifact stays with deployments that run it: docs/guides/verification.md says
	// why.
	kept := r.unready(t, key, v1alpha1.ReasonNotFound)
	if kept.Status.Artifact == nil || conditions.GetReason(kept, v1alpha1.SourceVerifiedCondition) != v1alpha1.ReasonTrustChanged {
		t.Errorf("without the Secret:\n%s", describe(kept))
	}
}

// TestM14Archives: a detached signature is required, and must match the bytes.
func TestM14Archives(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	alice := newSigner(t)
	content := pack(t, files("a.yaml", "one"))
	var signature atomic.Value
	signature.Store("")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/b.tar.sig" {
			if signature.Load() == "" {
				http.NotFound(w, request)
				return
			}
			_, _ = w.Write([]byte(signature.Load().(string))) //nolint:forcetypeassert // nothing else is stored
			return
		}
		http.ServeContent(w, request, "b.tar", time.Time{}, bytes.NewReader(content))
	}))
	t.Cleanup(server.Close)
	r.secret(t, namespace, "keys", map[string]string{"alice.pub": alice.public(t)})
	key := r.create(t, namespace, "archive", []v1alpha1.Source{{HTTP: &v1alpha1.HTTPSource{URL: server.URL + "/b.tar", Verify: &v1alpha1.ArchiveVerification{
		SignatureURL: server.URL + "/b.tar.sig", SecretRef: &v1alpha1.LocalReference{Name: "keys"},
	}}}}, every(time.Second))
	unsigned := r.unready(t, key, v1alpha1.ReasonVerificationFailed)
	if message := conditions.GetMessage(unsigned, meta.ReadyCondition); !strings.Contains(message, "it is not signed") || unsigned.Status.Artifact != nil {
		t.Errorf("without a signature: %q", message)
	}
	signature.Store(alice.sign(t, []byte("something else")))
	r.until(t, key, "a signature of other bytes is refused", func(s *v1alpha1.BundleSource) bool {
		return conditions.GetReason(s, meta.ReadyCondition) == v1alpha1.ReasonVerificationFailed && !strings.Contains(conditions.GetMessage(s, meta.ReadyCondition), "is not signed")
	})
	signature.Store(alice.sign(t, content))
	if s := r.ready(t, key); !strings.Contains(s.Status.Resolved[0].VerifiedBy, "alice.pub") {
		t.Errorf("verified by %q", s.Status.Resolved[0].VerifiedBy)
	}
}

// TestM17Commits: a commit without a trusted signature is refused.
func TestM17Commits(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	git := newGit(t)
	entity, err := openpgp.NewEntity("Alice", "", "alice@example.org", nil)
	if err != nil {
		t.Fatal(err)
	}
	var public bytes.Buffer
	w, err := armor.Encode(&public, openpgp.PublicKeyType, nil)
	if err == nil {
		err = entity.Serialize(w)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	r.secret(t, namespace, "authors", map[string]string{"alice.asc": public.String()})
	key := r.create(t, namespace, "git", []v1alpha1.Source{{Git: &v1alpha1.GitSource{URL: git.URL(), Verify: &v1alpha1.GitVerification{
		SecretRef: v1alpha1.LocalReference{Name: "authors"},
	}}}}, every(time.Second))
	unsigned := r.unready(t, key, v1alpha1.ReasonVerificationFailed)
	if unsigned.Status.Artifact != nil {
		t.Errorf("an unsigned commit:\n%s", describe(unsigned))
	}
	hash, err := git.CommitSigned("signed", files("a.yaml", "two"), entity)
	if err != nil {
		t.Fatal(err)
	}
	s := r.ready(t, key)
	if s.Status.Resolved[0].Digest != "sha1:"+hash || !strings.Contains(s.Status.Resolved[0].VerifiedBy, "alice@example.org") {
		t.Errorf("%s verified by %q", s.Status.Resolved[0].Digest, s.Status.Resolved[0].VerifiedBy)
	}
	if _, err := git.Commit("unsigned", files("a.yaml", "three")); err != nil {
		t.Fatal(err)
	}
	if stays := r.unready(t, key, v1alpha1.ReasonVerificationFailed); stays.Status.Artifact == nil {
		t.Errorf("the signed commit is no longer published:\n%s", describe(stays))
	}
}

// TestM14Rules: trust settings that accept any signer, or none, are refused on writes.
func TestM14Rules(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	secret := &v1alpha1.LocalReference{Name: "x"}
	anybody := []v1alpha1.OIDCIdentity{{IssuerRegExp: "^.*$", SubjectRegExp: "^.*$"}}
	identity := func(i v1alpha1.OIDCIdentity) v1alpha1.ImageVerification {
		return v1alpha1.ImageVerification{Provider: "cosign", TrustedRootSecretRef: secret, MatchOIDCIdentity: []v1alpha1.OIDCIdentity{i}}
	}
	tests := map[string]struct {
		verify v1alpha1.ImageVerification
		says   string
	}{
		"no signer":       {v1alpha1.ImageVerification{Provider: "cosign"}, "cosign needs either"},
		"both":            {v1alpha1.ImageVerification{Provider: "cosign", SecretRef: secret, MatchOIDCIdentity: anybody, TrustedRootSecretRef: secret}, "cosign needs either"},
		"no-root":         {v1alpha1.ImageVerification{Provider: "cosign", MatchOIDCIdentity: anybody}, "needs trustedRootSecretRef"},
		"empty-subject":   {v1alpha1.ImageVerification{Provider: "cosign", TrustedRootSecretRef: secret, MatchOIDCIdentity: []v1alpha1.OIDCIdentity{{Issuer: "x"}}}, "subject"},
		"exact":           {identity(v1alpha1.OIDCIdentity{Issuer: "https://a", Subject: "b@c"}), ""},
		"both-forms":      {identity(v1alpha1.OIDCIdentity{Issuer: "a", IssuerRegExp: "^a$", Subject: "b"}), "give either issuer or issuerRegExp"},
		"no-begin":        {identity(v1alpha1.OIDCIdentity{Issuer: "a", SubjectRegExp: "b$"}), "must be anchored"},
		"no-end":          {identity(v1alpha1.OIDCIdentity{IssuerRegExp: "^a", Subject: "b"}), "must be anchored"},
		"escaped-end":     {identity(v1alpha1.OIDCIdentity{IssuerRegExp: `^a\$`, Subject: "b"}), "must be anchored"},
		"log":             {v1alpha1.ImageVerification{Provider: "cosign", SecretRef: secret, TrustedRootSecretRef: secret, TransparencyLog: "Ignore"}, ""},
		"log-alone":       {v1alpha1.ImageVerification{Provider: "cosign", SecretRef: secret, TransparencyLog: "Ignore"}, "transparencyLog is for keys"},
		"log-identities":  {v1alpha1.ImageVerification{Provider: "cosign", TrustedRootSecretRef: secret, MatchOIDCIdentity: anybody, TransparencyLog: "Required"}, "transparencyLog is for keys"},
		"log-unknown":     {v1alpha1.ImageVerification{Provider: "cosign", SecretRef: secret, TrustedRootSecretRef: secret, TransparencyLog: "Maybe"}, "Unsupported value"},
		"notation-alone":  {v1alpha1.ImageVerification{Provider: "notation"}, "notation needs secretRef"},
		"notation-others": {v1alpha1.ImageVerification{Provider: "notation", SecretRef: secret, TrustedRootSecretRef: secret}, "notation needs secretRef"},
		"unknown":         {v1alpha1.ImageVerification{Provider: "gpg", SecretRef: secret}, "Unsupported value"},
		"keys":            {v1alpha1.ImageVerification{Provider: "cosign", SecretRef: secret}, ""},
		"keys-and-root":   {v1alpha1.ImageVerification{Provider: "cosign", SecretRef: secret, TrustedRootSecretRef: secret}, ""},
		"identities":      {v1alpha1.ImageVerification{Provider: "cosign", TrustedRootSecretRef: secret, MatchOIDCIdentity: anybody}, ""},
		"notation":        {v1alpha1.ImageVerification{Provider: "notation", SecretRef: secret}, ""},
	}
	for name, tt := range tests {
		object := &v1alpha1.BundleSource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		object.Spec.Sources = []v1alpha1.Source{{Image: &v1alpha1.ImageSource{Reference: "example.org/a", Verify: &tt.verify}}}
		object.Spec.Suspend = true
		err := r.admin.Create(t.Context(), object)
		switch {
		case tt.says == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)):
			t.Errorf("%s: %v", name, err)
		}
	}
}
