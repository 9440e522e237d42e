// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// HelmOptions are the options of the format helm.
type HelmOptions struct {
	// ReleaseName is .Release.Name in templates. It defaults to the name of this object. Most
	// charts use it in the names of their objects: if it changes, other objects are created.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=53
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of a release: lower-case letters, digits, '-' and '.'"
	ReleaseName string `json:"releaseName,omitempty"`

	// ValuesFiles are files of the bundle with values, as paths relative to the root of the
	// bundle's files: to the root of the artifact, or to the only folder in it. They are
	// merged in this order over the values of the chart, and valuesFrom and values over them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	ValuesFiles []ValuesFile `json:"valuesFiles,omitempty"`

	// Values for the templates, merged over those of valuesFrom, of valuesFiles and of the
	// chart. A null removes a value.
	// +optional
	// +kubebuilder:validation:Type=object
	Values *apiextensionsv1.JSON `json:"values,omitempty"`

	// ValuesFrom are Secrets and ConfigMaps with values. They are merged in this order, each
	// over those before it, and values over all of them. They are read as the ServiceAccount
	// of serviceAccountName, and a change of one is applied like a change of this spec.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	ValuesFrom []ValuesReference `json:"valuesFrom,omitempty"`

	// SchemaValidation says what happens when a values.schema.json of the chart or of a dependency does not allow the
	// values, or cannot be used because it refers to a URL or another file. Enforce, the default, refuses the bundle;
	// Warn installs it with a warning for each; None does not read the schemas.
	// +optional
	// +kubebuilder:validation:Enum=Enforce;Warn;None
	SchemaValidation Enforcement `json:"schemaValidation,omitempty"`
}

// ValuesFile is the path of a file of the bundle.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=1024
// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.split('/').exists(p, p == '..')",message="must be a relative path without .."
type ValuesFile string

// ValuesReference names a key of a Secret or a ConfigMap that holds values.
type ValuesReference struct {
	// Kind of the object: Secret or ConfigMap.
	// +required
	// +kubebuilder:validation:Enum=Secret;ConfigMap
	Kind string `json:"kind"`

	// Name of the object, in this namespace.
	// +required
	Name ObjectName `json:"name"`

	// ValuesKey is the key that contains the values, in YAML, or the single value for
	// targetPath. It defaults to values.yaml.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	ValuesKey string `json:"valuesKey,omitempty"`

	// TargetPath is the path of the value that the content of the key sets, in the notation of "helm --set":
	// image.tag, hosts[0].name. A dot in a name is escaped by a backslash. The content is read as "helm --set" reads
	// it: 8080, true and null are not strings, {a,b} is a list, and a comma in a string is escaped by a backslash. A
	// value in single or double quotes is a string.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=250
	// +kubebuilder:validation:XValidation:rule=`self.matches('^([-._/a-zA-Z0-9]|[\\\\][.]|[\\[][0-9]{1,5}[\\]])+$')`,message="must be a path of names and indexes such as image.tag or hosts[0].name"
	TargetPath string `json:"targetPath,omitempty"`

	// Optional lets the object, or the key, be missing: nothing is merged then, until it is
	// there. If it exists and cannot be read, that is still an error.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// Capabilities are the properties of the cluster that a chart sees.
type Capabilities struct {
	// KubeVersion is the version of the API server.
	KubeVersion string `json:"kubeVersion"`

	// APIVersions is the digest of the list of API versions and kinds that are served.
	APIVersions string `json:"apiVersions"`
}

// DefaultValuesKey is the key of a Secret or ConfigMap that holds values.
const DefaultValuesKey = "values.yaml"
