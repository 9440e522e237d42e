// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BundleDeploymentSpec says which bundle is installed, where, and as which ServiceAccount.
//
// +kubebuilder:validation:ExactlyOneOf=source;sourceRef;catalog
// +kubebuilder:validation:XValidation:rule="!has(self.registryV1) || !has(self.format) || self.format == 'registry+v1'",message="registryV1 needs format registry+v1"
// +kubebuilder:validation:XValidation:rule="!has(self.helm) || !has(self.format) || self.format == 'helm'",message="helm needs format helm"
type BundleDeploymentSpec struct {
	// Source is an inline BundleSource spec: the controller keeps it in a
	// BundleSource of the same name, which is deleted with this object.
	// +optional
	Source *BundleSourceSpec `json:"source,omitempty"`

	// SourceRef names a BundleSource, or a source of Flux, in this namespace.
	// +optional
	SourceRef *SourceReference `json:"sourceRef,omitempty"`

	// Catalog names a package of BundleCatalogs, with a range of versions and channels. The controller keeps the
	// bundle that this resolves to, by its digest, in a BundleSource of the same name. A new version is a new plan.
	// +optional
	Catalog *CatalogPackage `json:"catalog,omitempty"`

	// Path is the folder of the artifact that contains the bundle. If it is empty, that is the
	// root of the artifact, or its only folder, if the artifact contains nothing else and the
	// folder contains a chart, a kustomization or an operator's bundle.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.split('/').exists(p, p == '..')",message="must be a relative path without .."
	Path string `json:"path,omitempty"`

	// Format of the bundle: plain+v0 (a folder of manifests), registry+v1 (a bundle of the Operator Lifecycle
	// Manager), helm (a chart) or kustomize (a kustomization; its bases have to be in the artifact, too). It is
	// detected if left out; if the content is ambiguous, the condition Converted says what was found.
	// +optional
	Format Format `json:"format,omitempty"`

	// ServiceAccountName is the ServiceAccount of this namespace that is impersonated
	// for every read and write of the bundle's objects: its RBAC permissions apply.
	// +required
	// +kubebuilder:validation:MinLength=1
	ServiceAccountName ServiceAccountName `json:"serviceAccountName"`

	// Target is where the bundle is installed: by default in this namespace of this cluster.
	// +optional
	// +kubebuilder:default={}
	Target DeploymentTarget `json:"target,omitzero"`

	// RegistryV1 holds the options of the format registry+v1.
	// +optional
	RegistryV1 *RegistryV1Options `json:"registryV1,omitempty"`

	// Helm holds the options of the format helm.
	// +optional
	Helm *HelmOptions `json:"helm,omitempty"`

	// Processors change the objects of a bundle of any format. They run in the order of the list, each on the result of the one before.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.map(p, has(p.patch) ? size(p.patch.patch) : 0).sum() <= 262144",message="patches may have at most 262144 bytes in all: change the bundle instead"
	// +kubebuilder:validation:XValidation:rule="self.map(p, has(p.variables) && has(p.variables.valuesFrom) ? size(p.variables.valuesFrom) : 0).sum() <= 50",message="variables may have at most 50 references in valuesFrom in all: put the values into fewer ConfigMaps and Secrets"
	Processors []Processor `json:"processors,omitempty"`

	// Approval says which plans need an approval. By default no plan does.
	// +optional
	Approval *ApprovalOptions `json:"approval,omitempty"`

	// DependsOn names BundleDeployments of this namespace that have to be ready before a new
	// revision, or a change of this spec, is applied. Drift of the applied revision is still
	// corrected. Deletion does not wait for dependencies.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=50
	DependsOn []Dependency `json:"dependsOn,omitempty"`

	// Apply says how objects are written: existing ones, immutable fields, kinds that the cluster may lack, and CRDs.
	// +optional
	// +kubebuilder:default={}
	Apply ApplyOptions `json:"apply,omitzero"`

	// Prune says what happens to objects that leave the bundle.
	// +optional
	// +kubebuilder:default={}
	Prune PruneOptions `json:"prune,omitzero"`

	// Drift says what is done about objects that another client changed or deleted, and which fields are left to other clients.
	// By default it is corrected, in all fields of the bundle.
	// +optional
	Drift *DriftOptions `json:"drift,omitempty"`

	// Health says which objects have to be healthy, by which rules, and within what time.
	// +optional
	// +kubebuilder:default={}
	Health HealthOptions `json:"health,omitzero"`

	// Remediation says what happens when a revision fails.
	// +optional
	Remediation *RemediationOptions `json:"remediation,omitempty"`

	// DeletionPolicy says what happens to the objects when this BundleDeployment is deleted. Delete, the default,
	// deletes them in order. Orphan keeps all objects, with the annotation satchel.dev/orphaned, and the next
	// BundleDeployment that contains one of them adopts it. The annotation satchel.dev/deletion-policy: Orphan keeps a
	// single object, also when it leaves the bundle.
	// +optional
	// +kubebuilder:default=Delete
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// Interval at which all installed objects are compared with the bundle, in addition to the watches by which drift
	// is corrected at once. Up to a tenth is subtracted, so that deployments spread out.
	// +optional
	// +kubebuilder:default="10m"
	Interval Duration `json:"interval,omitzero"`

	// RetryInterval is the longest pause before a failed attempt is repeated. The first
	// pause is one second, and each further one is twice as long as the one before.
	// +optional
	// +kubebuilder:default="1m"
	RetryInterval Duration `json:"retryInterval,omitzero"`

	// Suspend stops installing, upgrading and correcting drift, and the renewal of self-signed certificates; a warning
	// is reported before they expire. Deletion still works.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// HistoryLimit is how many revisions status.history lists.
	// +optional
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=50
	HistoryLimit *int32 `json:"historyLimit,omitempty"`
}

// DeploymentTarget is where a bundle is installed.
//
// +kubebuilder:validation:XValidation:rule=`(has(oldSelf.__namespace__) ? oldSelf.__namespace__ : "") == (has(self.__namespace__) ? self.__namespace__ : "")`,message="namespace cannot change; create another BundleDeployment instead"
// +kubebuilder:validation:XValidation:rule="!has(self.serviceAccountName) || has(self.kubeConfig) || has(self.clusterProfileRef)",message="serviceAccountName needs kubeConfig or clusterProfileRef: it is a ServiceAccount of the remote cluster"
// +kubebuilder:validation:AtMostOneOf=kubeConfig;clusterProfileRef
type DeploymentTarget struct {
	// Namespace receives the objects that name no namespace themselves. It defaults to the
	// namespace of this object and cannot change.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a namespace: lower-case letters, digits and '-'"
	Namespace string `json:"namespace,omitempty"`

	// CreateNamespace creates the namespace if it does not exist, with the permissions of the
	// ServiceAccount. Such a namespace is never deleted.
	// +optional
	CreateNamespace bool `json:"createNamespace,omitempty"`

	// ClusterReference names another cluster to install on. The objects are installed there;
	// the source and the Secret with the kubeconfig are on this cluster.
	// +optional
	ClusterReference `json:",inline"`

	// ServiceAccountName is a ServiceAccount of the remote cluster, in the namespace there with the name of this one.
	// It is impersonated for every read and write of the bundle's objects, and the user of the kubeconfig needs the
	// permission to impersonate it. Satchel does not check that it exists. By default the user of the kubeconfig
	// itself is used.
	// +optional
	// +kubebuilder:validation:MinLength=1
	ServiceAccountName ServiceAccountName `json:"serviceAccountName,omitempty"`
}

// ApplyOptions say how objects are written.
type ApplyOptions struct {
	// CollisionProtection says what happens to objects of the bundle that exist already and that this deployment did
	// not create. Prevent, the default, refuses the plan; only an object with the annotation satchel.dev/orphaned is
	// adopted. IfUnmanaged adopts unmanaged objects: without labels or annotations of Flux, Argo CD, Helm, the
	// Operator Lifecycle Manager or a BundleDeployment, and without a controlling owner reference. None adopts any
	// object but that of another BundleDeployment. The labels and annotations of the former owner are removed from an
	// adopted object, and so are fields that kubectl or those tools set and the bundle does not contain.
	// +optional
	// +kubebuilder:default=Prevent
	CollisionProtection CollisionProtection `json:"collisionProtection,omitempty"`

	// Recreate says what happens when the API server refuses a change because a field is immutable, such as the
	// template of a Job. None, the default, reports it and keeps the applied revision; OnImmutableChange deletes the
	// object and recreates it once. PersistentVolumeClaims, PersistentVolumes, Namespaces, CustomResourceDefinitions
	// and objects with the annotation satchel.dev/deletion-policy are never deleted for that, nor are StatefulSets if
	// their PersistentVolumeClaims would be deleted too.
	// +optional
	// +kubebuilder:default=None
	Recreate Recreate `json:"recreate,omitempty"`

	// OptionalKinds are kinds that the cluster may lack: their objects are left out while the
	// cluster does not serve the kind, and applied soon after it does.
	// +optional
	// +listType=map
	// +listMapKey=group
	// +listMapKey=kind
	// +kubebuilder:validation:MaxItems=50
	OptionalKinds []OptionalKind `json:"optionalKinds,omitempty"`

	// PodSecurityLabels permits the Namespaces of the bundle to carry labels of pod-security.kubernetes.io, which
	// decide what Pods may do there. Without it the plan of such a bundle is refused while spec.approval.mode is
	// Automatic; in the other modes the labels are part of what is approved.
	// +optional
	PodSecurityLabels bool `json:"podSecurityLabels,omitempty"`

	// CRDs says how CustomResourceDefinitions of the bundle are treated.
	// +optional
	CRDs *CRDOptions `json:"crds,omitempty"`
}

// HealthOptions say which objects have to be healthy, by which rules, and within what time.
type HealthOptions struct {
	// Timeout is how long a revision may take to become healthy after it was applied, before it is reported as failed. It is
	// still watched then, and Ready becomes True when it recovers. The same timeout applies to CustomResourceDefinitions that are
	// not served yet, to hooks, to each phase, and to deletions before the apply.
	// +optional
	// +kubebuilder:default="5m"
	Timeout Duration `json:"timeout,omitzero"`

	// Checks are the objects that have to be healthy, instead of all objects
	// of the bundle; they need not be in the bundle.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Checks []HealthCheck `json:"checks,omitempty"`

	// Expressions compute the health of some kinds with CEL, instead of from the usual fields of their status.
	// +optional
	// +listType=map
	// +listMapKey=apiVersion
	// +listMapKey=kind
	// +kubebuilder:validation:MaxItems=50
	Expressions []HealthExpression `json:"expressions,omitempty"`
}

// Format of a bundle.
// +kubebuilder:validation:Enum=plain+v0;registry+v1;helm;kustomize
type Format string

// Formats of bundles.
const (
	// FormatPlainV0 is a folder of Kubernetes manifests.
	FormatPlainV0 Format = "plain+v0"
	// FormatRegistryV1 is a bundle of the Operator Lifecycle Manager.
	FormatRegistryV1 Format = "registry+v1"
	// FormatHelm is a chart of Helm.
	FormatHelm Format = "helm"
	// FormatKustomize is a kustomization.
	FormatKustomize Format = "kustomize"
)

// SourceReference names the source of a deployment, in the same namespace: a BundleSource, or a source of Flux.
//
// +kubebuilder:validation:XValidation:rule="(self.kind == 'BundleSource') == (self.apiVersion == 'satchel.dev/v1alpha1')",message="a BundleSource has apiVersion satchel.dev/v1alpha1, and GitRepository, OCIRepository, Bucket and ExternalArtifact have source.toolkit.fluxcd.io/v1"
type SourceReference struct {
	// APIVersion of the source: satchel.dev/v1alpha1 for a BundleSource, and
	// source.toolkit.fluxcd.io/v1 for sources of Flux.
	// +optional
	// +kubebuilder:validation:Enum=satchel.dev/v1alpha1;source.toolkit.fluxcd.io/v1
	// +kubebuilder:default="satchel.dev/v1alpha1"
	APIVersion string `json:"apiVersion,omitempty"`

	// Kind of the source. Of sources of Flux only the digest of the artifact is checked, because Flux verifies them.
	// +required
	// +kubebuilder:validation:Enum=BundleSource;GitRepository;OCIRepository;Bucket;ExternalArtifact
	Kind string `json:"kind"`

	// Name of the source.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
}

// BundleDeploymentStatus is what the deployment controller last saw and did.
type BundleDeploymentStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about; -1 before the first reconcile.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions follow kstatus: Ready, Reconciling, Stalled, and beside them one a step: SourceReady, Converted,
	// Planned, Applied, Healthy. ApprovalPending is present while a plan waits for an approval, or a deletion for a
	// higher prune limit; RemovalBlocked while the objects of a deleted BundleDeployment cannot be removed. With
	// spec.catalog there are also Resolved, and Deprecated while the catalog says that.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Attempted is the revision that was tried last.
	// +optional
	Attempted AttemptedRevision `json:"attempted,omitzero"`

	// Applied is the last revision that was applied completely. Its drift is corrected, also while a newer one fails.
	// +optional
	Applied AppliedRevision `json:"applied,omitzero"`

	// Healthy is the last revision of which all objects were healthy.
	// +optional
	Healthy HealthyRevision `json:"healthy,omitzero"`

	// Rejected is the revision that failed and was rolled back to the last healthy one. It is not tried again until
	// the source has another revision, the spec changes, or a reconcile is requested.
	// +optional
	Rejected RejectedRevision `json:"rejected,omitzero"`

	// History lists what became of the last revisions, the newest first.
	// +optional
	// +listType=atomic
	History []RevisionRecord `json:"history,omitempty"`

	// Plan sums up what the last attempt was going to do.
	// +optional
	Plan *PlanStatus `json:"plan,omitempty"`

	// Hooks tells of the hooks that ran, or run, with what is installed; empty for bundles that never had any.
	// +optional
	Hooks *HooksStatus `json:"hooks,omitempty"`

	// Inventory lists the objects that this deployment has on the cluster.
	// +optional
	Inventory *Inventory `json:"inventory,omitempty"`

	// Format in which the bundle was read.
	// +optional
	Format Format `json:"format,omitempty"`

	// Catalog says what spec.catalog resolved to, and what of it is installed.
	// +optional
	Catalog *CatalogPackageStatus `json:"catalog,omitempty"`

	// CertificateExpirationTime is when the first of the self-signed certificates that serve the bundle's webhooks
	// ends. They are renewed long before, unless the deployment is suspended.
	// +optional
	CertificateExpirationTime *metav1.Time `json:"certificateExpirationTime,omitempty"`

	// Objects counts the objects of the last applied revision.
	// +optional
	Objects *ObjectCounts `json:"objects,omitempty"`

	// Drift says what drift there is, and how it is looked for.
	// +optional
	Drift *DriftStatus `json:"drift,omitempty"`

	// Warnings of the conversion, the plan and the API server, and about links that the artifact lacks, at most 20. Those of the plan
	// name, among others, fields of other clients that give way to the bundle, and fields that left it: kept for an autoscaler, or reset.
	// +optional
	// +listType=atomic
	Warnings []string `json:"warnings,omitempty"`

	// Internal is state of the controller, as text that is no API and changes without notice:
	// the executed plan and its proof, where the last healthy revision was loaded from, and a
	// key of the hashes in this status. Without it plans are approved again, and all objects are
	// compared.
	// +optional
	Internal InternalStatus `json:"internal,omitzero"`

	// LastHandledReconcileAt is the value of the annotation reconcile.fluxcd.io/requestedAt that was handled last.
	// +optional
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`
}

// AttemptedRevision is a revision that was tried.
type AttemptedRevision struct {
	// Revision of the artifact.
	// +optional
	Revision string `json:"revision,omitempty"`
}

// AppliedRevision is a revision that was applied completely.
type AppliedRevision struct {
	// Revision of the artifact.
	// +optional
	Revision string `json:"revision,omitempty"`

	// OriginRevision names the revision as its upstream does, such as main@sha1:<commit> or v1.2.3@sha256:<manifest
	// digest>: the originRevision of the BundleSource, or org.opencontainers.image.revision of the artifact of a Flux
	// source, and without that the revision. When only this changes, nothing is applied.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	OriginRevision string `json:"originRevision,omitempty"`

	// Version of the bundle: of the package of a registry+v1 bundle, or of the chart. Other formats have none; there
	// it is the tag of the origin revision, if that is a semantic version.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Version string `json:"version,omitempty"`

	// CompletionTime is when all objects of the revision were applied, last with one that had
	// to be created or updated; repairing drift does not move it. spec.health.timeout counts from then.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
}

// HealthyRevision is a revision of which all objects were healthy.
type HealthyRevision struct {
	// Revision of the artifact.
	// +optional
	Revision string `json:"revision,omitempty"`

	// Package is the OLM package that the revision contains, where it is in the format
	// registry+v1. Bundles of this namespace that require a package find it here.
	// +optional
	Package *PackageStatus `json:"package,omitempty"`

	// Requires are the packages and kinds that the bundle requires, where it is in the format registry+v1, at most 50.
	// A plan of another BundleDeployment of this namespace that takes one of them away is refused.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Requires []BundleRequirement `json:"requires,omitempty"`
}

// RejectedRevision is a revision that is not tried again.
type RejectedRevision struct {
	// Revision of the artifact.
	// +optional
	Revision string `json:"revision,omitempty"`
}

// PlanStatus sums up a plan.
type PlanStatus struct {
	// Revision of the artifact that the plan is for.
	// +optional
	Revision string `json:"revision,omitempty"`

	// Digest of the plan, which is what a BundleApproval approves: of the content, of what
	// of this spec decides what is done with it, of what is to be deleted, and of the
	// plan that was carried out before. What drifted does not count.
	// +optional
	Digest string `json:"digest,omitempty"`

	// Content is the digest of the converted objects without the values of Secrets. It is the same wherever the bundle
	// is converted with the same options, without a cluster. It is left out where values of a Secret went into the
	// conversion, because readers of the status could use it to guess them.
	// +optional
	Content string `json:"content,omitempty"`

	// Inputs is the digest of the Secrets and ConfigMaps of this namespace that went into
	// the conversion, made with the installation's key. Another one is another plan.
	// +optional
	Inputs string `json:"inputs,omitempty"`

	// Capabilities are the properties of the cluster that a chart reads.
	// +optional
	Capabilities *Capabilities `json:"capabilities,omitempty"`

	// Create is the number of objects to create.
	Create int32 `json:"create"`

	// Adopt is the number of existing objects to adopt.
	// +optional
	Adopt int32 `json:"adopt,omitempty"`

	// Recreate is the number of objects to delete and create again.
	// +optional
	Recreate int32 `json:"recreate,omitempty"`

	// Update is the number of objects to change.
	Update int32 `json:"update"`

	// Delete is the number of objects to delete, without those beyond spec.prune.limit.
	Delete int32 `json:"delete"`

	// Summary in words.
	// +optional
	Summary string `json:"summary,omitempty"`
}

// PackageStatus is an OLM package.
type PackageStatus struct {
	// Name of the package.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Version of the package, as the bundle gives it; empty when it gives none.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Version string `json:"version,omitempty"`
}

// BundleRequirement is a package or a kind that a bundle requires.
type BundleRequirement struct {
	// Package is the name of an OLM package; empty for a kind.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Package string `json:"package,omitempty"`

	// Range that the version of the package has to be in; empty for any.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Range string `json:"range,omitempty"`

	// Group of the kind; empty for the core group.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`

	// Version of the kind; empty for any.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Version string `json:"version,omitempty"`

	// Kind that the cluster has to serve; empty for a package.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`

	// AnyOf is the same number for alternatives, of which one suffices; 0 if there is none.
	// +optional
	AnyOf int32 `json:"anyOf,omitempty"`
}

// ObjectCounts counts the objects of a deployment.
type ObjectCounts struct {
	// Applied is the number of objects that are as the bundle has them.
	Applied int32 `json:"applied"`

	// Skipped is the number of objects that are not applied, because their kind is among spec.apply.optionalKinds and
	// the cluster does not serve it. They are applied as soon as it does.
	// +optional
	Skipped int32 `json:"skipped,omitempty"`

	// Unhealthy is the number of applied objects that are not healthy.
	Unhealthy int32 `json:"unhealthy"`
}

// BundleDeployment installs a bundle and keeps it as its manifests say.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=satchel,shortName=bdep
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.applied.version`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Origin",type=string,JSONPath=`.status.applied.originRevision`,priority=1
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.applied.revision`,priority=1
// +kubebuilder:printcolumn:name="Objects",type=integer,JSONPath=`.status.objects.applied`,priority=1
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="the name must have at most 63 characters"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.dependsOn) || self.spec.dependsOn.all(d, d.name != self.metadata.name)",message="spec.dependsOn must not name this BundleDeployment itself"
type BundleDeployment struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says which bundle is installed, where, and as which ServiceAccount.
	// +required
	Spec BundleDeploymentSpec `json:"spec"`

	// Status is written by the deployment controller.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status BundleDeploymentStatus `json:"status,omitempty"`
}

// BundleDeploymentList is a list of BundleDeployments.
//
// +kubebuilder:object:root=true
type BundleDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items of the list.
	Items []BundleDeployment `json:"items"`
}

// GetConditions returns the conditions of the status.
func (in *BundleDeployment) GetConditions() []metav1.Condition { return in.Status.Conditions }

// SetConditions replaces the conditions of the status.
func (in *BundleDeployment) SetConditions(conditions []metav1.Condition) {
	in.Status.Conditions = conditions
}
