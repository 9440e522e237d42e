// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"errors"
	"fmt"
	"strings"

	mmsemver "github.com/Masterminds/semver/v3"
	bsemver "github.com/blang/semver/v4"

	"github.com/satchel-dev/satchel/internal/catalog"
)

// version is the version and release of a bundle (R3).
type version struct {
	semver  bsemver.Version
	release []bsemver.PRVersion // empty if there is none
	full    bsemver.Version     // as it is written, with the release
}

// maxReleaseLength is how long build metadata is that reads as a release.
const maxReleaseLength = 20

// parseVersion reads a version strictly: three numbers, no v. Its errors are part of OLM v1's texts.
func parseVersion(text string) (version, error) {
	parsed, err := bsemver.Parse(text)
	if err != nil {
		return version{}, err
	}
	v := version{semver: parsed, full: parsed, release: parseRelease(parsed.Build)}
	if len(v.release) > 0 {
		v.semver.Build = nil
	}
	return v, nil
}

// parseRelease returns nil if build metadata is no release: it is too long, or a number has leading zeros.
func parseRelease(build []string) []bsemver.PRVersion {
	if len(strings.Join(build, ".")) > maxReleaseLength {
		return nil
	}
	release := make([]bsemver.PRVersion, 0, len(build))
	for _, part := range build {
		parsed, err := bsemver.NewPRVersion(part)
		if err != nil {
			return nil
		}
		release = append(release, parsed)
	}
	return release
}

// compare orders by version and then by release; no release is lower than any. Other build metadata does not count.
func (v version) compare(other version) int {
	if order := v.semver.Compare(other.semver); order != 0 {
		return order
	}
	switch {
	case len(v.release) == 0 && len(other.release) == 0:
		return 0
	case len(v.release) == 0:
		return -1
	case len(other.release) == 0:
		return 1
	}
	return bsemver.Version{Pre: v.release}.Compare(bsemver.Version{Pre: other.release})
}

// releaseText is the release as it is written, or empty.
func (v version) releaseText() string {
	parts := make([]string, 0, len(v.release))
	for _, part := range v.release {
		parts = append(parts, part.String())
	}
	return strings.Join(parts, ".")
}

// String is the version with its release.
func (v version) String() string { return v.full.String() }

// bundleVersion reads the version of a bundle.
func bundleVersion(b catalog.Bundle) (version, error) {
	if b.VersionProblem != "" {
		return version{}, errors.New(b.VersionProblem)
	}
	return parseVersion(b.Version)
}

// CompareBundles orders bundles by version and release, the lowest first (R3, R6); those without a version come before all.
func CompareBundles(a, b catalog.Bundle) int {
	versionA, errA := bundleVersion(a)
	versionB, errB := bundleVersion(b)
	switch {
	case errA != nil && errB != nil:
		return 0
	case errA != nil || errB != nil:
		return lower(errB != nil)
	}
	return versionA.compare(versionB)
}

// CheckVersion says why a bundle has no version that resolution can use; it can never be chosen then.
func CheckVersion(b catalog.Bundle) error {
	_, err := bundleVersion(b)
	return err
}

// SkipRange reads a skipRange of a catalog and returns which installed versions it contains (R5). Resolution ignores one
// with an error.
func SkipRange(text string) (contains func(version string) bool, err error) {
	if len(text) > maxSkipRangeLength {
		return nil, fmt.Errorf("it is longer than %d characters", maxSkipRangeLength)
	}
	in, err := bsemver.ParseRange(text)
	if err != nil {
		return nil, err
	}
	return func(text string) bool {
		v, err := bsemver.Parse(text)
		return err == nil && in(v)
	}, nil
}

// maxRangeLength bounds ranges of versions.
const maxRangeLength = 255

// parseRange reads a range (R2); nil contains every version.
func parseRange(text string) (*mmsemver.Constraints, error) {
	if text == "" {
		return nil, nil
	}
	if len(text) > maxRangeLength {
		return nil, fmt.Errorf("it is longer than %d characters", maxRangeLength)
	}
	return mmsemver.NewConstraint(text)
}

// inRange tells whether the range contains the version, without its release.
func inRange(constraint *mmsemver.Constraints, v version) bool {
	if constraint == nil {
		return true
	}
	pre := make([]string, 0, len(v.semver.Pre))
	for _, part := range v.semver.Pre {
		pre = append(pre, part.String())
	}
	return constraint.Check(mmsemver.New(v.semver.Major, v.semver.Minor, v.semver.Patch,
		strings.Join(pre, "."), strings.Join(v.semver.Build, ".")))
}
