// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/internal/artifact"
)

func TestSourceOwner(t *testing.T) {
	a := put(t, openStore(t, t.TempDir()), files(map[string]string{"a": "1"}))
	identity := artifact.Identity(a.Revision)
	want := "http://artifacts.test/bundlesource/platform/app/" + strings.TrimPrefix(identity, "sha256:") + ".tar.gz"
	if artifact.SourceOwner("platform", "app") != owner || a.URL != want {
		t.Errorf("published at %s where %s was expected", a.URL, want)
	}
}

func TestIdentity(t *testing.T) {
	digest := digestOf([]byte("a"))
	cases := map[string]struct{ reason, revision, want string }{
		"reference":        {"the usual form", "v1@" + digest, digest},
		"no reference":     {"a digest was asked for", digest, digest},
		"at in reference":  {"branches may have one", "a@b@" + digest, digest},
		"digest reference": {"an upstream digest is no identity", digestOf(nil) + "@" + digest, digest},
		"empty":            {"nothing is published", "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := artifact.Identity(tc.revision); got != tc.want {
				t.Errorf("got %q where %q was expected: %s", got, tc.want, tc.reason)
			}
		})
	}
}
