// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// DriftCorrection says what is done about objects that another client changed or deleted.
// +kubebuilder:validation:Enum=Enabled;Warn;None
type DriftCorrection string

// Ways to correct drift.
const (
	// DriftEnabled finds drift and repairs it.
	DriftEnabled DriftCorrection = "Enabled"
	// DriftWarn finds drift and reports it.
	DriftWarn DriftCorrection = "Warn"
	// DriftNone does not look for drift between revisions.
	DriftNone DriftCorrection = "None"
)

// DriftOptions say what is done about drift, and which fields are left to other clients.
type DriftOptions struct {
	// Correction is Enabled, Warn or None. Enabled reverts what another client changed or deleted. Warn leaves it and
	// reports in status.drift and in an event which fields differ and who changed them. None does not detect drift;
	// health is still checked. In every mode a new revision, and a change of this spec, apply the bundle completely.
	// +optional
	// +kubebuilder:default=Enabled
	Correction DriftCorrection `json:"correction,omitempty"`

	// Ignore leaves fields to other clients: they are set when an object is created, and neither applied nor compared
	// afterwards, so that the values of other clients remain.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Ignore []IgnoreRule `json:"ignore,omitempty"`
}

// IgnoreRule leaves fields of some objects to other clients.
type IgnoreRule struct {
	// Paths are JSON pointers, such as /spec/replicas or /metadata/annotations/example.org~1note. A path includes
	// everything below it. A path into a list that is replaced as a whole has to name the list.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:Pattern=`^(/([^~/]|~[01])+)+$`
	// +kubebuilder:validation:XValidation:rule="!self.exists(p, p in ['/apiVersion', '/kind', '/metadata', '/metadata/name', '/metadata/namespace', '/metadata/labels'])",message="what an object is, and its labels as a whole, cannot be given to others"
	Paths []string `json:"paths"`

	// Target selects the objects; all if left out.
	// +optional
	Target *ObjectSelector `json:"target,omitempty"`
}

// ObjectSelector selects objects of a bundle. What is left out selects all; group,
// version, kind, namespace and name are regular expressions for the whole of it.
type ObjectSelector struct {
	// Group of the API, as a regular expression that has to match all of it. A field that is left out selects all.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`

	// Version of the API group, as a regular expression like group.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Version string `json:"version,omitempty"`

	// Kind of the objects, as a regular expression like group.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Kind string `json:"kind,omitempty"`

	// Namespace of the objects, as a regular expression like group. That of objects which name none is the install namespace.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Namespace string `json:"namespace,omitempty"`

	// Name of the objects, as a regular expression like group.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// LabelSelector selects by labels of the bundle's objects, as in kubectl get -l.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	LabelSelector string `json:"labelSelector,omitempty"`

	// AnnotationSelector selects by annotations in the same way.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	AnnotationSelector string `json:"annotationSelector,omitempty"`
}

// DriftStatus says what drift there is, and how it is looked for.
type DriftStatus struct {
	// Found is what differs from the bundle and is not repaired at the moment, a line
	// an object, with the fields and who changed them; at most 20.
	// +optional
	// +listType=atomic
	Found []string `json:"found,omitempty"`

	// AtInterval are the kinds and namespaces where drift and health are looked for at the interval only, because they
	// cannot be watched, and why; also Secrets and ConfigMaps of this spec that are read at the interval only. At most
	// 20. Drift of all others is detected within a second.
	// +optional
	// +listType=atomic
	AtInterval []string `json:"atInterval,omitempty"`
}
