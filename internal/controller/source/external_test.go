// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/http/fetch"
	"github.com/fluxcd/pkg/runtime/conditions"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

// external reads the ExternalArtifact of a source; nil when there is none.
func (r *rig) external(t *testing.T, key client.ObjectKey) *sourcev1.ExternalArtifact {
	t.Helper()
	var found sourcev1.ExternalArtifact
	err := r.admin.Get(t.Context(), key, &found)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return &found
}

// consume fetches an artifact as Flux's controllers do, and returns the file a.yaml.
func consume(t *testing.T, a *meta.Artifact) string {
	t.Helper()
	dir := t.TempDir()
	fetcher := fetch.New(fetch.WithRetries(1), fetch.WithMaxDownloadSize(1<<20), fetch.WithUntar())
	if err := fetcher.FetchWithContext(t.Context(), a.URL, a.Digest, dir); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(dir, "a.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestExternalArtifact(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	if _, err := r.registry.Push(t.Context(), "flux:v1", files("a.yaml", "one")); err != nil {
		t.Fatal(err)
	}
	asking := func(s *v1alpha1.BundleSource) { s.Spec.ExternalArtifact = true }
	key := r.create(t, namespace, "flux", image(r.registry.Host()+"/flux:v1"), func(s *v1alpha1.BundleSource) {
		asking(s)
		every(time.Second)(s)
	})
	if installing := r.until(t, key, "an answer", func(s *v1alpha1.BundleSource) bool { return s.Status.Artifact != nil }); installing.Status.ExternalArtifact == "" {
		failed := r.unready(t, key, v1alpha1.ReasonExternalArtifactFailed)
		if message := conditions.GetMessage(failed, meta.ReadyCondition); !strings.Contains(message, "install Flux 2.7 or later") {
			t.Errorf("without Flux: %q", message)
		}
		if err := installation.InstallFluxKinds(t.Context(), r.cp.RESTConfig()); err != nil {
			t.Fatal(err)
		}
	}
	s := r.ready(t, key)
	shown := r.external(t, key)
	if shown == nil || shown.Status.Artifact == nil || !metav1.IsControlledBy(shown, s) || !conditions.IsTrue(shown, meta.ReadyCondition) {
		t.Fatalf("the ExternalArtifact is %+v", shown)
	}
	if ref := shown.Spec.SourceRef; ref.Kind != v1alpha1.BundleSourceKind || ref.Name != "flux" || ref.APIVersion != "satchel.dev/v1alpha1" {
		t.Errorf("it points back to %+v", ref)
	}
	if got := consume(t, shown.Status.Artifact); got != "one" || s.Status.ExternalArtifact != "flux" {
		t.Errorf("Flux got %q; the status names %q", got, s.Status.ExternalArtifact)
	}

	t.Run("follows", func(t *testing.T) {
		if _, err := r.registry.Push(t.Context(), "flux:v1", files("a.yaml", "two")); err != nil {
			t.Fatal(err)
		}
		before := shown.Status.Artifact.Revision
		moved := r.until(t, key, "the moved tag is followed", func(s *v1alpha1.BundleSource) bool { return s.Status.Artifact.Revision != before })
		now := r.external(t, key)
		if now.Status.Artifact.Revision != moved.Status.Artifact.Revision || consume(t, now.Status.Artifact) != "two" {
			t.Errorf("it shows %s", now.Status.Artifact.Revision)
		}
	})
	t.Run("repairs", func(t *testing.T) {
		edited := r.external(t, key)
		edited.Status.Artifact.URL = "http://attacker.example.org/x.tar.gz"
		edited.Spec.SourceRef.Name = "other"
		if err := r.admin.Update(t.Context(), edited); err != nil {
			t.Fatal(err)
		}
		status := r.external(t, key)
		status.Status.Artifact.URL = "http://attacker.example.org/x.tar.gz"
		if err := r.admin.Status().Update(t.Context(), status); err != nil {
			t.Fatal(err)
		}
		want := r.refresh(t, key).Status.Artifact.URL
		if now := r.external(t, key); now.Status.Artifact.URL != want || now.Spec.SourceRef.Name != "flux" {
			t.Errorf("it was left at %s of %s", now.Status.Artifact.URL, now.Spec.SourceRef.Name)
		}
	})
	t.Run("goes", func(t *testing.T) {
		r.edit(t, key, func(s *v1alpha1.BundleSource) { s.Spec.ExternalArtifact = false })
		s := r.ready(t, key)
		if r.external(t, key) != nil || s.Status.ExternalArtifact != "" {
			t.Error("it stays although it is not wanted any more")
		}
	})
	t.Run("foreign", func(t *testing.T) {
		other := client.ObjectKey{Namespace: namespace, Name: "foreign"}
		taken := &sourcev1.ExternalArtifact{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "foreign"}}
		if err := r.admin.Create(t.Context(), taken); err != nil {
			t.Fatal(err)
		}
		r.create(t, namespace, "foreign", image(r.registry.Host()+"/flux:v1"), asking)
		failed := r.unready(t, other, v1alpha1.ReasonExternalArtifactFailed)
		if message := conditions.GetMessage(failed, meta.ReadyCondition); !strings.Contains(message, "does not belong to this source") ||
			!conditions.IsTrue(failed, meta.StalledCondition) || failed.Status.Artifact == nil {
			t.Errorf("a name that is taken:\n%s", describe(failed))
		}
		if now := r.external(t, other); now.Status.Artifact != nil || now.ResourceVersion != taken.ResourceVersion {
			t.Error("a foreign object was changed")
		}
	})
}
