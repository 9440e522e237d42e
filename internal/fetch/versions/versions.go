// SPDX-License-Identifier: Apache-2.0

// Package versions chooses the newest version in a range, of untrusted names. The work for a long range and many names is
// bounded.
package versions

import (
	"cmp"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/tagversion"
)

const (
	// MaxRange bounds the text of a range.
	MaxRange = 256
	// MaxCompared bounds the versions that are compared with a range: with a long range that takes about two seconds.
	MaxCompared = 20_000
)

// Range is a range of versions.
type Range struct {
	text       string
	constraint *semver.Constraints
	exact      *semver.Version // where the range is one full version
}

// Parse reads a range such as ">=1.2 <2". One full version may be written as its tag.
func Parse(text string) (Range, error) {
	if len(text) > MaxRange {
		return Range{}, fetch.Errorf(fetch.Refused, "the range has more than %d bytes", MaxRange)
	}
	exact, isExact := tagversion.Parse(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), "=")))
	written := text
	if isExact { // all builds of the version; Check compares the build
		written = "=" + semver.New(exact.Major(), exact.Minor(), exact.Patch(), exact.Prerelease(), "").String()
	}
	constraint, err := semver.NewConstraint(written)
	if err != nil {
		return Range{}, fetch.Errorf(fetch.Refused, "the range %s is malformed: write for example \">=1.2 <2\"",
			fetch.Quote(text))
	}
	return Range{text: text, constraint: constraint, exact: exact}, nil
}

// Empty tells that this is no range that was parsed.
func (r Range) Empty() bool { return r.constraint == nil }

// String returns the range as it was written.
func (r Range) String() string { return r.text }

// Check tells whether a version is in the range. One full version with build metadata means that build and no other.
func (r Range) Check(version *semver.Version) bool {
	return r.constraint.Check(version) && (r.exact == nil || r.exact.Metadata() == "" || r.isExactly(version))
}

// isExactly tells whether the range is this one version, build metadata included.
func (r Range) isExactly(version *semver.Version) bool {
	return r.exact != nil && tagversion.Compare(r.exact, version) == 0
}

// Newest is the best of the names seen so far.
type Newest struct {
	Range
	// Name is the one that was seen, and Version what it means; nil before any was in the range.
	Name    string
	Version *semver.Version

	compared int
}

// Look takes a name into account, and tells whether it is the best so far. Prereleases count where the range names one. A version
// that is written in full comes before others of the same precedence; otherwise the highest build metadata count, and of equal
// versions the last name, so that the answer does not depend on the order. What is below the best needs no comparison with the range.
func (n *Newest) Look(name string, version *semver.Version) bool {
	if n.Version != nil && n.compare(name, version) <= 0 {
		return false
	}
	if n.compared++; n.compared > MaxCompared || !n.Check(version) {
		return false
	}
	n.Name, n.Version = name, version
	return true
}

// compare orders a version and the best so far.
func (n *Newest) compare(name string, version *semver.Version) int {
	exactly := 0
	switch is, was := n.isExactly(version), n.isExactly(n.Version); {
	case is && !was:
		exactly = 1
	case was && !is:
		exactly = -1
	}
	return cmp.Or(exactly, tagversion.Compare(version, n.Version), cmp.Compare(name, n.Name))
}

// Bounded tells when there was more than is looked at.
func (n *Newest) Bounded() error {
	if n.compared > MaxCompared {
		return fetch.Errorf(fetch.LimitExceeded, "more than %d tags are versions above the range", MaxCompared)
	}
	return nil
}
