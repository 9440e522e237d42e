// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/satchel-dev/satchel/internal/artifact"
)

// externalKind is the kind of Flux's ExternalArtifact, which points at what some other controller stores.
const externalKind = "externalartifact"

// maxRevision bounds the revision that a foreign controller gives.
const maxRevision = 512

// admitForeign decides whether what the status of a Flux source advertises may be fetched for that source: its URL has to
// be <server>/<kind>/<namespace>/<name>/<file>, the path under which Flux's controllers store, on a configured server.
// An ExternalArtifact may show what is stored under any kind, but under its own namespace and name.
func (l *Loader) admitForeign(o artifact.Owner, a meta.Artifact) (Wanted, error) {
	digest, err := artifact.ParseDigest(a.Digest)
	if err != nil {
		return Wanted{}, err
	}
	if a.Revision == "" || len(a.Revision) > maxRevision {
		return Wanted{}, fmt.Errorf("its revision is empty, or has more than %d bytes", maxRevision)
	}
	servers := l.flux
	if o.Kind == externalKind {
		servers = slices.Concat(l.flux, l.servers)
	}
	for _, server := range servers {
		path, found := strings.CutPrefix(a.URL, server+"/")
		if found && ownPath(o, path) {
			return Wanted{owner: o, url: a.URL, digest: digest, size: a.Size}, nil
		}
	}
	return Wanted{}, fmt.Errorf("its URL %.300q is not a path of %s on an artifact server that this controller is configured for: "+
		"see the flag --flux-artifact-servers", a.URL, o)
}

// ownPath tells whether a path is that of an owner's file, in its only spelling.
func ownPath(o artifact.Owner, path string) bool {
	parts := strings.Split(path, "/")
	if len(parts) != 4 || parts[1] != o.Namespace || parts[2] != o.Name || (parts[0] != o.Kind && o.Kind != externalKind) {
		return false
	}
	for _, part := range parts {
		if part == "" || part == "." || part == ".." || url.PathEscape(part) != part {
			return false
		}
	}
	return true
}
