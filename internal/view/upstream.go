// SPDX-License-Identifier: Apache-2.0

package view

import (
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// Upstream says where a source takes its files from.
func Upstream(s v1alpha1.Source) string {
	switch {
	case s.Image != nil:
		return "image " + s.Image.Reference
	case s.Git != nil:
		return "git " + s.Git.URL + gitRef(s.Git.Ref)
	case s.HTTP != nil:
		return "archive " + s.HTTP.URL
	case s.Helm != nil:
		return "chart " + s.Helm.Chart + " of " + s.Helm.URL + chartVersion(s.Helm.Version)
	case s.ConfigMap != nil:
		return "ConfigMap " + s.ConfigMap.Name
	case s.Upload != nil:
		return "upload " + s.Upload.Digest[:min(len(s.Upload.Digest), len("sha256:")+12)]
	}
	return "unknown source"
}

func chartVersion(version string) string {
	if version == "" {
		return ""
	}
	return " at version " + version
}

func gitRef(r *v1alpha1.GitRef) string {
	switch {
	case r == nil:
		return ""
	case r.Commit != "":
		return " at commit " + r.Commit[:min(len(r.Commit), 12)]
	case r.Version != "":
		return " at tags " + r.Version
	case r.Tag != "":
		return " at tag " + r.Tag
	case r.Branch != "":
		return " at branch " + r.Branch
	}
	return ""
}

// IsPinned tells whether the source names immutable content, so that it is not fetched again.
func IsPinned(s v1alpha1.Source) bool {
	switch {
	case s.Image != nil:
		return strings.Contains(s.Image.Reference, "@sha256:") || strings.Contains(s.Image.Reference, "@sha512:")
	case s.Git != nil:
		return s.Git.Ref != nil && s.Git.Ref.Commit != ""
	case s.HTTP != nil:
		return s.HTTP.Digest != ""
	case s.Helm != nil:
		return s.Helm.Digest != ""
	case s.Upload != nil:
		return true
	}
	return false
}
