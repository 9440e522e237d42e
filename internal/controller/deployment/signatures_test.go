// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/nslabel"
)

// requireSignatures sets the label of a namespace, in which the admission policies may be missing.
func (r *rig) requireSignatures(t *testing.T, namespace string, policies bool) {
	t.Helper()
	labels := `"satchel.dev/signatures":"required"`
	if !policies {
		labels += fmt.Sprintf(`,%q:""`, unguarded)
	}
	r.patch(t, object("v1", "Namespace", "", namespace), `{"metadata":{"labels":{`+labels+`}}}`)
	r.untilLabelsAreRead(t)
}

// untilLabelsAreRead waits until no earlier labels of namespaces are cached.
func (r *rig) untilLabelsAreRead(t *testing.T) {
	t.Helper()
	at := time.Now()
	r.eventually(t, t.Context(), "no earlier label is remembered", func(context.Context) (bool, string) {
		age := time.Since(at)
		return age > nslabel.MaxAge, age.String()
	})
}

// In a namespace that requires signatures a deployment installs only sources that require a signature, whatever the source
// controller and the admission policies do. The applied revision stays, and its drift is corrected.
func TestT29DeploymentsTakeOnlyWhatIsSigned(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, policies := range map[string]bool{"with policies": true, "without policies": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := r.namespace(t)
			first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
			key := r.deploy(t, namespace, "app", quick)
			r.ready(t, key, first.Revision)
			unused := r.publish(t, namespace, "other", "v1", fstest.MapFS{"b.yaml": configMap("b", "one")})
			git := fluxObjects(namespace)[sourcev1.GitRepositoryKind]
			r.create(t, git.object)
			git.set(r.flux.store(t, "gitrepository/"+namespace+"/app/1.tar.gz", "main@sha1:1", settings("flux")))
			if err := r.admin.Status().Update(t.Context(), git.object); err != nil {
				t.Fatal(err)
			}
			r.requireSignatures(t, namespace, policies)

			r.delete(t, aConfigMap(namespace, "a"))
			r.holds(t, namespace, "a", "one") // drift of what runs is corrected
			r.ready(t, key, first.Revision)

			other := r.deploy(t, namespace, "other", quick)
			refused := r.unready(t, other, v1alpha1.ReasonSignatureRequired)
			if message := conditions.GetMessage(refused, meta.ReadyCondition); refused.Status.Applied.Revision != "" || !strings.Contains(message, "the configMap of bundlesource "+namespace+"/other") {
				t.Errorf("a new deployment: %s", describe(refused))
			}
			second := r.publish(t, namespace, "app", "v2", fstest.MapFS{"a.yaml": configMap("a", "two")})
			r.unready(t, key, v1alpha1.ReasonSignatureRequired)
			r.delete(t, aConfigMap(namespace, "a"))
			r.holds(t, namespace, "a", "one") // also while a newer revision is refused

			flux := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "flux"}}
			quick(flux)
			flux.Spec.ServiceAccountName = "installer"
			flux.Spec.SourceRef = &v1alpha1.SourceReference{APIVersion: sourcev1.GroupVersion.String(), Kind: sourcev1.GitRepositoryKind, Name: "app"}
			switch err := r.admin.Create(t.Context(), flux); {
			case policies != apierrors.IsForbidden(err):
				t.Errorf("a source of Flux: %v", err)
			case err == nil:
				t.Cleanup(func() { r.remove(t, client.ObjectKeyFromObject(flux)) })
				r.unready(t, client.ObjectKeyFromObject(flux), v1alpha1.ReasonSignatureRequired)
			}

			r.patch(t, object("v1", "Namespace", "", namespace), `{"metadata":{"labels":{"satchel.dev/signatures":null}}}`)
			r.ready(t, other, unused.Revision)
			r.ready(t, key, second.Revision)
		})
	}
}

// A source that requires a signature of each part, and has accepted them, is installed in such a namespace.
func TestT29SignedSourcesAreTaken(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	r.demandSignature(t, namespace, "app", metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	r.requireSignatures(t, namespace, true)
	key := r.deploy(t, namespace, "app", quick)
	r.ready(t, key, first.Revision)
}

// signedParts are sources that each require a signature.
func signedParts() []v1alpha1.Source {
	keys := &v1alpha1.LocalReference{Name: "keys"}
	return []v1alpha1.Source{
		{Destination: "image", Image: &v1alpha1.ImageSource{Reference: "registry.example.org/app:v1", Verify: &v1alpha1.ImageVerification{Provider: "cosign", SecretRef: keys}}},
		{Destination: "git", Git: &v1alpha1.GitSource{URL: "https://git.example.org/app", Verify: &v1alpha1.GitVerification{SecretRef: *keys}}},
		{Destination: "http", HTTP: &v1alpha1.HTTPSource{URL: "https://www.example.org/app.tar", Verify: &v1alpha1.ArchiveVerification{
			SignatureURL: "https://www.example.org/app.tar.sig", SecretRef: keys,
		}}},
	}
}

// The admission policy refuses sources without a required signature, from any user, on creation and when their sources
// change; and no bundle removes or changes the label.
func TestT29PolicyOnSources(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	source := func(name string, parts ...v1alpha1.Source) *v1alpha1.BundleSource {
		s := &v1alpha1.BundleSource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		s.Spec.Sources = parts
		return s
	}
	inline := func(name string, parts ...v1alpha1.Source) *v1alpha1.BundleDeployment {
		d := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		d.Spec.ServiceAccountName, d.Spec.Suspend, d.Spec.Source = "installer", true, &v1alpha1.BundleSourceSpec{Sources: parts}
		return d
	}
	without := func(i int) []v1alpha1.Source {
		parts := signedParts()
		for _, part := range parts[i : i+1] {
			switch {
			case part.Image != nil:
				part.Image.Verify = nil
			case part.Git != nil:
				part.Git.Verify = nil
			default:
				part.HTTP.Verify = nil
			}
		}
		return parts
	}
	catalog := func(name string, from v1alpha1.Source) *v1alpha1.BundleCatalog {
		return &v1alpha1.BundleCatalog{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1alpha1.BundleCatalogSpec{
			Source: v1alpha1.CatalogSource{Image: from.Image, Git: from.Git, HTTP: from.HTTP, ConfigMap: from.ConfigMap},
		}}
	}
	former := source("former", v1alpha1.Source{ConfigMap: &v1alpha1.LocalReference{Name: "content"}})
	r.create(t, former)
	upload := v1alpha1.Source{Upload: &v1alpha1.UploadSource{Digest: "sha256:" + strings.Repeat("a", 64)}}
	r.requireSignatures(t, namespace, true)
	signed := source("signed", signedParts()...)
	for _, tc := range []struct {
		name    string
		refused string // part of the message; empty: it passes
		do      func() error
	}{
		{"all parts signed", "", func() error { return r.admin.Create(t.Context(), signed) }},
		{"inline, all signed", "", func() error { return r.admin.Create(t.Context(), inline("inline", signedParts()...)) }},
		{"plain image", "set verify on the image registry", func() error { return r.admin.Create(t.Context(), source("a", without(0)...)) }},
		{"plain repository", "set verify on the repository https://git", func() error { return r.admin.Create(t.Context(), source("b", without(1)...)) }},
		{"plain archive", "set verify on the archive https://www", func() error { return r.admin.Create(t.Context(), source("c", without(2)...)) }},
		{"upload", "which have no signature", func() error { return r.admin.Create(t.Context(), source("d", upload)) }},
		{"ConfigMap beside a signed image", "which have no signature", func() error {
			return r.admin.Create(t.Context(), source("e", signedParts()[0], v1alpha1.Source{Destination: "more", ConfigMap: &v1alpha1.LocalReference{Name: "content"}}))
		}},
		{"inline and plain", "set verify on the archive", func() error { return r.admin.Create(t.Context(), inline("f", without(2)...)) }},
		{"catalog, signed", "", func() error { return r.admin.Create(t.Context(), catalog("g", signedParts()[1])) }},
		{"catalog, plain", "set verify on the image registry", func() error { return r.admin.Create(t.Context(), catalog("h", without(0)[0])) }},
		{"catalog, ConfigMap", "which have no signature", func() error {
			return r.admin.Create(t.Context(), catalog("i", v1alpha1.Source{ConfigMap: &v1alpha1.LocalReference{Name: "content"}}))
		}},
		{"verify is removed", "set verify on the image", func() error {
			return change(t, r.admin, signed, func(s *v1alpha1.BundleSource) { s.Spec.Sources[0].Image.Verify = nil })
		}},
		{"an older source, and its interval", "", func() error {
			return change(t, r.admin, former, func(s *v1alpha1.BundleSource) { s.Spec.Suspend = true })
		}},
		{"an older source, and its content", "which have no signature", func() error {
			return change(t, r.admin, former, func(s *v1alpha1.BundleSource) { s.Spec.Sources[0].ConfigMap.Name = "other" })
		}},
	} {
		err := tc.do()
		switch {
		case tc.refused == "" && err != nil:
			t.Errorf("%s: %v", tc.name, err)
		case tc.refused != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), tc.refused)):
			t.Errorf("%s: %v, want %q", tc.name, err, tc.refused)
		}
	}
}
