// SPDX-License-Identifier: Apache-2.0

package image

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/satchel-dev/satchel/internal/fetch"
)

const (
	// maxRange bounds the text of a range.
	maxRange = 256
	// maxTags bounds the tags of a repository, and maxVersions those of them that are compared with the range: with a
	// long range 20,000 take about two seconds.
	maxTags     = 100_000
	maxVersions = 20_000
)

// versions is a range of versions, of which the newest tag is wanted.
type versions struct {
	text       string
	constraint *semver.Constraints
}

func parseRange(text string) (versions, error) {
	if len(text) > maxRange {
		return versions{}, fetch.Errorf(fetch.Refused, "the range has more than %d bytes", maxRange)
	}
	constraint, err := semver.NewConstraint(text)
	if err != nil {
		return versions{}, fetch.Errorf(fetch.Refused, "the range %s is malformed: write for example \">=1.2 <2\"",
			fetch.Quote(text))
	}
	return versions{text: text, constraint: constraint}, nil
}

// newest is the best of the tags seen so far.
type newest struct {
	versions
	seen    int
	checked int
	tag     string
	version *semver.Version
}

// look takes a tag into account. Only full versions count, with or without a "v", as in Flux: "1.2" and "20260131" are
// names that move, or dates. Prereleases count where the range names one. Of equal versions the last name is taken, so
// that the answer does not depend on the order.
func (n *newest) look(tag string) {
	n.seen++
	version, err := semver.StrictNewVersion(strings.TrimPrefix(tag, "v"))
	if err != nil || !tagText.MatchString(tag) ||
		n.version != nil && cmp.Or(version.Compare(n.version), cmp.Compare(tag, n.tag)) <= 0 {
		return
	}
	if n.checked++; n.checked <= maxVersions && n.constraint.Check(version) {
		n.tag, n.version = tag, version
	}
}

// bounded tells when there is more than is looked at.
func (n *newest) bounded() error {
	switch {
	case n.seen > maxTags:
		return fetch.Errorf(fetch.LimitExceeded, "the repository has more than %d tags", maxTags)
	case n.checked > maxVersions:
		return fetch.Errorf(fetch.LimitExceeded, "more than %d tags are versions above the range", maxVersions)
	}
	return nil
}

// newest returns the tag of the repository with the highest version in a range.
func (r *registry) newest(ctx context.Context, wanted versions) (string, error) {
	best := newest{versions: wanted}
	err := r.pages(ctx, question{path: "tags/list", query: pageSize}, func(_ string, data []byte) error {
		var page struct {
			Tags []string `json:"tags"`
		}
		if err := json.Unmarshal(data, &page); err != nil {
			return fetch.Errorf(fetch.InvalidContent, "the answer is not valid JSON: %w", err)
		}
		for _, tag := range page.Tags {
			best.look(tag)
		}
		return best.bounded()
	})
	if err != nil {
		return "", fetch.Describe(err, "listing the tags")
	}
	if best.version == nil {
		return "", fetch.Errorf(fetch.NotFound, "none of the %d tags is a version in the range %s", best.seen,
			fetch.Quote(wanted.text))
	}
	return best.tag, nil
}
