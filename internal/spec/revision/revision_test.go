// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

const (
	commit = "main@sha1:1a2b3c4d1a2b3c4d1a2b3c4d1a2b3c4d1a2b3c4d"
	image  = "v5.22.2@sha256:9f2b"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ reason, stated, origin, want string }{
		"Stated":      {"the bundle knows best", "1.2.3", image, "1.2.3"},
		"Tag":         {"a plain bundle states none", "", image, "v5.22.2"},
		"Bare":        {"without v", "", "5.22.2-rc.1@sha256:9f", "5.22.2-rc.1"},
		"Branch":      {"is no version", "", commit, ""},
		"Short":       {"a branch may be called so", "", "v1.2@sha1:12", ""},
		"Digest":      {"there is no tag", "", "sha256:9f2b", ""},
		"Composition": {"it has several", "", image + ", " + image, ""},
		"Counted":     {"it has several", "", image + ", +3 more", ""},
		"Name":        {"there is no digest", "", "1.2.3", ""},
		"Long":        {"is no version", strings.Repeat("1", 254), commit, ""},
		"LongTag":     {"the API server would refuse it", "", "1.2.3-" + strings.Repeat("a", 250) + "@sha256:9f", ""},
		"Metadata":    {"a tag has _ for +", "", "v1.2.3_build.7@sha256:9f", "v1.2.3+build.7"},
		"None":        {"nothing is known", "", "", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Version(tc.stated, tc.origin); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestName(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ reason, version, origin, want string }{
		"Both":      {"version first", "1.2.3", commit, "1.2.3 (" + commit + ")"},
		"SameTag":   {"nothing is said twice", "v5.22.2", image, image},
		"SameBut_v": {"nothing is said twice", "5.22.2", image, image},
		"Longer":    {"another version", "5.22", image, "5.22 (" + image + ")"},
		"Origin":    {"the bundle states no version", "", commit, commit},
		"Version":   {"the source says nothing", "1.2.3", "", "1.2.3"},
		"Metadata":  {"a tag has _ for +", "1.2.3+b.7", "1.2.3_b.7@sha256:9f2b", "1.2.3_b.7@sha256:9f2b"},
		"Neither":   {"the content is always known", "", "", "revision main@sha256:aa"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Name(tc.version, tc.origin, "main@sha256:aa"); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestRecorded(t *testing.T) {
	t.Parallel()
	history := []v1alpha1.RevisionRecord{
		{Revision: "b", Version: "1.2.4", OriginRevision: "main@sha1:4"},
		{Revision: "a", Version: "1.2.3", OriginRevision: "main@sha1:3"},
		{Revision: "b", Version: "1.2.2", OriginRevision: "main@sha1:2"},
	}
	for wanted, want := range map[string]string{"a": "1.2.3 (main@sha1:3)", "b": "1.2.4 (main@sha1:4)", "c": "revision c"} {
		if got := Recorded(history, wanted); got != want {
			t.Errorf("%s: got %q, want %q", wanted, got, want)
		}
	}
	if got := Applied(&v1alpha1.BundleDeploymentStatus{Applied: v1alpha1.AppliedRevision{Revision: "a", Version: "1.2.3"}}); got != "1.2.3" {
		t.Errorf("got %q", got)
	}
}
