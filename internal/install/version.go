// SPDX-License-Identifier: Apache-2.0

package install

import (
	"regexp"

	"github.com/Masterminds/semver/v3"
)

// described matches the output of git describe for a commit between releases, which has no order relative to releases.
var described = regexp.MustCompile(`-\d+-g[0-9a-f]{7,}|-dirty$`)

// Order compares two releases: below 0 if the first is older. It is unknown if one of the versions is not that of a release.
func Order(a, b string) (order int, known bool) {
	first, wrong := semver.StrictNewVersion(trimV(a))
	second, alsoWrong := semver.StrictNewVersion(trimV(b))
	if wrong != nil || alsoWrong != nil || described.MatchString(a) || described.MatchString(b) {
		return 0, false
	}
	return first.Compare(second), true
}

// IsRelease tells whether a version is that of a release.
func IsRelease(version string) bool {
	_, known := Order(version, version)
	return known && version[0] == 'v'
}

func trimV(version string) string {
	if len(version) > 0 && version[0] == 'v' {
		return version[1:]
	}
	return version
}
