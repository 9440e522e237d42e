// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

func TestRepositoryOf(t *testing.T) {
	for ref, want := range map[string]string{
		"example.org/a:v1": "example.org/a", "example.org/a@sha256:00": "example.org/a", "example.org/a:v1@sha256:00": "example.org/a",
		"example.org:5000/a": "example.org:5000/a", "example.org:5000/a:v1": "example.org:5000/a", "a": "a",
	} {
		if got := repositoryOf(ref); got != want {
			t.Errorf("repositoryOf(%q) = %q, want %q", ref, got, want)
		}
	}
}

func TestOriginsOf(t *testing.T) {
	source := &v1alpha1.BundleSource{}
	source.Spec.Sources = []v1alpha1.Source{
		{Destination: "a", Image: &v1alpha1.ImageSource{Reference: "example.org/a:v1"}},
		{Destination: "b", Git: &v1alpha1.GitSource{URL: "https://example.org/b", Path: "deploy"}},
	}
	source.Status.Resolved = []v1alpha1.ResolvedSource{
		{Destination: "b", Reference: "main", Digest: "sha1:00"}, {Destination: "a", Reference: "v1", Digest: "sha256:00", VerifiedBy: "x"},
	}
	if got := originsOf(source); got != nil {
		t.Errorf("what was resolved for other sources was taken: %v", got)
	}
	source.Status.SourcesDigest = effective.SourcesDigest(&source.Spec)
	want := []v1alpha1.RevisionOrigin{
		{Destination: "a", Image: "example.org/a", Reference: "v1", Digest: "sha256:00", VerifiedBy: "x"},
		{Destination: "b", Git: "https://example.org/b", Path: "deploy", Reference: "main", Digest: "sha1:00"},
	}
	if diff := cmp.Diff(want, originsOf(source)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	source.Status.Resolved = source.Status.Resolved[:1]
	if got := originsOf(source); got != nil {
		t.Errorf("half of the parts were taken for all: %v", got)
	}
}
