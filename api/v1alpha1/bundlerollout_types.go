// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels and annotations that a BundleRollout writes to its BundleDeployments. The annotations are written in the one patch
// that changes the spec.
const (
	// RolloutLabel holds the name of the BundleRollout that created the BundleDeployment.
	RolloutLabel = "satchel.dev/rollout"
	// ClusterLabel holds the name of the cluster that the BundleDeployment is for.
	ClusterLabel = "satchel.dev/cluster"
	// RolloutRevisionAnnotation holds the name of the revision that the spec was rendered from.
	RolloutRevisionAnnotation = "satchel.dev/rollout-revision"
	// RolloutSpecAnnotation holds the hash of the rendered spec, with the version of its form.
	RolloutSpecAnnotation = "satchel.dev/rollout-spec"
	// RolloutStartAnnotation holds the number of the start that wrote the spec: see status.starts.
	RolloutStartAnnotation = "satchel.dev/rollout-start"
	// RolloutStartedAnnotation holds the time of that start, in RFC 3339.
	RolloutStartedAnnotation = "satchel.dev/rollout-started"
	// RolloutInputsAnnotation holds the digests of the Secrets and ConfigMaps that only this cluster has, as that start
	// copied them.
	RolloutInputsAnnotation = "satchel.dev/rollout-inputs"
	// RolloutClusterAnnotation holds the UID of the Cluster of Cluster API, or of the ClusterProfile, that stands for the cluster: of the
	// one with which the BundleDeployment was last known to be installed. Another UID tells a cluster that was rebuilt.
	RolloutClusterAnnotation = "satchel.dev/rollout-cluster-uid"
	// RolloutReleasedAnnotation holds the UID of the BundleRollout and the digest of the approved plan of a
	// removal: the BundleDeployment may be removed, whatever the limit.
	RolloutReleasedAnnotation = "satchel.dev/rollout-released"
	// RolloutGatesAnnotation holds the UID of the BundleRollout, and the digest of its waves and clusters if
	// a wave needs an approval: another BundleRollout takes over the BundleDeployment with an approval only.
	RolloutGatesAnnotation = "satchel.dev/rollout-gates"
)

// Limits of a rollout that are part of its contract.
const (
	// MaxStarting is how many starts are recorded at once in status.starting.
	MaxStarting = 50
	// MaxWorst is how many clusters status.worst lists.
	MaxWorst = 10
	// MaxWorstMessage is how long a message in status.worst is, in bytes.
	MaxWorstMessage = 256
)

// BundleRolloutSpec says which bundle goes to which clusters, and in which order.
type BundleRolloutSpec struct {
	// Suspend stops further starts: no cluster gets another revision. The BundleDeployments still reconcile and correct
	// drift. Clusters that were started are not stopped.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// Revision is the name of a revision of status.history to stay at, or to go to, in quotes,
	// because it may look like a number. Empty, the default, follows the source. The current revision during a run stops the run and brings
	// all clusters back, without approvals and windows; an older one is a run with all gates.
	// +optional
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9a-f]{10})?$')",message="must be the name of a revision, 10 hexadecimal digits, as status.history shows it"
	Revision string `json:"revision,omitempty"`

	// SourceRef names the BundleSource with the bundle. It may follow a tag, a branch or a
	// range: each revision is pinned by digest before the first cluster gets it.
	// +required
	SourceRef RolloutSourceReference `json:"sourceRef"`

	// Clusters are where the bundle goes. Entries are joined by the name of the cluster: where two
	// have the same name, the first entry that has it is used.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Clusters []RolloutClusters `json:"clusters"`

	// Template is the BundleDeployment of each cluster.
	// +required
	Template RolloutTemplate `json:"template"`

	// Variables are values that differ between clusters. $(name) is replaced in path, target.namespace,
	// target.serviceAccountName, helm.releaseName, names in helm.valuesFrom, and names in valuesFrom and values of
	// variables in processors; "$$(name)" results in $(name). $(cluster) is the name of the cluster. Each processor of
	// the template with variables gets these variables as well, unless it sets them itself. A value may have at most 4
	// KiB, and the spec of a BundleDeployment at most 256 KiB with its variables replaced.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Variables []RolloutVariable `json:"variables,omitempty"`

	// Overrides change the spec of the template for some clusters, one after the other.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Overrides []RolloutOverride `json:"overrides,omitempty"`

	// DependsOn names other BundleRollouts of this namespace: a new revision is applied on a
	// cluster when the other rollout's BundleDeployment of the same cluster is ready.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	DependsOn []RolloutDependency `json:"dependsOn,omitempty"`

	// Strategy says in which order and how fast clusters get a revision.
	// +optional
	// +kubebuilder:default={}
	Strategy RolloutStrategy `json:"strategy,omitzero"`

	// Removal says what happens to clusters that are no longer selected.
	// +optional
	// +kubebuilder:default={}
	Removal RolloutRemoval `json:"removal,omitzero"`

	// DeletionPolicy says what happens when this BundleRollout is deleted. Orphan keeps its
	// BundleDeployments, which go on reconciling. Delete deletes them, in the reverse order of
	// the waves, as many at once as these allow. It has no default: a deletion concerns all clusters.
	// +required
	DeletionPolicy DeletionPolicy `json:"deletionPolicy"`

	// HistoryLimit is how many finished revisions status.history lists. It is possible to go back to these.
	// +optional
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	HistoryLimit *int32 `json:"historyLimit,omitempty"`
}

// RolloutSourceReference names a source in the namespace of the BundleRollout.
type RolloutSourceReference struct {
	// Kind of the source.
	// +optional
	// +kubebuilder:validation:Enum=BundleSource
	// +kubebuilder:default=BundleSource
	Kind string `json:"kind,omitempty"`

	// Name of the source.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`
}

// RolloutClusters are one or more clusters.
//
// +kubebuilder:validation:ExactlyOneOf=cluster;kubeConfigSecrets;clusterAPI;clusterProfiles
type RolloutClusters struct {
	// Cluster is a single cluster.
	// +optional
	Cluster *RolloutCluster `json:"cluster,omitempty"`

	// KubeConfigSecrets are clusters with a kubeconfig in a Secret of this namespace, one a Secret. A cluster has the
	// name, the labels and the annotations of its Secret. The Secrets are listed, without their content, as the
	// ServiceAccount of the template, which needs permission to list them.
	// +optional
	KubeConfigSecrets *KubeConfigSecretClusters `json:"kubeConfigSecrets,omitempty"`

	// ClusterAPI are objects of kind Cluster, of the API group cluster.x-k8s.io, in this namespace. The kubeconfig is
	// in the Secret that Cluster API writes, which is the name of the cluster and -kubeconfig.
	// +optional
	ClusterAPI *ClusterAPIClusters `json:"clusterAPI,omitempty"`

	// ClusterProfiles are objects of kind ClusterProfile, of the API group multicluster.x-k8s.io, in this namespace. A
	// cluster has the name, the labels and the annotations of its ClusterProfile, and its properties for variables.
	// +optional
	ClusterProfiles *ClusterProfileClusters `json:"clusterProfiles,omitempty"`
}

// ClusterName is the name of a cluster within a rollout, which is also the value of a label.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of a cluster: lower-case letters, digits, '-' and '.', at most 63 characters"
type ClusterName = string

// RolloutCluster is a single cluster.
//
// +kubebuilder:validation:XValidation:rule="!has(self.serviceAccountName) || has(self.kubeConfig) || has(self.clusterProfileRef)",message="serviceAccountName needs kubeConfig or clusterProfileRef: it is a ServiceAccount of the remote cluster"
// +kubebuilder:validation:AtMostOneOf=kubeConfig;clusterProfileRef
type RolloutCluster struct {
	// Name of the cluster, unique in the rollout.
	// +required
	Name ClusterName `json:"name"`

	// Labels by which waves, overrides and variables select the cluster.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && self[k].size() <= 63)",message="the value of a label may have at most 63 characters"
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations that variables may read, each of at most 4,096 characters.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && self[k].size() <= 4096)",message="the value of an annotation may have at most 4,096 characters: put longer values into a ConfigMap, and name it in valuesFrom of a processor with variables"
	Annotations map[string]string `json:"annotations,omitempty"`

	// ClusterReference is how the cluster is reached; the cluster of this object if left out.
	// +optional
	ClusterReference `json:",inline"`

	// ServiceAccountName is spec.target.serviceAccountName of the BundleDeployment of this
	// cluster, instead of that of the template.
	// +optional
	// +kubebuilder:validation:MinLength=1
	ServiceAccountName ServiceAccountName `json:"serviceAccountName,omitempty"`
}

// KubeConfigSecretClusters selects Secrets with kubeconfigs.
type KubeConfigSecretClusters struct {
	// Selector of the Secrets by their labels.
	// +required
	// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && self.matchLabels.size() > 0) || (has(self.matchExpressions) && self.matchExpressions.size() > 0)",message="must select by a label: without one, all Secrets of the namespace are selected"
	Selector metav1.LabelSelector `json:"selector"`

	// Key of the Secrets that holds the kubeconfig; value, or else value.yaml, if left out.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key,omitempty"`
}

// ClusterAPIClusters selects clusters of Cluster API.
type ClusterAPIClusters struct {
	// Selector of the clusters by their labels; {} selects all.
	// +required
	Selector metav1.LabelSelector `json:"selector"`
}

// ClusterProfileClusters selects ClusterProfiles.
type ClusterProfileClusters struct {
	// Selector of the ClusterProfiles by their labels; {} selects all.
	// +required
	Selector metav1.LabelSelector `json:"selector"`

	// AccessProvider is spec.target.clusterProfileRef.accessProvider of the BundleDeployments.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	AccessProvider string `json:"accessProvider,omitempty"`
}

// RolloutTemplate is the BundleDeployment of each cluster.
type RolloutTemplate struct {
	// Metadata are labels and annotations of the BundleDeployments.
	// +optional
	Metadata RolloutTemplateMetadata `json:"metadata,omitzero"`

	// Spec is a BundleDeployment spec without source, sourceRef, catalog, target.kubeConfig, target.clusterProfileRef,
	// suspend and dependsOn, which the rollout sets. serviceAccountName is required. Unknown fields and invalid values
	// are reported by the condition Ready with the reason InvalidSpec, and no cluster is changed then.
	// target.namespace cannot change after the first revision.
	// +required
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec apiextensionsv1.JSON `json:"spec"`
}

// RolloutTemplateMetadata is the metadata of BundleDeployments.
//
// +kubebuilder:validation:XValidation:rule="!has(self.labels) || !self.labels.exists(k, k.startsWith('satchel.dev/'))",message="labels that begin with satchel.dev/ are set by the rollout"
// +kubebuilder:validation:XValidation:rule="!has(self.annotations) || !self.annotations.exists(k, k.startsWith('satchel.dev/rollout-'))",message="annotations that begin with satchel.dev/rollout- are set by the rollout"
type RolloutTemplateMetadata struct {
	// Labels of the BundleDeployments. Variables in a value are replaced: the label
	// sharding.fluxcd.io/key with $(shard) distributes them over the shards that labels of the clusters name.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations of the BundleDeployments.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Annotations map[string]string `json:"annotations,omitempty"`
}

// RolloutVariable is a value that differs between clusters.
//
// +kubebuilder:validation:ExactlyOneOf=label;annotation;value
// +kubebuilder:validation:XValidation:rule="!has(self.value) || !has(self.default)",message="a variable with a value has no default"
type RolloutVariable struct {
	// Name of the variable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[_a-zA-Z][_a-zA-Z0-9]*$') && self != 'cluster'",message="must be a name of letters, digits and '_', and not cluster, which is predefined"
	Name string `json:"name"`

	// Label of the cluster that holds the value.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	Label string `json:"label,omitempty"`

	// Annotation of the cluster that holds the value.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	Annotation string `json:"annotation,omitempty"`

	// Value is the same for all clusters.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Value *string `json:"value,omitempty"`

	// Default is the value of clusters that lack the label or annotation. A cluster
	// without a value and a default is reported as failed, and is not changed.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Default *string `json:"default,omitempty"`
}

// RolloutOverride changes the template for some clusters.
type RolloutOverride struct {
	// Selector of the clusters by their labels; {} selects all.
	// +required
	Selector metav1.LabelSelector `json:"selector"`

	// Patch is a JSON merge patch (RFC 7386) of the spec of the template: null removes a field,
	// and a list, such as processors, is replaced as a whole. It may not contain source, sourceRef, catalog, suspend,
	// dependsOn, serviceAccountName, approval and target.namespace, target.kubeConfig and
	// target.clusterProfileRef. At most 16 KiB.
	// +required
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Patch apiextensionsv1.JSON `json:"patch"`
}

// RolloutDependency names another BundleRollout.
type RolloutDependency struct {
	// Name of a BundleRollout in the same namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`
}

// BundleRollout installs a bundle on many clusters, and moves them from revision to revision in waves. Each cluster has a
// BundleDeployment in the namespace of the BundleRollout.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=satchel,shortName=broll
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.updateRevision.name`
// +kubebuilder:printcolumn:name="Wave",type=string,JSONPath=`.status.wave`
// +kubebuilder:printcolumn:name="Updated",type=string,JSONPath=`.status.progress`
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.clusters.failed`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 40",message="the name must have at most 40 characters"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.dependsOn) || self.spec.dependsOn.all(d, d.name != self.metadata.name)",message="spec.dependsOn must not name this BundleRollout itself"
type BundleRollout struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says which bundle goes to which clusters, and in which order.
	// +required
	Spec BundleRolloutSpec `json:"spec"`

	// Status is written by the rollout controller.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status BundleRolloutStatus `json:"status,omitempty"`
}

// BundleRolloutList is a list of BundleRollouts.
//
// +kubebuilder:object:root=true
type BundleRolloutList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items of the list.
	Items []BundleRollout `json:"items"`
}

// GetConditions returns the conditions of the status.
func (in *BundleRollout) GetConditions() []metav1.Condition { return in.Status.Conditions }

// SetConditions replaces the conditions of the status.
func (in *BundleRollout) SetConditions(conditions []metav1.Condition) {
	in.Status.Conditions = conditions
}
