// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Inventory lists the objects that a BundleDeployment applied or is about to apply. It is stored before the first
// object is written, so that nothing is lost when the controller dies between two writes.
type Inventory struct {
	// Target is the identity of the cluster that holds the objects: the UID of
	// its kube-system namespace. Another target stalls the deployment.
	// +optional
	Target string `json:"target,omitempty"`

	// Count is the number of objects.
	// +optional
	Count int32 `json:"count"`

	// Recovered is set where the status was lost, and the objects were found again: hooks of
	// what is applied do not run again. It is removed when the next plan is applied.
	// +optional
	Recovered bool `json:"recovered,omitempty"`

	// Entries are the objects, while they are few.
	// +optional
	// +listType=atomic
	Entries []InventoryEntry `json:"entries,omitempty"`

	// Compressed holds the entries when they are many: base64 of zlib over a packed form of them. It is a plain string, since the API server
	// would compare a field with the format byte with a regular expression at each write of the object.
	// +optional
	Compressed string `json:"compressed,omitempty"`
}

// InventoryEntry is one object and what was last seen of it. Entries are an encoding for the controller, with short
// names because there can be thousands: "satchel tree" shows the objects, and only the id is meant to be read by
// other programs.
type InventoryEntry struct {
	// ID of the object: namespace_name_group_kind.
	ID string `json:"id"`

	// V is the version of its API group.
	// +optional
	V string `json:"v,omitempty"`

	// R is a hash of the object as rendered: as it was written last or, where b is set, as it was about to be written.
	// +optional
	R string `json:"r,omitempty"`

	// F is a hash of the fields that the API server records as ours, by which drift is found without reading the
	// object. It is _________v4 where the object waits for its removal and there was no room for the hash.
	// +optional
	F string `json:"f,omitempty"`

	// S is a hash of the object's UID and generation when last seen. Its first half is of the UID alone.
	// +optional
	S string `json:"s,omitempty"`

	// M is the state of an object for spec.prune.limit: n was created by a revision that was
	// not healthy yet, l left the bundle and may be deleted. Neither counts.
	// +optional
	M string `json:"m,omitempty"`

	// B tells that a write of the object was begun, and not confirmed since.
	// +optional
	B bool `json:"b,omitempty"`

	// D tells that the object is a Job that was seen to complete. It is not created
	// again after its deletion until its content changes.
	// +optional
	D bool `json:"d,omitempty"`
}
