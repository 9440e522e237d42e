// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "github.com/fluxcd/pkg/apis/meta"

// ReadyCondition of both kinds is True when the newest revision is applied and healthy. Beside it both have the other
// two conditions of kstatus, which github.com/fluxcd/pkg/apis/meta names: Reconciling is True while work is in
// progress or retried, Stalled when a retry cannot succeed until a user changes the object or what it refers to.
const ReadyCondition = meta.ReadyCondition

// Conditions of BundleSource beside the three of kstatus.
const (
	// ArtifactInStorageCondition is True while the artifact of the status is
	// stored and served with the digest that is advertised.
	ArtifactInStorageCondition = "ArtifactInStorage"
	// FetchFailedCondition is True while a source cannot be resolved or fetched; the last good artifact stays published.
	FetchFailedCondition = "FetchFailed"
	// SourceVerifiedCondition tells whether the published content, or the content that should be published, has a signature
	// that the sources trust. It is present while one of the sources demands a signature.
	SourceVerifiedCondition = "SourceVerified"
	// StorageOperationFailedCondition is True while the artifact cannot be written
	// or read, for instance because the volume is full.
	StorageOperationFailedCondition = "StorageOperationFailed"
)

// Reasons of BundleSource's conditions.
const (
	// ReasonSucceeded says that the condition's subject is in order.
	ReasonSucceeded = meta.SucceededReason
	// ReasonProgressing says that work is under way for the first time or for a new generation.
	ReasonProgressing = meta.ProgressingReason
	// ReasonProgressingWithRetry says that the last attempt failed and another follows.
	ReasonProgressingWithRetry = meta.ProgressingWithRetryReason
	// ReasonSuspended says that spec.suspend keeps the controller from acting.
	ReasonSuspended = meta.SuspendedReason
	// ReasonNotFound says that the image, repository, reference or URL does not exist, or
	// that a Secret, ServiceAccount or ConfigMap which the source names does not.
	ReasonNotFound = "NotFound"
	// ReasonUnauthorized says that the upstream demands credentials, or refuses the ones it got.
	ReasonUnauthorized = "Unauthorized"
	// ReasonUnreachable says that the upstream could not be reached: its name does
	// not resolve, nothing listens, the connection broke, or TLS failed.
	ReasonUnreachable = "Unreachable"
	// ReasonTimeout says that spec.timeout ended before the work did.
	ReasonTimeout = "Timeout"
	// ReasonRateLimited says that the upstream asked for fewer requests.
	ReasonRateLimited = "RateLimited"
	// ReasonInvalidSpec says that a field of the spec is invalid: a pattern or selector is invalid or too costly, or
	// the field was stored under another version of the CRD and cannot be read.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonRefused says that the controller's address lists, or the rules for
	// URLs and references, forbid what the source names.
	ReasonRefused = "Refused"
	// ReasonLimitExceeded says that the content is larger than the controller allows, or that
	// its conversion takes more CPU time, memory or output than one may.
	ReasonLimitExceeded = "LimitExceeded"
	// ReasonInvalidContent says that the content is broken or hostile: not an
	// archive, an entry that escapes, a name that is not portable.
	ReasonInvalidContent = "InvalidContent"
	// ReasonDigestMismatch says that the content does not have the digest it should have.
	ReasonDigestMismatch = "DigestMismatch"
	// ReasonVerificationFailed says that there is no signature which the source's trust accepts: it is missing, of other
	// content, by an untrusted signer, or no longer valid.
	ReasonVerificationFailed = "VerificationFailed"
	// ReasonTrustChanged says that the trusted keys or policies changed after the published content was accepted, and that
	// they have not accepted it yet. Installed deployments keep it; no new deployment installs it.
	ReasonTrustChanged = "TrustChanged"
	// ReasonSignatureRequired says that the namespace has the label satchel.dev/signatures=required, and that some source
	// demands no signature. Installed deployments keep the content; no new deployment installs it.
	ReasonSignatureRequired = "SignatureRequired"
	// ReasonImageDenied says that a BundleImagePolicy denies an image of the source. What was published is withdrawn.
	// Installed deployments keep it; no new deployment installs it.
	ReasonImageDenied = "ImageDenied"
	// ReasonUploadPending says that the content which the source names was not uploaded yet, or is no longer in storage.
	ReasonUploadPending = "UploadPending"
	// ReasonExternalArtifactFailed says that the ExternalArtifact of the source's name
	// cannot be kept: Flux is not installed, or the name is taken.
	ReasonExternalArtifactFailed = "ExternalArtifactFailed"
	// ReasonStorageFailed says that the artifact could not be written or read.
	ReasonStorageFailed = "StorageFailed"
	// ReasonQuotaExceeded says that the artifact exceeds the storage quota of its
	// namespace. It is retried, because deleting another source of the namespace frees space.
	ReasonQuotaExceeded = "QuotaExceeded"
	// ReasonArtifactLost says that the stored artifact vanished or changed on disk;
	// it is no longer advertised and is being fetched again.
	ReasonArtifactLost = "ArtifactLost"
	// ReasonFailed says that the controller failed for a reason that no other covers, such
	// as a write that the API server refuses. Both kinds have it.
	ReasonFailed = "Failed"
	// ReasonWrittenByAnotherVersion says that a resource needs data that another version of Satchel stored, and that this
	// version can neither read nor recreate. The message has the cause. BundleDeployments and BundleRollouts have it.
	ReasonWrittenByAnotherVersion = "WrittenByAnotherVersion"
)

// Conditions of BundleDeployment beside the three of kstatus, in the order of the pipeline.
const (
	// SourceReadyCondition is False while there is no artifact to install.
	SourceReadyCondition = "SourceReady"
	// ConvertedCondition is False when the bundle cannot be turned into objects.
	ConvertedCondition = "Converted"
	// PlannedCondition is False when the plan has violations. Its message lists
	// them all, and nothing of that revision has been touched.
	PlannedCondition = "Planned"
	// AppliedCondition is False when an object could not be applied or pruned.
	AppliedCondition = "Applied"
	// HealthyCondition is True when all objects are healthy as kstatus defines it.
	HealthyCondition = "Healthy"
	// ApprovalPendingCondition is True while a plan waits for an approval, or a deletion for a higher prune limit. It is
	// absent otherwise, and does not change whether the applied revision is Ready.
	ApprovalPendingCondition = "ApprovalPending"
	// RemovalBlockedCondition is True while a deleted BundleDeployment cannot remove its
	// objects, since the time of its last transition. Its message says what is missing, when
	// the removal is abandoned, and what can be done before. It is absent otherwise.
	RemovalBlockedCondition = "RemovalBlocked"
)

// Conditions of BundleDeployment with spec.catalog.
const (
	// ResolvedCondition is False while the package cannot be resolved. If it was resolved for the
	// current spec.catalog before, what it resolved to stays, and Ready does not change.
	ResolvedCondition = "Resolved"
	// DeprecatedCondition is True while the catalog calls the package, a channel of the spec or
	// the installed bundle deprecated. Its message is the catalog's. It is absent otherwise.
	DeprecatedCondition = "Deprecated"
)

// Reasons of a BundleDeployment with spec.catalog.
const (
	// ReasonResolutionFailed says that no bundle fits: the message tells how many bundles each
	// filter left, the nearest bundle, and what would choose it.
	ReasonResolutionFailed = "ResolutionFailed"
	// ReasonInvalidRange says that the version in spec.catalog is no range.
	ReasonInvalidRange = "InvalidRange"
	// ReasonCatalogNotFound says that there is no BundleCatalog of that name, or none at all.
	ReasonCatalogNotFound = "CatalogNotFound"
	// ReasonCatalogNotReady says that a BundleCatalog serves nothing, or that its server does not
	// answer and the package was never read.
	ReasonCatalogNotReady = "CatalogNotReady"
	// ReasonLockMismatch says that no catalog lists the bundle of spec.catalog.lock with its image.
	ReasonLockMismatch = "LockMismatch"
	// ReasonInstalledUnknown says that objects are installed, and neither the status nor the
	// BundleSource nor spec.catalog.installed tells which bundle they are.
	ReasonInstalledUnknown = "InstalledUnknown"
	// ReasonDeprecated says that the catalog calls what is installed deprecated.
	ReasonDeprecated = "Deprecated"
)

// Annotations of the BundleSource that a BundleDeployment with spec.catalog keeps: a copy of what was resolved and
// installed, which survives the loss of the status.
const (
	// CatalogPackageAnnotation is the name of the package.
	CatalogPackageAnnotation = "satchel.dev/package"
	// CatalogBundleAnnotation is the bundle that the package resolved to.
	CatalogBundleAnnotation = "satchel.dev/bundle"
	// CatalogVersionAnnotation is its version.
	CatalogVersionAnnotation = "satchel.dev/version"
	// CatalogAnnotation is the BundleCatalog, as namespace/name.
	CatalogAnnotation = "satchel.dev/catalog"
	// InstalledBundleAnnotation is the bundle that upgrades start from.
	InstalledBundleAnnotation = "satchel.dev/installed-bundle"
	// InstalledVersionAnnotation is its version.
	InstalledVersionAnnotation = "satchel.dev/installed-version"
	// InstalledCatalogAnnotation is the BundleCatalog that offered it, as namespace/name.
	InstalledCatalogAnnotation = "satchel.dev/installed-catalog"
	// InstalledImageAnnotation is its image with the digest.
	InstalledImageAnnotation = "satchel.dev/installed-image"
)

// Reasons of BundleDeployment's conditions, in addition to those above.
const (
	// ReasonSourceNotFound says that the referenced BundleSource does not exist.
	ReasonSourceNotFound = "SourceNotFound"
	// ReasonSourceNotReady says that the source has published nothing yet.
	ReasonSourceNotReady = "SourceNotReady"
	// ReasonSourceNotTrusted says that the source demands a signature, and that its present trust has not accepted what
	// it publishes: only a deployment that runs it already keeps it.
	ReasonSourceNotTrusted = "SourceNotTrusted"
	// ReasonSourceNotOwned says that a BundleSource of the deployment's name exists
	// and belongs to something else, so the inline source cannot be kept in it.
	ReasonSourceNotOwned = "SourceNotOwned"
	// ReasonArtifactFailed says that the published artifact could not be fetched
	// from the source controller, or is not what it claims to be.
	ReasonArtifactFailed = "ArtifactFailed"
	// ReasonConversionFailed says that the bundle is not valid in its format.
	ReasonConversionFailed = "ConversionFailed"
	// ReasonConverting says that the conversion of the bundle takes long, or waits for a worker process.
	ReasonConverting = "Converting"
	// ReasonCPUBudgetExceeded says that the conversions of the namespace have used the CPU time
	// that they may use in ten minutes. It is retried when CPU time is available again.
	ReasonCPUBudgetExceeded = "CPUBudgetExceeded"
	// ReasonWorkerUnavailable says that no process could be started to convert the bundle.
	ReasonWorkerUnavailable = "WorkerUnavailable"
	// ReasonWaitingForMemory says that other large bundles use the memory that the controller has for objects.
	ReasonWaitingForMemory = "WaitingForMemory"
	// ReasonInputNotFound says that a Secret or ConfigMap with values could not be read: it or
	// its key does not exist, or the ServiceAccount lacks the permission to get it.
	ReasonInputNotFound = "InputNotFound"
	// ReasonInputInvalid says that a Secret or ConfigMap holds no valid values, or values that contradict each other.
	ReasonInputInvalid = "InputInvalid"
	// ReasonAccountNotFound says that the ServiceAccount does not exist.
	ReasonAccountNotFound = "AccountNotFound"
	// ReasonKubeConfigNotFound says that what leads to the remote cluster could not be read: the Secret or its key, or the
	// ClusterProfile or the Secret that it names, does not exist, or the ServiceAccount lacks the permission to get it.
	ReasonKubeConfigNotFound = "KubeConfigNotFound"
	// ReasonKubeConfigRefused says that the kubeconfig, or the ClusterProfile, contains an entry
	// that is not accepted, or a server address that is forbidden. The message names the entry.
	ReasonKubeConfigRefused = "KubeConfigRefused"
	// ReasonClusterUnreachable says that the API server of the remote cluster does not
	// answer, or not as an API server does. It is tried again.
	ReasonClusterUnreachable = "ClusterUnreachable"
	// ReasonClusterTooSlow says that the API server of the remote cluster answers so slowly that it
	// confirmed nothing in three turns of a reconcile. It is tried again.
	ReasonClusterTooSlow = "ClusterTooSlow"
	// ReasonClusterDenied says that the remote cluster rejects the user of the kubeconfig,
	// or does not let it read the kube-system namespace that identifies the cluster.
	ReasonClusterDenied = "ClusterDenied"
	// ReasonDependencyNotReady says that a BundleDeployment of spec.dependsOn is missing,
	// not ready, or not yet as its readyExpr demands.
	ReasonDependencyNotReady = "DependencyNotReady"
	// ReasonDependencyCycle says that the deployment depends on itself by way of others.
	ReasonDependencyCycle = "DependencyCycle"
	// ReasonInvalidExpression says that a CEL expression of the spec is invalid, or costs too much.
	ReasonInvalidExpression = "InvalidExpression"
	// ReasonTargetChanged says that the objects of the inventory live in another cluster than the one that is reached now.
	ReasonTargetChanged = "TargetChanged"
	// ReasonPlanRefused says that the plan has violations: missing permissions,
	// objects of other owners, missing kinds or namespaces.
	ReasonPlanRefused = "PlanRefused"
	// ReasonDryRunFailed says that the API server refused an object in a dry run.
	ReasonDryRunFailed = "DryRunFailed"
	// ReasonStillRefused says that the API server refuses an object also after the objects were deleted that
	// spec.prune.timing BeforeApply deletes first. They are applied again.
	ReasonStillRefused = "StillRefused"
	// ReasonApplyFailed says that an object could not be applied.
	ReasonApplyFailed = "ApplyFailed"
	// ReasonHookFailed says that a hook of the bundle failed, or did not end in time. The message names it, and why.
	ReasonHookFailed = "HookFailed"
	// ReasonPruneFailed says that an object that left the bundle could not be deleted.
	ReasonPruneFailed = "PruneFailed"
	// ReasonPruneHeld says that an upgrade would delete more objects than spec.prune.limit
	// allows, or objects of files that became links, which are not followed; they are kept.
	ReasonPruneHeld = "PruneHeld"
	// ReasonApprovalPending says that nothing is installed yet, because the first plan waits for an approval.
	ReasonApprovalPending = "ApprovalPending"
	// ReasonApprovalRequired says that a plan waits until a BundleApproval of its digest exists.
	ReasonApprovalRequired = "ApprovalRequired"
	// ReasonApprovalDenied says that a BundleApproval denies the plan. It is not carried out until it is another plan.
	ReasonApprovalDenied = "ApprovalDenied"
	// ReasonHealthProgressing says that objects are not healthy yet and the timeout has not ended.
	ReasonHealthProgressing = "HealthProgressing"
	// ReasonHealthFailed says that objects are not healthy when they should be.
	ReasonHealthFailed = "HealthFailed"
	// ReasonRollingBack says that a revision was rejected, and that a rollback to the last healthy one is in progress.
	ReasonRollingBack = "RollingBack"
	// ReasonRevisionRejected says that the source's revision failed and is no longer tried;
	// the last healthy one is the applied revision.
	ReasonRevisionRejected = "RevisionRejected"
	// ReasonRollbackFailed says that the rollback to the last healthy revision failed.
	ReasonRollbackFailed = "RollbackFailed"
	// ReasonRemoving says that the deployment and its objects are being deleted.
	ReasonRemoving = "Removing"
	// ReasonRemovalFailed says that an object could not be removed.
	ReasonRemovalFailed = "RemovalFailed"
)
