// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

// references are all fields of a source that name another object, each naming x.
func references() map[string]v1alpha1.BundleSourceSpec {
	x := &v1alpha1.LocalReference{Name: "x"}
	anybody := []v1alpha1.OIDCIdentity{{Issuer: "a", Subject: "b"}}
	image := func(change func(*v1alpha1.ImageSource)) v1alpha1.BundleSourceSpec {
		s := &v1alpha1.ImageSource{Reference: "127.0.0.1:1/a:v1"}
		change(s)
		return v1alpha1.BundleSourceSpec{Sources: []v1alpha1.Source{{Image: s}}}
	}
	git := func(change func(*v1alpha1.GitSource)) v1alpha1.BundleSourceSpec {
		s := &v1alpha1.GitSource{URL: "https://127.0.0.1:1/r.git"}
		change(s)
		return v1alpha1.BundleSourceSpec{Sources: []v1alpha1.Source{{Git: s}}}
	}
	http := func(change func(*v1alpha1.HTTPSource)) v1alpha1.BundleSourceSpec {
		s := &v1alpha1.HTTPSource{URL: "https://127.0.0.1:1/b.tar"}
		change(s)
		return v1alpha1.BundleSourceSpec{Sources: []v1alpha1.Source{{HTTP: s}}}
	}
	account := image(func(*v1alpha1.ImageSource) {})
	account.ServiceAccountName = "x"
	return map[string]v1alpha1.BundleSourceSpec{
		"account":     account,
		"configmap":   {Sources: []v1alpha1.Source{{ConfigMap: x}}},
		"image-login": image(func(s *v1alpha1.ImageSource) { s.SecretRef = x }),
		"image-certs": image(func(s *v1alpha1.ImageSource) { s.CertSecretRef = x }),
		"image-proxy": image(func(s *v1alpha1.ImageSource) { s.ProxySecretRef = x }),
		"image-keys": image(func(s *v1alpha1.ImageSource) {
			s.Verify = &v1alpha1.ImageVerification{Provider: "cosign", SecretRef: x}
		}),
		"image-policy": image(func(s *v1alpha1.ImageSource) {
			s.Verify = &v1alpha1.ImageVerification{Provider: "notation", SecretRef: x}
		}),
		"image-root": image(func(s *v1alpha1.ImageSource) {
			s.Verify = &v1alpha1.ImageVerification{Provider: "cosign", MatchOIDCIdentity: anybody, TrustedRootSecretRef: x}
		}),
		"git-login":  git(func(s *v1alpha1.GitSource) { s.SecretRef = x }),
		"git-ssh":    git(func(s *v1alpha1.GitSource) { s.URL, s.SecretRef = "ssh://git@127.0.0.1:1/r.git", x }),
		"git-app":    git(func(s *v1alpha1.GitSource) { s.Provider, s.SecretRef = "github", x }),
		"git-proxy":  git(func(s *v1alpha1.GitSource) { s.ProxySecretRef = x }),
		"git-keys":   git(func(s *v1alpha1.GitSource) { s.Verify = &v1alpha1.GitVerification{Mode: "HEAD", SecretRef: *x} }),
		"http-login": http(func(s *v1alpha1.HTTPSource) { s.SecretRef = x }),
		"http-certs": http(func(s *v1alpha1.HTTPSource) { s.CertSecretRef = x }),
		"http-proxy": http(func(s *v1alpha1.HTTPSource) { s.ProxySecretRef = x }),
		"http-keys": http(func(s *v1alpha1.HTTPSource) {
			s.Verify = &v1alpha1.ArchiveVerification{SignatureURL: "https://127.0.0.1:1/s", SecretRef: x}
		}),
		"http-root": http(func(s *v1alpha1.HTTPSource) {
			s.Verify = &v1alpha1.ArchiveVerification{SignatureURL: "https://127.0.0.1:1/s", MatchOIDCIdentity: anybody, TrustedRootSecretRef: x}
		}),
	}
}

// T3, T4: each reference resolves in the source's own namespace only, although objects of the
// name exist in another one and in the controller's; none of these is read.
func TestT4EveryReferenceIsOfTheOwnNamespace(t *testing.T) {
	r := newRig(t)
	mine, other := controlplane.NewNamespace(t, r.cp), controlplane.NewNamespace(t, r.cp)
	for _, namespace := range []string{other, installation.Namespace} {
		r.secret(t, namespace, "x", map[string]string{"username": "CANARY", "password": "CANARY"})
		for _, object := range []client.Object{&corev1.ConfigMap{}, &corev1.ServiceAccount{}} {
			object.SetNamespace(namespace)
			object.SetName("x")
			if err := r.admin.Create(t.Context(), object); err != nil && !apierrors.IsAlreadyExists(err) {
				t.Fatal(err)
			}
		}
	}
	mark, err := r.cp.AuditMark()
	if err != nil {
		t.Fatal(err)
	}
	for name, spec := range references() {
		key := r.create(t, mine, name, spec.Sources, func(s *v1alpha1.BundleSource) {
			s.Spec.ServiceAccountName = spec.ServiceAccountName
			every(time.Hour)(s)
		})
		failed := r.unready(t, key, v1alpha1.ReasonNotFound)
		if message := conditions.GetMessage(failed, meta.ReadyCondition); !strings.Contains(message, " "+mine+"/x does not exist") && !strings.HasPrefix(message, "secret "+mine+"/x does not exist") {
			t.Errorf("%s: the message is %q", name, message)
		}
	}
	events, err := r.cp.Audit(mark)
	if err != nil {
		t.Fatal(err)
	}
	own := 0
	for _, e := range events {
		if !strings.Contains(e.User, "bundle-source-controller") || e.Name != "x" {
			continue
		}
		if own++; e.Namespace != mine {
			t.Errorf("the controller read something of another namespace: %s", e)
		}
	}
	if own < len(references()) {
		t.Errorf("%d reads of x were seen for %d references", own, len(references()))
	}
}

// T11: editors of a namespace may not write a status; and a forged one, to publish an
// artifact of another namespace, is corrected.
func TestT11ForgedStatus(t *testing.T) {
	r := newRig(t)
	mine, other := controlplane.NewNamespace(t, r.cp), controlplane.NewNamespace(t, r.cp)
	server := newArchive(t, pack(t, files("a.yaml", "mine")))
	theirs := newArchive(t, pack(t, files("a.yaml", "CANARY-theirs")))
	key := r.create(t, mine, "app", []v1alpha1.Source{{HTTP: &v1alpha1.HTTPSource{URL: server.URL + "/b.tar"}}}, every(time.Hour))
	good := r.ready(t, key)
	victim := r.ready(t, r.create(t, other, "app", []v1alpha1.Source{{HTTP: &v1alpha1.HTTPSource{URL: theirs.URL + "/b.tar"}}}, every(time.Hour)))
	if err := installation.Account(t.Context(), r.admin, mine, "tenant", "edit", mine); err != nil {
		t.Fatal(err)
	}
	config, err := installation.AccountConfig(t.Context(), r.cp.RESTConfig(), mine, "tenant")
	if err != nil {
		t.Fatal(err)
	}
	forge := func(as client.Client) error {
		var s v1alpha1.BundleSource
		if err := as.Get(t.Context(), key, &s); err != nil {
			t.Fatal(err)
		}
		before := s.DeepCopy()
		s.Status.Artifact = victim.Status.Artifact
		s.Status.ExternalArtifact = "foreign"
		return as.Status().Patch(t.Context(), &s, client.MergeFrom(before))
	}
	tenant := newClient(t, config)
	if err := forge(tenant); !apierrors.IsForbidden(err) {
		t.Errorf("an editor of the namespace writes a status: %v", err)
	}
	if err := tenant.Create(t.Context(), &v1alpha1.BundleSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: mine, Name: "forged"}, Spec: v1alpha1.BundleSourceSpec{Suspend: true, Sources: good.Spec.Sources},
		Status: v1alpha1.BundleSourceStatus{Artifact: victim.Status.Artifact},
	}); err != nil {
		t.Fatal(err)
	}
	if s := r.unready(t, client.ObjectKey{Namespace: mine, Name: "forged"}, v1alpha1.ReasonSuspended); s.Status.Artifact != nil {
		t.Errorf("a status that came with the creation is kept:\n%s", describe(s))
	}
	if err := forge(r.admin); err != nil {
		t.Fatal(err)
	}
	corrected := r.refresh(t, key)
	if corrected.Status.Artifact == nil || corrected.Status.Artifact.Path != good.Status.Artifact.Path || corrected.Status.ExternalArtifact != "" {
		t.Errorf("the forged status is not corrected:\n%s", describe(corrected))
	}
	download(t, corrected.Status.Artifact)
	download(t, victim.Status.Artifact)
}
