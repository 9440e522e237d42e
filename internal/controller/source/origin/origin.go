// SPDX-License-Identifier: Apache-2.0

// Package origin writes the origin revision of a source: what its artifact was made from, in the words of the upstream, for
// people. Nothing is decided by it; artifacts are compared by the revision of their content. The form is that of Flux.
package origin

import (
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

const (
	// mostParts is how many sources of a composition are named.
	mostParts = 4
	// longest bounds the whole in bytes, as the CRD does in characters, and longestName the name of one part.
	longest, longestName = 512, 128
	// roomForMore is kept for the number of sources that are not named.
	roomForMore = len(", +16 more")
	// uploaded is the name of content that was uploaded.
	uploaded = "upload"
)

// Revision is the origin revision of sources that were resolved, in the order of the sources: name@digest for each, joined by
// commas. Those beyond the fourth, or beyond 512 bytes, are counted. "" if a source was not resolved.
//
//	Git          branch, tag or name@sha1:<commit>; sha1:<commit> if the spec names the commit
//	image        tag@sha256:<digest of the manifest>; sha256:<digest> if the spec names no tag
//	Helm         version@sha256:<digest of the archive of the chart>
//	HTTP         file name of the URL@sha256:<digest of the archive>
//	ConfigMap    name@sha256:<digest of its content>
//	upload       upload@sha256:<digest of its content>
func Revision(sources []v1alpha1.Source, resolved []v1alpha1.ResolvedSource) string {
	byDestination := map[string]v1alpha1.ResolvedSource{}
	for _, r := range resolved {
		byDestination[r.Destination] = r
	}
	parts := make([]string, 0, len(sources))
	for _, source := range sources {
		r, found := byDestination[source.Destination]
		if !found || r.Digest == "" {
			return ""
		}
		parts = append(parts, join(nameOf(source, r), r.Digest))
	}
	return list(parts)
}

func join(name, digest string) string {
	if name == "" {
		return digest
	}
	if len(name) > longestName {
		name = strings.ToValidUTF8(name[:longestName-len("…")], "") + "…"
	}
	return name + "@" + digest
}

// list joins as many parts as there is room for.
func list(parts []string) string {
	text := ""
	for i, part := range parts {
		next := part
		if i > 0 {
			next = text + ", " + part
		}
		if i > 0 && (i == mostParts || len(next) > longest-roomForMore) {
			return fmt.Sprintf("%s, +%d more", text, len(parts)-i)
		}
		text = next
	}
	return text
}

// nameOf is the mutable name of a source, such as a tag; "" where it has only a digest.
func nameOf(source v1alpha1.Source, r v1alpha1.ResolvedSource) string {
	switch {
	case r.Reference != "":
		return r.Reference
	case source.Image != nil:
		return tagOf(source.Image.Reference)
	case source.HTTP != nil:
		return fileOf(source.HTTP.URL)
	case source.ConfigMap != nil:
		return source.ConfigMap.Name
	case source.Upload != nil:
		return uploaded
	}
	return ""
}

// tagOf is the tag of an image reference, which may name a digest as well; "" for none.
func tagOf(ref string) string {
	ref, _, _ = strings.Cut(ref, "@")
	if colon := strings.LastIndexByte(ref, ':'); colon > strings.LastIndexByte(ref, '/') {
		return ref[colon+1:]
	}
	return ""
}

// fileOf is the last part of the path of a URL, escaped as there; "" for none. The query, which may hold a signature, is left out.
func fileOf(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return ""
	}
	name := path.Base(parsed.EscapedPath())
	if name == "." || name == "/" {
		return ""
	}
	return name
}
