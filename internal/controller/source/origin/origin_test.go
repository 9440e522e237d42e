// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

var (
	commit = "sha1:" + strings.Repeat("1a2b3c4d", 5)
	sha256 = "sha256:" + strings.Repeat("9f", 32)
	sha512 = "sha512:" + strings.Repeat("7e", 64)
)

func image(ref string) v1alpha1.Source {
	return v1alpha1.Source{Image: &v1alpha1.ImageSource{Reference: ref}}
}

func archive(url string) v1alpha1.Source {
	return v1alpha1.Source{HTTP: &v1alpha1.HTTPSource{URL: url}}
}

func TestRevision(t *testing.T) {
	t.Parallel()
	repository := v1alpha1.Source{Git: &v1alpha1.GitSource{URL: "https://git.example.org/shop"}}
	tests := map[string]struct {
		reason            string
		source            v1alpha1.Source
		reference, digest string
		want              string
	}{
		"Branch":       {"as Flux's GitRepository", repository, "main", commit, "main@" + commit},
		"TagInGit":     {"a range gives the tag", repository, "v1.2.0", commit, "v1.2.0@" + commit},
		"Name":         {"the full name", repository, "refs/pull/7/head", commit, "refs/pull/7/head@" + commit},
		"Commit":       {"there is no name", repository, "", commit, commit},
		"LongBranch":   {"is cut between characters", repository, strings.Repeat("ü", 127), commit, strings.Repeat("ü", 62) + "…@" + commit},
		"Tag":          {"as Flux's OCIRepository", image("ghcr.io/a/b:v5.22.2"), "v5.22.2", sha256, "v5.22.2@" + sha256},
		"DefaultTag":   {"what was asked for", image("ghcr.io/a/b"), "latest", sha256, "latest@" + sha256},
		"Pinned":       {"no tag was given", image("ghcr.io/a/b@" + sha256), "", sha256, sha256},
		"PinnedPort":   {"a port is no tag", image("localhost:5000/a/b@" + sha256), "", sha256, sha256},
		"TagAndDigest": {"people know the tag", image("localhost:5000/a/b:v5@" + sha256), "", sha256, "v5@" + sha256},
		"Chart":        {"the version in the index", v1alpha1.Source{Helm: &v1alpha1.HelmSource{Chart: "podinfo", Version: "6.x"}}, "6.5.0", sha256, "6.5.0@" + sha256},
		"Archive":      {"the file that was downloaded", archive("https://example.org/dl/podinfo-6.5.0.tgz?token=CANARY#x"), "", sha256, "podinfo-6.5.0.tgz@" + sha256},
		"ArchivePin":   {"the digest of the spec", archive("https://example.org/b.tgz"), "", sha512, "b.tgz@" + sha512},
		"NoFile":       {"the URL names none", archive("https://example.org/"), "", sha256, sha256},
		"NoPath":       {"the URL names none", archive("https://example.org?file=x"), "", sha256, sha256},
		"Escaped":      {"stays one line", archive("https://example.org/a%0Ab.tgz"), "", sha256, "a%0Ab.tgz@" + sha256},
		"ConfigMap":    {"its name", v1alpha1.Source{ConfigMap: &v1alpha1.LocalReference{Name: "shop"}}, "", sha256, "shop@" + sha256},
		"Upload":       {"there is no name", v1alpha1.Source{Upload: &v1alpha1.UploadSource{Digest: sha256}}, "", sha256, "upload@" + sha256},
		"NotYet":       {"it was not downloaded", archive("https://example.org/b.tgz"), "", "", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Revision([]v1alpha1.Source{tc.source}, []v1alpha1.ResolvedSource{{Reference: tc.reference, Digest: tc.digest}})
			if got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestRevisionOfCompositions(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason, reference string
		sources           int
		want              string
	}{
		"Two":  {"in the order of the sources, whatever that of the status", "v", 2, "v0@d0, v1@d1"},
		"Four": {"all are named", "v", 4, "v0@d0, v1@d1, v2@d2, v3@d3"},
		"Many": {"the others are counted", "v", 16, "v0@d0, v1@d1, v2@d2, v3@d3, +12 more"},
		"Long": {"the bound holds", strings.Repeat("ä", 60), 16,
			strings.Join([]string{strings.Repeat("ä", 60) + "0@d0", strings.Repeat("ä", 60) + "1@d1", strings.Repeat("ä", 60) + "2@d2", strings.Repeat("ä", 60) + "3@d3"}, ", ") + ", +12 more"},
		"TooLong": {"those that fit", strings.Repeat("a", 200), 16,
			strings.Join([]string{strings.Repeat("a", 125) + "…@d0", strings.Repeat("a", 125) + "…@d1", strings.Repeat("a", 125) + "…@d2"}, ", ") + ", +13 more"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sources []v1alpha1.Source
			resolved := make([]v1alpha1.ResolvedSource, tc.sources)
			for i := range tc.sources {
				destination := fmt.Sprintf("d%d", i)
				sources = append(sources, v1alpha1.Source{Destination: destination, Git: &v1alpha1.GitSource{}})
				resolved[tc.sources-1-i] = v1alpha1.ResolvedSource{Destination: destination, Reference: fmt.Sprintf("%s%d", tc.reference, i), Digest: destination}
			}
			got := Revision(sources, resolved)
			if got != tc.want || len(got) > longest || !utf8.ValidString(got) {
				t.Errorf("%s: got %q (%d bytes), want %q", tc.reason, got, len(got), tc.want)
			}
			if half := Revision(sources, resolved[1:]); half != "" {
				t.Errorf("a source is not resolved, and the origin revision is %q", half)
			}
		})
	}
}
