// SPDX-License-Identifier: Apache-2.0

// Package tagversion reads the tags of images and OCI artifacts as versions. A tag cannot have the plus sign that begins the build
// metadata of a version, so "helm push" and others write "_": the tag 1.2.3_build.7 is the version 1.2.3+build.7. Whatever gets a version
// from a tag, or a tag from a version, does it here.
package tagversion

import (
	"cmp"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// maxTag bounds a tag (OCI distribution specification).
const maxTag = 128

// Parse reads a tag as a version. Only full versions count, with or without a "v": "1.2" and "20260131" are names that move, or
// dates.
func Parse(tag string) (*semver.Version, bool) {
	if len(tag) > maxTag {
		return nil, false
	}
	version, err := semver.StrictNewVersion(strings.TrimPrefix(strings.ReplaceAll(tag, "_", "+"), "v"))
	return version, err == nil
}

// Text is the version that a tag stands for, as people write it, with the "v" of the tag; the tag itself if that is no version.
func Text(tag string) string {
	if _, is := Parse(tag); !is {
		return tag
	}
	return strings.ReplaceAll(tag, "_", "+")
}

// Tag is the tag that stands for a version.
func Tag(version string) string { return strings.ReplaceAll(version, "+", "_") }

// Compare orders versions by precedence, and those of equal precedence by their build metadata, which are compared as
// prereleases are: build.10 is above build.7, and any above none.
func Compare(a, b *semver.Version) int {
	return cmp.Or(a.Compare(b), compareMetadata(a.Metadata(), b.Metadata()))
}

func compareMetadata(a, b string) int {
	if a == "" || b == "" {
		return cmp.Compare(len(a), len(b))
	}
	return semver.New(0, 0, 0, a, "").Compare(semver.New(0, 0, 0, b, ""))
}

// Hint is what a message about a reference that is refused adds where its tag has a plus sign; "" where it has none.
func Hint(reference string) string {
	_, tag, found := strings.Cut(reference[strings.LastIndexByte(reference, '/')+1:], ":")
	if !found || !strings.Contains(tag, "+") || len(tag) > maxTag {
		return ""
	}
	if _, is := Parse(Tag(tag)); !is {
		return ""
	}
	return "; in a tag the + of a version is written _: " + Tag(tag)
}
