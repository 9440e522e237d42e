// SPDX-License-Identifier: Apache-2.0

// Package fetch brings bytes in: it resolves a source reference once to a digest or commit, fetches exactly that,
// and fills a Tree with its files. The sub-packages hold one adapter for each kind of source; this one holds what
// they share: limits, the tree and errors with reasons. Package guard makes the clients that decide which addresses are
// reached.
//
// It knows no image or Git library and no Kubernetes client.
package fetch

import (
	"cmp"
	"context"
	"slices"
	"strings"
)

// Resolved is what a reference points at.
type Resolved struct {
	// Reference is the tag, branch or other name for people; "" when the source names a digest itself.
	Reference string
	// Digest is the identity of the content upstream, "sha256:<hex>" or "sha1:<commit>". It may be "" for an HTTP URL
	// that was not downloaded yet.
	Digest string
	// Validator is what an HTTP server says about the present content (ETag, Last-Modified), where the digest cannot
	// be known without a download.
	Validator string
	// Pinned tells that the reference can never point at anything else, so that it need not be asked again.
	Pinned bool
	// VerifiedBy says who signed it, for people; "" when no verification is configured.
	VerifiedBy string
	// Via is the mirror that gave it, for people; "" for the server that the source names.
	Via string
	// Warning says why this may not be what was wanted, for people; mostly "".
	Warning string
	// Signature is the signature by which it was accepted, in a form of the adapter's own, so that it can be judged by
	// another trust without the upstream; "" when none was demanded, or it is too large to be kept.
	Signature string
}

// Same tells that nothing moved since previous, so that no download is needed. Without a digest or validator to
// compare the answer is no.
func (r Resolved) Same(previous Resolved) bool {
	if r.Reference != previous.Reference {
		return false
	}
	if r.Digest != "" {
		return r.Digest == previous.Digest
	}
	return r.Validator != "" && r.Validator == previous.Validator
}

// Fetcher is one source, built with everything it needs. Both methods return an *Error where the cause is known.
type Fetcher interface {
	// Resolve finds out what the reference points at now, without downloading the content.
	Resolve(ctx context.Context) (Resolved, error)
	// Fetch writes exactly what r names into tree, and returns r completed.
	Fetch(ctx context.Context, r Resolved, tree *Tree) (Resolved, error)
}

// Part is one source of several that make up one tree.
type Part struct {
	// Destination is the folder of the tree that the source fills; "" is all of it.
	Destination string
	Fetcher     Fetcher
	// Resolved is what Fetcher.Resolve returned.
	Resolved Resolved
}

// Compose fetches all parts into one tree, one after the other, and returns what each was resolved to, in their order;
// with an error, of those before the one that failed. Destinations must not overlap.
func Compose(ctx context.Context, parts []Part, tree *Tree) ([]Resolved, error) {
	if err := checkDestinations(parts); err != nil {
		return nil, err
	}
	resolved := make([]Resolved, 0, len(parts))
	for _, part := range parts {
		sub, err := tree.Sub(part.Destination)
		if err != nil {
			return resolved, err
		}
		r, err := part.Fetcher.Fetch(ctx, part.Resolved, sub)
		if err != nil {
			return resolved, err
		}
		resolved = append(resolved, r)
	}
	return resolved, nil
}

// checkDestinations refuses two parts of which one would lie in the other.
func checkDestinations(parts []Part) error {
	folders := make([]string, 0, len(parts))
	for _, part := range parts {
		folder := "."
		if part.Destination != "" {
			clean, err := cleanName(part.Destination)
			if err != nil {
				return Errorf(Refused, "destination %s: %w", Quote(part.Destination), err)
			}
			folder = clean
		}
		folders = append(folders, folder)
	}
	slices.SortFunc(folders, func(a, b string) int { return cmp.Compare(a+"/", b+"/") })
	for i := 1; i < len(folders); i++ {
		outer, inner := folders[i-1], folders[i]
		if outer == "." || inner == "." || inner == outer || strings.HasPrefix(inner, outer+"/") {
			return Errorf(Refused, "destinations %s and %s overlap: give each source a folder of its own",
				Quote(outer), Quote(inner))
		}
	}
	return nil
}
