// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"encoding/json"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/versions"
	"github.com/satchel-dev/satchel/internal/tagversion"
)

// maxTags bounds the tags of a repository.
const maxTags = 100_000

// newest is the best of the tags seen so far.
type newest struct {
	versions.Newest
	seen int
}

// look takes a tag into account, if it is a version.
func (n *newest) look(tag string) {
	n.seen++
	if version, is := tagversion.Parse(tag); is && tagText.MatchString(tag) {
		n.Look(tag, version)
	}
}

// bounded tells when there is more than is looked at.
func (n *newest) bounded() error {
	if n.seen > maxTags {
		return fetch.Errorf(fetch.LimitExceeded, "the repository has more than %d tags", maxTags)
	}
	return n.Bounded()
}

// newest returns the tag of the repository with the highest version in a range.
func (r *registry) newest(ctx context.Context, wanted versions.Range) (string, error) {
	best := newest{Newest: versions.Newest{Range: wanted}}
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
	if best.Version == nil {
		return "", fetch.Errorf(fetch.NotFound, "none of the %d tags is a version in the range %s", best.seen,
			fetch.Quote(wanted.String()))
	}
	return best.Name, nil
}
