// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// UploadSource is content that a user uploads to the source controller, such as a folder that is being developed: no
// registry, repository or server is needed. The command satchel run writes the source and uploads the folder.
type UploadSource struct {
	// Digest says which content is meant, and no other is accepted: sha256: and the hash of the canonical uncompressed
	// tar of its files, which satchel run computes. Until it was uploaded the source is not Ready, and what it
	// published before stays published.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.matches('^sha256:[a-f0-9]{64}$')",message="must be sha256: and 64 lower-case hexadecimal digits; satchel run computes it"
	// +kubebuilder:validation:MaxLength=71
	Digest string `json:"digest"`
}
