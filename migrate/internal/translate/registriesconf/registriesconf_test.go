// SPDX-License-Identifier: Apache-2.0

package registriesconf_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/migrate/internal/translate/registriesconf"
)

// TestRead: C63.
func TestRead(t *testing.T) {
	for name, tt := range map[string]struct {
		reason, content string
		want            []string // spec by kind and name
		notes, problem  string
	}{
		"digests": {
			reason:  "the mirrors of OpenShift",
			content: "[[registry]]\nprefix = \"quay.io/org\"\nlocation = \"quay.io/org\"\nmirror-by-digest-only = true\n[[registry.mirror]]\nlocation = \"a.example.org\"\n[[registry.mirror]]\nlocation = \"b.example.org\"\n",
			want:    []string{`ImageDigestMirrorSet registries {"imageDigestMirrors":[{"mirrors":["a.example.org","b.example.org"],"source":"quay.io/org"}]}`},
		},
		"tags": {
			reason:  "a mirror is asked for tags by default",
			content: "[[registry]]\nlocation = \"quay.io/org\"\n[[registry.mirror]]\nlocation = \"a.example.org\"\n",
			want:    []string{`ImageTagMirrorSet registries-tags {"imageTagMirrors":[{"mirrors":["a.example.org"],"source":"quay.io/org"}]}`},
		},
		"both": {
			reason:  "each registry on its own",
			content: "[[registry]]\nlocation = \"quay.io\"\n[[registry.mirror]]\nlocation = \"a.example.org\"\npull-from-mirror = \"digest-only\"\n[[registry]]\nlocation = \"docker.io\"\n[[registry.mirror]]\nlocation = \"b.example.org\"\npull-from-mirror = \"all\"\n",
			want: []string{
				`ImageDigestMirrorSet registries {"imageDigestMirrors":[{"mirrors":["a.example.org"],"source":"quay.io"}]}`,
				`ImageTagMirrorSet registries-tags {"imageTagMirrors":[{"mirrors":["b.example.org"],"source":"docker.io"}]}`,
			},
		},
		"blocked": {
			reason:  "the mirrors are used, and the source is not",
			content: "[[registry]]\nlocation = \"quay.io\"\nblocked = true\nmirror-by-digest-only = true\n[[registry.mirror]]\nlocation = \"a.example.org\"\n",
			want:    []string{`ImageDigestMirrorSet registries {"imageDigestMirrors":[{"mirrorSourcePolicy":"NeverContactSource","mirrors":["a.example.org"],"source":"quay.io"}]}`},
		},
		"another location": {
			reason:  "the prefix is not contacted: its images are at the location",
			content: "[[registry]]\nprefix = \"quay.io/org\"\nlocation = \"moved.example.org/org\"\n",
			want:    []string{`ImageTagMirrorSet registries-tags {"imageTagMirrors":[{"mirrorSourcePolicy":"NeverContactSource","mirrors":["moved.example.org/org"],"source":"quay.io/org"}]}`},
		},
		"mixed": {
			reason:  "tags is a field of all mirrors of a rule",
			content: "[[registry]]\nlocation = \"quay.io\"\n[[registry.mirror]]\nlocation = \"a.example.org\"\npull-from-mirror = \"digest-only\"\n[[registry.mirror]]\nlocation = \"b.example.org\"\n",
			problem: `some mirrors of the registry "quay.io" are for digests only`,
		},
		"rest": {
			reason:  "what is not translated is said",
			content: "unqualified-search-registries = [\"docker.io\"]\n[[registry]]\nlocation = \"quiet.example.org\"\n[[registry]]\nlocation = \"quay.io\"\ninsecure = true\n[[registry.mirror]]\nlocation = \"a.example.org\"\n",
			want:    []string{`ImageTagMirrorSet registries-tags {"imageTagMirrors":[{"mirrors":["a.example.org"],"source":"quay.io"}]}`},
			notes:   `unqualified-search-registries has no counterpart; the registry "quiet.example.org" has no mirrors, and is left out; insecure of the registry "quay.io" is not translated`,
		},
		"version 1": {reason: "it has no mirrors", content: "[registries.search]\nregistries = [\"docker.io\"]\n", problem: "it has no [[registry]] with mirrors"},
		"no TOML":   {reason: "with the place", content: "registry = [", problem: "it is no TOML: "},
	} {
		t.Run(name, func(t *testing.T) {
			found := registriesconf.Read("etc/registries.conf", []byte(tt.content))
			var got []string
			for _, m := range found.Manifests {
				spec, err := json.Marshal(m.Object.Object["spec"])
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, m.Object.GetKind()+" "+m.Object.GetName()+" "+string(spec))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s: %s", tt.reason, diff)
			}
			if notes := strings.Join(found.Notes, "; "); !strings.HasPrefix(notes, tt.notes) || tt.notes == "" && tt.problem == "" && notes != "" {
				t.Errorf("%s: notes %s", tt.reason, notes)
			}
			if (tt.problem != "") != (len(found.Problems) > 0) || tt.problem != "" && !strings.HasPrefix(found.Problems[0].Message, tt.problem) {
				t.Errorf("%s: problems %v", tt.reason, found.Problems)
			}
		})
	}
}
