// SPDX-License-Identifier: Apache-2.0

// Package revision names revisions for people, in controllers and on the command line.
package revision

import (
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/tagversion"
)

// longestVersion bounds a version, as the CRD does.
const longestVersion = 253

// Version is the version of a revision for people: that which the bundle states, or else the tag in its origin
// revision if that is a semantic version.
func Version(stated, originRevision string) string {
	if stated != "" && len(stated) <= longestVersion {
		return stated
	}
	tag, digest, _ := strings.Cut(originRevision, "@")
	if strings.ContainsAny(digest, "@,") { // of a composition
		return ""
	}
	if _, is := tagversion.Parse(tag); !is || digest == "" {
		return ""
	}
	return tagversion.Text(tag)
}

// Name names a revision for people: "1.2.3 (main@sha1:...)", the origin revision alone where that begins with the version, or
// what is known of both; without either the revision of the content.
func Name(version, originRevision, revision string) string {
	tag, _, _ := strings.Cut(originRevision, "@")
	tag = tagversion.Text(tag)
	switch {
	case originRevision == "" && version == "":
		return "revision " + revision
	case originRevision == "":
		return version
	case version == "" || tag == version, tag == "v"+version:
		return originRevision
	}
	return version + " (" + originRevision + ")"
}

// Applied names the applied revision of a status for people; see Name.
func Applied(status *v1alpha1.BundleDeploymentStatus) string {
	return Name(status.Applied.Version, status.Applied.OriginRevision, status.Applied.Revision)
}

// Recorded names a revision by its newest record in a history.
func Recorded(history []v1alpha1.RevisionRecord, revision string) string {
	for i := range history {
		if history[i].Revision == revision {
			return Name(history[i].Version, history[i].OriginRevision, revision)
		}
	}
	return Name("", "", revision)
}
