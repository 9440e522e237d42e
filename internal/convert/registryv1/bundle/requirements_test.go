// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// TestLongVersionIsNoVersion: the status of a deployment names the version.
func TestLongVersionIsNoVersion(t *testing.T) {
	for version, want := range map[string]string{"1.2.3": "1.2.3", "1.2.3-" + strings.Repeat("a", 300): ""} {
		if got := sensible(semver.MustParse(version)); got != want {
			t.Errorf("%.20s became %.20s", version, got)
		}
	}
}

// Whatever the files say, reading them ends, twice in the same way.
func FuzzRequirements(f *testing.F) {
	f.Add("dependencies: [{type: olm.package, value: {packageName: a, version: '>=1.x'}}]", "1.2")
	f.Add("dependencies: [{type: olm.constraint, value: {any: {constraints: [{gvk: {version: v1, kind: A}}, {cel: {rule: x}}]}}}]", "")
	f.Add("dependencies: [{type: olm.package, value: {packageName: a, version: '!1.x.x || 1..x'}}]", "v1")
	f.Fuzz(func(t *testing.T, dependencies, kube string) {
		read := func() (*Bundle, []manifest.Problem) {
			files := fstest.MapFS{dependenciesFile: {Data: []byte(dependencies), Mode: 0o644}}
			bundle := &Bundle{}
			bundle.CSV.Spec.MinKubeVersion = kube
			return bundle, bundle.readRequirements(files, manifest.NewReader(files, manifest.Limits{}))
		}
		first, problems := read()
		second, again := read()
		if diff := cmp.Diff(first.Requirements, second.Requirements); diff != "" || cmp.Diff(problems, again) != "" {
			t.Errorf("read differently: %s", diff)
		}
		for _, r := range first.Requirements {
			if r.Kind == RequirePackage && !validRange(r.Versions) {
				t.Errorf("an invalid range %q", r.Versions)
			}
		}
	})
}
