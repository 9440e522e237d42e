// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Processor changes objects of a bundle: exactly one of its fields is set.
//
// +kubebuilder:validation:ExactlyOneOf=patch;names;images;imageRewrites;variables;metadata
type Processor struct {
	// Patch changes objects of the bundle.
	// +optional
	Patch *Patch `json:"patch,omitempty"`

	// Names adds a prefix and a suffix to the names of the bundle's objects, and to references between them.
	// CustomResourceDefinitions, APIServices and Namespaces keep their names.
	// +optional
	Names *NamesProcessor `json:"names,omitempty"`

	// Images change names, tags and digests of images in containers of the bundle.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	Images []ImageOverride `json:"images,omitempty"`

	// ImageRewrites move images from one registry or repository to another, with their tags and
	// digests: in containers, and for registry+v1 also in variables and arguments that are
	// images of relatedImages. The longest match is used.
	// +optional
	// +listType=map
	// +listMapKey=from
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	ImageRewrites []ImageRewrite `json:"imageRewrites,omitempty"`

	// Variables replaces variables, such as ${region} or ${region:=eu}, in all strings of the bundle's objects. A
	// variable without a value and without a default is an error. "$${region}" results in ${region}, and the
	// annotation kustomize.toolkit.fluxcd.io/substitute: disabled, or satchel.dev/substitute: disabled, leaves an
	// object as it is.
	// +optional
	Variables *VariablesProcessor `json:"variables,omitempty"`

	// Metadata sets labels and annotations of every object of the bundle.
	// +optional
	Metadata *MetadataProcessor `json:"metadata,omitempty"`
}

// NamesProcessor adds a prefix and a suffix to names.
//
// +kubebuilder:validation:AtLeastOneOf=prefix;suffix
type NamesProcessor struct {
	// Prefix is added at the beginning of the names.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9][-a-z0-9.]*$`
	Prefix string `json:"prefix,omitempty"`

	// Suffix is added at the end of the names.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[-a-z0-9.]*[a-z0-9]$`
	Suffix string `json:"suffix,omitempty"`
}

// MetadataProcessor sets labels and annotations of every object of a bundle.
//
// +kubebuilder:validation:AtLeastOneOf=labels;annotations
type MetadataProcessor struct {
	// Labels are set on every object, in place of labels of the same key. Neither
	// selectors nor the Pods of workloads get them, so that they can change at any time.
	// +optional
	// +kubebuilder:validation:MaxProperties=50
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('satchel.dev/'))",message="labels of satchel.dev/ are set by the controller"
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations are set on every object, in place of annotations of the same key.
	// +optional
	// +kubebuilder:validation:MaxProperties=50
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Patch changes some objects of a bundle.
type Patch struct {
	// Patch is YAML or JSON: a strategic merge patch, which contains the fields that change, or a JSON 6902 patch, a
	// list of operations such as {op: replace, path: /spec/replicas, value: 2}. A strategic merge patch merges lists
	// in kinds of Kubernetes as the API server does, and replaces them in custom resources; "$patch: delete" deletes
	// the list item or the object that contains it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	Patch string `json:"patch"`

	// Target selects objects by what they are when the patch is applied, after the processors
	// before it. A JSON 6902 patch needs one. Without it a strategic merge patch changes the
	// object that it names itself, and may consist of several documents.
	// +optional
	Target *ObjectSelector `json:"target,omitempty"`
}

// ImageOverride changes one image, wherever containers of the bundle name it.
//
// +kubebuilder:validation:XValidation:rule="has(self.newName) || has(self.newTag) || has(self.digest)",message="one of newName, newTag and digest says what becomes of the image"
type ImageOverride struct {
	// Name of the image as the bundle writes it, without tag and digest.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Name string `json:"name"`

	// NewName replaces the name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9][a-zA-Z0-9._:/-]*$`
	NewName string `json:"newName,omitempty"`

	// NewTag replaces tag and digest.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9_][a-zA-Z0-9._-]*$`
	NewTag string `json:"newTag,omitempty"`

	// Digest replaces tag and digest; newTag can be set as well.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=160
	// +kubebuilder:validation:Pattern=`^sha(256:[a-f0-9]{64}|384:[a-f0-9]{96}|512:[a-f0-9]{128})$`
	Digest string `json:"digest,omitempty"`
}

// VariablesProcessor replaces variables in the objects of a bundle.
type VariablesProcessor struct {
	// Values of variables, with precedence over valuesFrom. Names are letters,
	// digits and underscores, and do not begin with a digit.
	// +optional
	// +kubebuilder:validation:MaxProperties=1000
	Values map[string]string `json:"values,omitempty"`

	// ValuesFrom names ConfigMaps and Secrets of this namespace that give values to
	// variables; later ones take precedence. They are read as the ServiceAccount, and a change
	// of one is applied. Keys that are not valid names of variables are ignored.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	ValuesFrom []VariablesReference `json:"valuesFrom,omitempty"`
}

// VariablesReference names a ConfigMap or Secret with values of variables.
type VariablesReference struct {
	// Kind is ConfigMap or Secret.
	// +required
	// +kubebuilder:validation:Enum=ConfigMap;Secret
	Kind string `json:"kind"`

	// Name of it, in this namespace.
	// +required
	Name ObjectName `json:"name"`

	// Optional lets it be missing.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// ImageRewrite moves images from one place to another.
type ImageRewrite struct {
	// From is a registry, or a registry with the first elements of a repository, such as quay.io or quay.io/org. It
	// matches whole path elements: quay.io/org does not match quay.io/organic. Images without a registry are those of
	// docker.io, without a path those of docker.io/library.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9]([a-zA-Z0-9._:/-]*[a-zA-Z0-9_-])?$`
	From string `json:"from"`

	// To replaces it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9]([a-zA-Z0-9._:/-]*[a-zA-Z0-9_-])?$`
	To string `json:"to"`
}
