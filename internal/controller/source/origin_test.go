// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

// A commit that does not touch the bundle moves the origin revision, and the artifact stays as it is. Flux sees the commit in the
// metadata of the ExternalArtifact.
func TestOriginRevision(t *testing.T) {
	r := newRig(t)
	namespace, git := controlplane.NewNamespace(t, r.cp), newGit(t)
	if err := installation.InstallFluxKinds(t.Context(), r.cp.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	commit := func(other string) string {
		t.Helper()
		hash, err := git.Commit(other, files("bundle/a.yaml", "one", "README.md", other))
		if err != nil {
			t.Fatal(err)
		}
		return "main@sha1:" + hash
	}
	first := commit("first")
	key := r.create(t, namespace, "branch", []v1alpha1.Source{{Git: &v1alpha1.GitSource{
		URL: git.URL(), Path: "bundle", Ref: &v1alpha1.GitRef{Branch: "main"},
	}}}, func(s *v1alpha1.BundleSource) { s.Spec.ExternalArtifact = true })
	before := r.ready(t, key)
	shown := r.external(t, key).Status.Artifact.Metadata[v1alpha1.OriginRevisionMetadata]
	if before.Status.OriginRevision != first || shown != first || before.Status.Artifact.Metadata != nil {
		t.Errorf("the origin revision is %q, Flux sees %q, want %q", before.Status.OriginRevision, shown, first)
	}
	r.told(t, before, "published "+first+" as revision "+before.Status.Artifact.Revision)

	second := commit("second")
	after := r.refresh(t, key)
	external := r.external(t, key).Status.Artifact
	if after.Status.OriginRevision != second || external.Metadata[v1alpha1.OriginRevisionMetadata] != second {
		t.Errorf("the origin revision is %q, Flux sees %q, want %q", after.Status.OriginRevision, external.Metadata, second)
	}
	if was, is := before.Status.Artifact, after.Status.Artifact; is.Revision != was.Revision || is.Digest != was.Digest || external.Revision != was.Revision {
		t.Errorf("the artifact moved from %+v to %+v", was, is)
	}

	t.Run("upgrade", func(t *testing.T) {
		// An earlier release did not write it. It is known without fetching anything.
		now := r.until(t, key, "the status", func(*v1alpha1.BundleSource) bool { return true })
		now.Status.OriginRevision = ""
		if err := r.admin.Status().Update(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		if now = r.refresh(t, key); now.Status.OriginRevision != second {
			t.Errorf("the origin revision is %q", now.Status.OriginRevision)
		}
	})
	t.Run("image", func(t *testing.T) {
		digest, err := r.registry.Push(t.Context(), "origin:v1.2.3", files("a.yaml", "one"))
		if err != nil {
			t.Fatal(err)
		}
		repository := r.registry.Host() + "/origin"
		for name, ref := range map[string]string{"v1.2.3@" + digest: repository + ":v1.2.3", digest: repository + "@" + digest} {
			key := r.create(t, namespace, "image-"+strings.Trim(name[:3], "@."), image(ref), nil)
			if got := r.ready(t, key).Status.OriginRevision; got != name {
				t.Errorf("%s: the origin revision is %q", ref, got)
			}
		}
	})
	t.Run("edited", func(t *testing.T) {
		r.edit(t, key, func(s *v1alpha1.BundleSource) { s.Spec.Sources[0].Git.Ref.Branch = "none" })
		failed := r.unready(t, key, v1alpha1.ReasonNotFound)
		if failed.Status.OriginRevision != second {
			t.Errorf("the artifact is still that of %s, and the origin revision is %q", second, failed.Status.OriginRevision)
		}
	})
}
