// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "encoding/json"

// InternalStatus is the state that the deployment controller keeps for itself. In JSON it is one
// string, which contains an object of these fields: nothing of it is an API, and the API server has
// less to validate. A text that cannot be read is an empty state: one object that cannot be decoded
// would keep the controllers from listing all the others. What is lost with it is computed again,
// and no plan counts as approved.
//
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:MaxLength=32768
type InternalStatus struct {
	// HashKey is the key of the hashes in the status, encrypted with a key of the installation.
	// It stays the same when the keys of the installation are rotated.
	HashKey string `json:"hashKey,omitempty"`

	// Server is a keyed hash of the server and the certificate authorities of the kubeconfig
	// with which the cluster of the inventory was identified last; empty for this cluster.
	// BundleDeployments of a namespace have the same one if they have the same server.
	Server string `json:"server,omitempty"`

	// Executed is the plan that was carried out last, or is being so.
	Executed *ExecutedPlan `json:"executed,omitempty"`

	// Artifact is where the content of the last healthy revision was loaded from: remediation
	// may have to go back to it.
	Artifact *KeptArtifact `json:"artifact,omitempty"`
}

// internalFields are the fields, without the methods, of an InternalStatus.
type internalFields InternalStatus

// MarshalJSON writes a string.
func (s InternalStatus) MarshalJSON() ([]byte, error) {
	text, err := json.Marshal(internalFields(s))
	if err != nil {
		return nil, err
	}
	return json.Marshal(string(text))
}

// UnmarshalJSON reads what MarshalJSON writes. It never fails.
func (s *InternalStatus) UnmarshalJSON(value []byte) error {
	*s = InternalStatus{}
	var text string
	var read internalFields
	if json.Unmarshal(value, &text) == nil && json.Unmarshal([]byte(text), &read) == nil {
		*s = InternalStatus(read)
	}
	return nil
}
