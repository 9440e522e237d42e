// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/act"
	"github.com/satchel-dev/satchel/internal/cli/bundle"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
)

const commit = "0123456789abcdef0123456789abcdef01234567"

func TestPinned(t *testing.T) {
	image := v1alpha1.Source{Image: &v1alpha1.ImageSource{Ref: "example.org/new", SemVer: ">=1", SecretRef: &v1alpha1.LocalReference{Name: "pull"}}}
	git := v1alpha1.Source{Git: &v1alpha1.GitSource{Repository: "https://example.org/new", Ref: &v1alpha1.GitRef{Branch: "main"}, Directory: "new"}}
	signed := func(mode string) v1alpha1.Source {
		return v1alpha1.Source{Git: &v1alpha1.GitSource{Repository: "https://example.org/r", Ref: &v1alpha1.GitRef{Tag: "v2"}, Verify: &v1alpha1.GitVerification{Mode: mode}}}
	}
	files := v1alpha1.Source{ConfigMap: &v1alpha1.LocalReference{Name: "files"}}
	fromGit := v1alpha1.RevisionOrigin{Git: "https://example.org/r", Directory: "deploy", Reference: "v1", Digest: "sha1:" + commit}
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
			want:    []v1alpha1.Source{{Image: &v1alpha1.ImageSource{Ref: "example.org/old:v1.2.0@" + digestA, SecretRef: &v1alpha1.LocalReference{Name: "pull"}}}}},
		"pinned image": {reason: "without a tag", present: []v1alpha1.Source{image}, origins: []v1alpha1.RevisionOrigin{{Image: "example.org/old", Digest: digestA}},
			want: []v1alpha1.Source{{Image: &v1alpha1.ImageSource{Ref: "example.org/old@" + digestA, SecretRef: &v1alpha1.LocalReference{Name: "pull"}}}}},
		"git": {reason: "by commit, with the folder of then", present: []v1alpha1.Source{git}, origins: []v1alpha1.RevisionOrigin{fromGit},
			want: []v1alpha1.Source{{Git: &v1alpha1.GitSource{Repository: "https://example.org/r", Directory: "deploy", Ref: &v1alpha1.GitRef{Commit: commit}}}}},
		"signed commit": {reason: "a commit can be signed itself", present: []v1alpha1.Source{signed("HEAD")}, origins: []v1alpha1.RevisionOrigin{{Git: "https://example.org/r", Digest: "sha1:" + commit}},
			want: []v1alpha1.Source{{Git: &v1alpha1.GitSource{Repository: "https://example.org/r", Ref: &v1alpha1.GitRef{Commit: commit}, Verify: &v1alpha1.GitVerification{Mode: "HEAD"}}}}},
		"signed tag": {reason: "a commit has no tag's signature", present: []v1alpha1.Source{signed("Tag")}, origins: []v1alpha1.RevisionOrigin{fromGit}, wrong: "commit ref: {tag: v1}"},
		"archive": {reason: "URL and digest", present: []v1alpha1.Source{{HTTP: &v1alpha1.HTTPSource{URL: "https://example.org/b-2.tgz"}}},
			origins: []v1alpha1.RevisionOrigin{{URL: "https://example.org/b-1.tgz", Digest: digestA}},
			want:    []v1alpha1.Source{{HTTP: &v1alpha1.HTTPSource{URL: "https://example.org/b-1.tgz", Digest: digestA}}}},
		"composed": {reason: "each part by its destination; a ConfigMap that holds the same is left", present: []v1alpha1.Source{with2(git, "a"), with2(files, "b")},
			origins: []v1alpha1.RevisionOrigin{{Destination: "b", ConfigMap: "files", Digest: digestB}, {Destination: "a", Git: "https://example.org/r", Digest: "sha1:" + commit}},
			current: []v1alpha1.RevisionOrigin{{Destination: "b", Digest: digestB}},
			want:    []v1alpha1.Source{with2(v1alpha1.Source{Git: &v1alpha1.GitSource{Repository: "https://example.org/r", Ref: &v1alpha1.GitRef{Commit: commit}}}, "a"), with2(files, "b")}},
		"ConfigMap":    {reason: "its former content is not stored", present: []v1alpha1.Source{files}, origins: []v1alpha1.RevisionOrigin{{ConfigMap: "files", Digest: digestA}}, wrong: "restore its former content"},
		"another kind": {reason: "a login for a registry is none for Git", present: []v1alpha1.Source{image}, origins: []v1alpha1.RevisionOrigin{fromGit}, wrong: "git https://example.org/r at sha1:"},
		"other parts":  {reason: "there is no login for them", present: []v1alpha1.Source{with2(git, "a"), with2(files, "b")}, origins: []v1alpha1.RevisionOrigin{fromGit}, wrong: "composed of 1 source, and now there are 2"},
		"other place":  {reason: "nothing was there", present: []v1alpha1.Source{with2(git, "a")}, origins: []v1alpha1.RevisionOrigin{fromGit}, wrong: `nothing in the folder "a"`},
		"not recorded": {reason: "a history of an older controller", present: []v1alpha1.Source{git}, wrong: "was not recorded"},
		"SHA-256":      {reason: "commit takes 40 digits", present: []v1alpha1.Source{git}, origins: []v1alpha1.RevisionOrigin{{Git: "https://example.org/r", Digest: digestA}}, wrong: "cannot be named in spec.ref.commit"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := bundle.Pinned(tc.present, tc.origins, tc.current)
			if tc.wrong != "" {
				if wrong := new(bundle.PinError); !errors.As(err, &wrong) || !strings.Contains(err.Error(), tc.wrong) {
					t.Errorf("%s: got %v", tc.reason, err)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%s: %v -want +got:\n%s", tc.reason, err, diff)
			}
		})
	}
	if image.Image.SemVer == "" || git.Git.Ref.Branch != "main" {
		t.Error("what was given is changed")
	}
}

func with2(s v1alpha1.Source, destination string) v1alpha1.Source {
	s.Destination = destination
	return s
}

func history(outcomes ...v1alpha1.RevisionRecord) *v1alpha1.BundleDeployment {
	return aDeployment(func(d *v1alpha1.BundleDeployment) { d.Status.History = outcomes })
}

func record(revision string, outcome v1alpha1.Outcome) v1alpha1.RevisionRecord {
	return v1alpha1.RevisionRecord{Revision: revision, Outcome: outcome, StartedTime: ago(0)}
}

func TestFindRevision(t *testing.T) {
	healthy, failed := v1alpha1.OutcomeHealthy, v1alpha1.OutcomeFailed
	moved, named := "v1.2.0@"+digestB, record(revisionA, healthy)
	named.Version, named.OriginRevision = "1.2.0", "main@sha1:"+commit+", v9@"+digestB
	for name, tc := range map[string]struct {
		reason string
		d      *v1alpha1.BundleDeployment
		newest string
		to     string
		want   string
		wrong  string
	}{
		"previous":      {"the one before", history(record(revisionB, healthy), record(revisionA, healthy)), revisionB, view.PreviousRevision, revisionA, ""},
		"of a failure":  {"what failed is not gone back to", history(record(revisionB, failed), record("v1.2.9@sha256:99", failed), record(revisionA, healthy)), revisionB, view.PreviousRevision, revisionA, ""},
		"of a rollback": {"content counts, not its name", history(record(digestA, healthy), record(revisionB, healthy), record(revisionA, healthy)), digestA, view.PreviousRevision, revisionB, ""},
		"none":          {"nothing else was ever healthy", history(record(revisionB, healthy)), revisionB, view.PreviousRevision, "", "no other revision"},
		"no history":    {"nothing was ever installed", history(), "", view.PreviousRevision, "", "no history yet"},
		"by name":       {"also what failed", history(record(revisionB, failed), record(revisionA, failed)), revisionB, "v1.2.0", revisionA, ""},
		"by digest":     {"", history(record(revisionB, healthy), record(revisionA, healthy)), revisionB, digestA[:20], revisionA, ""},
		"moved tag":     {"the name means two contents", history(record(moved, healthy), record(revisionA, healthy)), moved, "v1.2.0", "", "means several revisions"},
		"twice":         {"the same content twice is one", history(record(revisionA, healthy), record(revisionB, healthy), record(revisionA, failed)), revisionB, "v1.2.0", revisionA, ""},
		"by version":    {"as the bundle states it", history(record(revisionB, healthy), named), revisionB, "1.2.0", revisionA, ""},
		"by commit":     {"as Git shortens it", history(record(revisionB, healthy), named), revisionB, commit[:7], revisionA, ""},
		"by both":       {"as history prints it", history(record(revisionB, healthy), named), revisionB, "main@sha1:" + commit[:7], revisionA, ""},
		"by part":       {"of a composition", history(record(revisionB, healthy), named), revisionB, "v9@" + digestB, revisionA, ""},
		"short commit":  {"which could be a name", history(record(revisionB, healthy), named), revisionB, commit[:6], "", "1.2.0 (main@sha1:" + commit[:7] + ", v9@sha256:ccccccc)  v1.2.0@sha256:aaaaaaaaaaaa  Healthy, since"},
		"other branch":  {"both have to be right", history(record(revisionB, healthy), named), revisionB, "dev@sha1:" + commit[:7], "", "has no revision"},
		"unknown":       {"what is known is listed", history(record(revisionB, healthy)), revisionB, "v9", "", "v1.3.0@sha256:cccccccccccc  Healthy, since 2026-05-04 12:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := view.FindRevision(tc.d, tc.newest, tc.to)
			if got.Revision != tc.want || (tc.wrong == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.wrong) {
				t.Errorf("%s: got %q, %v", tc.reason, got.Revision, err)
			}
		})
	}
}

func TestFluxPin(t *testing.T) {
	for kind, want := range map[string]string{
		"GitRepository": "spec:\n  ref:\n    commit: " + commit + "\n", "OCIRepository": "spec:\n  ref:\n    digest: " + digestA + "\n",
		"Bucket": "only has the newest files", "ExternalArtifact": "which another controller publishes",
	} {
		revision := revisionA
		if kind == "GitRepository" {
			revision = "main@sha1:" + commit
		}
		manifest, why := act.FluxPin(&v1alpha1.SourceReference{APIVersion: "source.toolkit.fluxcd.io/v1", Kind: kind, Name: "apps"}, "demo", revision)
		text, err := printer.YamlText(manifest)
		if err != nil || !strings.Contains(string(text)+why, want) {
			t.Errorf("%s: %q is missing in %s%s", kind, want, text, why)
		}
	}
}
