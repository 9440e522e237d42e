// SPDX-License-Identifier: Apache-2.0

// Package versions chooses the newest version in a range, of untrusted names. The work for a long range and many names is
// bounded.
package versions

import (
	"cmp"

	"github.com/Masterminds/semver/v3"

	"github.com/satchel-dev/satchel/internal/fetch"
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
}

// Parse reads a range such as ">=1.2 <2".
func Parse(text string) (Range, error) {
	if len(text) > MaxRange {
		return Range{}, fetch.Errorf(fetch.Refused, "the range has more than %d bytes", MaxRange)
	}
	constraint, err := semver.NewConstraint(text)
	if err != nil {
		return Range{}, fetch.Errorf(fetch.Refused, "the range %s is malformed: write for example \">=1.2 <2\"",
			fetch.Quote(text))
	}
	return Range{text: text, constraint: constraint}, nil
}

// Empty tells that this is no range that was parsed.
func (r Range) Empty() bool { return r.constraint == nil }

// String returns the range as it was written.
func (r Range) String() string { return r.text }

// Check tells whether a version is in the range.
func (r Range) Check(version *semver.Version) bool { return r.constraint.Check(version) }

// Newest is the best of the names seen so far.
type Newest struct {
	Range
	// Name is the one that was seen, and Version what it means; nil before any was in the range.
	Name    string
	Version *semver.Version

	compared int
}

// Look takes a name into account, and tells whether it is the best so far. Prereleases count where the range names one. Of
// equal versions the last name is taken, so that the answer does not depend on the order. What is below the best needs no
// comparison with the range.
func (n *Newest) Look(name string, version *semver.Version) bool {
	if n.Version != nil && cmp.Or(version.Compare(n.Version), cmp.Compare(name, n.Name)) <= 0 {
		return false
	}
	if n.compared++; n.compared > MaxCompared || !n.Check(version) {
		return false
	}
	n.Name, n.Version = name, version
	return true
}

// Bounded tells when there was more than is looked at.
func (n *Newest) Bounded() error {
	if n.compared > MaxCompared {
		return fetch.Errorf(fetch.LimitExceeded, "more than %d tags are versions above the range", MaxCompared)
	}
	return nil
}
