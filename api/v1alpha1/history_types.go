// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// RevisionOrigin is where a part of a revision was fetched from, and by which digest: exactly that can be asked for
// again. One of image, git, url and configMap is set, and none for content that was uploaded.
type RevisionOrigin struct {
	// Destination of the source within the artifact.
	// +optional
	Destination string `json:"destination,omitempty"`

	// Image is the repository of a container image, without tag and digest.
	// +optional
	Image string `json:"image,omitempty"`

	// Git is the URL of a Git repository.
	// +optional
	Git string `json:"git,omitempty"`

	// Path of the Git repository that was taken; all of it if empty.
	// +optional
	Path string `json:"path,omitempty"`

	// URL of an archive.
	// +optional
	URL string `json:"url,omitempty"`

	// Helm is the URL of a Helm repository.
	// +optional
	Helm string `json:"helm,omitempty"`

	// Chart is the name of the chart in the Helm repository.
	// +optional
	Chart string `json:"chart,omitempty"`

	// ConfigMap is the name of a ConfigMap. What it held then is not kept anywhere.
	// +optional
	ConfigMap string `json:"configMap,omitempty"`

	// Reference is the tag, branch, version of a chart or other name that was resolved;
	// empty where the source named a digest or commit itself.
	// +optional
	Reference string `json:"reference,omitempty"`

	// Digest of what was fetched: of an image's manifest, a commit (sha1:...), an
	// archive, a ConfigMap's content, or an upload.
	// +optional
	Digest string `json:"digest,omitempty"`

	// VerifiedBy is the signer of the accepted signature; empty where none was demanded.
	// +optional
	VerifiedBy string `json:"verifiedBy,omitempty"`
}
