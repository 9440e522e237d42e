// SPDX-License-Identifier: Apache-2.0

package pin_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/pin"
)

const (
	commit  = "0123456789abcdef0123456789abcdef01234567"
	digestA = "sha256:aaaaaaaaaaaabbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	digestB = "sha256:cccccccccccc1111111111111111111111111111111111111111111111111111"
)

func TestSources(t *testing.T) {
	image := v1alpha1.Source{Image: &v1alpha1.ImageSource{Reference: "example.org/new", Version: ">=1", SecretRef: &v1alpha1.LocalReference{Name: "pull"}}}
	git := v1alpha1.Source{Git: &v1alpha1.GitSource{URL: "https://example.org/new", Ref: &v1alpha1.GitRef{Branch: "main"}, Path: "new"}}
	signed := func(mode string) v1alpha1.Source {
		return v1alpha1.Source{Git: &v1alpha1.GitSource{URL: "https://example.org/r", Ref: &v1alpha1.GitRef{Tag: "v2"}, Verify: &v1alpha1.GitVerification{Mode: mode}}}
	}
	files := v1alpha1.Source{ConfigMap: &v1alpha1.LocalReference{Name: "files"}}
	fromGit := v1alpha1.RevisionOrigin{Git: "https://example.org/r", Path: "deploy", Reference: "v1", Digest: "sha1:" + commit}
	for name, tc := range map[string]struct {
		reason  string
		present []v1alpha1.Source
		origins []v1alpha1.RevisionOrigin
		current []v1alpha1.RevisionOrigin
		want    []v1alpha1.Source
		wrong   string
	}{
		"image": {reason: "by digest, at the place of then; logins stay", present: []v1alpha1.Source{image},
			origins: []v1alpha1.RevisionOrigin{{Image: "example.org/old", Reference: "v1.2.0", Digest: digestA}},
			want:    []v1alpha1.Source{{Image: &v1alpha1.ImageSource{Reference: "example.org/old:v1.2.0@" + digestA, SecretRef: &v1alpha1.LocalReference{Name: "pull"}}}}},
		"pinned image": {reason: "without a tag", present: []v1alpha1.Source{image}, origins: []v1alpha1.RevisionOrigin{{Image: "example.org/old", Digest: digestA}},
			want: []v1alpha1.Source{{Image: &v1alpha1.ImageSource{Reference: "example.org/old@" + digestA, SecretRef: &v1alpha1.LocalReference{Name: "pull"}}}}},
		"git": {reason: "by commit, with the folder of then", present: []v1alpha1.Source{git}, origins: []v1alpha1.RevisionOrigin{fromGit},
			want: []v1alpha1.Source{{Git: &v1alpha1.GitSource{URL: "https://example.org/r", Path: "deploy", Ref: &v1alpha1.GitRef{Commit: commit}}}}},
		"signed commit": {reason: "a commit can be signed itself", present: []v1alpha1.Source{signed("HEAD")}, origins: []v1alpha1.RevisionOrigin{{Git: "https://example.org/r", Digest: "sha1:" + commit}},
			want: []v1alpha1.Source{{Git: &v1alpha1.GitSource{URL: "https://example.org/r", Ref: &v1alpha1.GitRef{Commit: commit}, Verify: &v1alpha1.GitVerification{Mode: "HEAD"}}}}},
		"signed tag": {reason: "a commit has no tag's signature", present: []v1alpha1.Source{signed("Tag")}, origins: []v1alpha1.RevisionOrigin{fromGit}, wrong: "commit ref: {tag: v1}"},
		"archive": {reason: "URL and digest", present: []v1alpha1.Source{{HTTP: &v1alpha1.HTTPSource{URL: "https://example.org/b-2.tgz"}}},
			origins: []v1alpha1.RevisionOrigin{{URL: "https://example.org/b-1.tgz", Digest: digestA}},
			want:    []v1alpha1.Source{{HTTP: &v1alpha1.HTTPSource{URL: "https://example.org/b-1.tgz", Digest: digestA}}}},
		"composed": {reason: "each part by its destination; a ConfigMap that holds the same is left", present: []v1alpha1.Source{with2(git, "a"), with2(files, "b")},
			origins: []v1alpha1.RevisionOrigin{{Destination: "b", ConfigMap: "files", Digest: digestB}, {Destination: "a", Git: "https://example.org/r", Digest: "sha1:" + commit}},
			current: []v1alpha1.RevisionOrigin{{Destination: "b", Digest: digestB}},
			want:    []v1alpha1.Source{with2(v1alpha1.Source{Git: &v1alpha1.GitSource{URL: "https://example.org/r", Ref: &v1alpha1.GitRef{Commit: commit}}}, "a"), with2(files, "b")}},
		"ConfigMap":    {reason: "its former content is not stored", present: []v1alpha1.Source{files}, origins: []v1alpha1.RevisionOrigin{{ConfigMap: "files", Digest: digestA}}, wrong: "restore its former content"},
		"another kind": {reason: "a login for a registry is none for Git", present: []v1alpha1.Source{image}, origins: []v1alpha1.RevisionOrigin{fromGit}, wrong: "git https://example.org/r at sha1:"},
		"other parts":  {reason: "there is no login for them", present: []v1alpha1.Source{with2(git, "a"), with2(files, "b")}, origins: []v1alpha1.RevisionOrigin{fromGit}, wrong: "composed of 1 source, and now there are 2"},
		"other place":  {reason: "nothing was there", present: []v1alpha1.Source{with2(git, "a")}, origins: []v1alpha1.RevisionOrigin{fromGit}, wrong: `nothing in the folder "a"`},
		"not recorded": {reason: "a history of an older controller", present: []v1alpha1.Source{git}, wrong: "was not recorded"},
		"SHA-256":      {reason: "commit takes 40 digits", present: []v1alpha1.Source{git}, origins: []v1alpha1.RevisionOrigin{{Git: "https://example.org/r", Digest: digestA}}, wrong: "cannot be named in spec.ref.commit"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := pin.Sources(tc.present, tc.origins, tc.current)
			if tc.wrong != "" {
				if wrong := new(pin.Error); !errors.As(err, &wrong) || !strings.Contains(err.Error(), tc.wrong) {
					t.Errorf("%s: got %v", tc.reason, err)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%s: %v -want +got:\n%s", tc.reason, err, diff)
			}
		})
	}
	if image.Image.Version == "" || git.Git.Ref.Branch != "main" {
		t.Error("what was given is changed")
	}
}

func with2(s v1alpha1.Source, destination string) v1alpha1.Source {
	s.Destination = destination
	return s
}
