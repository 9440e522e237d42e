// SPDX-License-Identifier: Apache-2.0

package view

import (
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// Hints say what to do about a reason. Every reason of the API that stands for a failure has one.
var Hints = map[string]string{
	// Of sources.
	v1alpha1.ReasonNotFound:               "Correct the image, repository, reference or URL in the source, which does not exist or is not visible without credentials; or create the Secret, ServiceAccount or ConfigMap that it names.",
	v1alpha1.ReasonUnauthorized:           "Name a Secret with credentials that may read it in the source's secretRef, or correct the one that is named.",
	v1alpha1.ReasonUnreachable:            "Check the host's name and that the source controller's network reaches it; it is retried.",
	v1alpha1.ReasonTimeout:                "Raise spec.timeout of the source, or find out why the server is slow; it is retried.",
	v1alpha1.ReasonRateLimited:            "Wait; or poll less often with a longer spec.interval, or pin the source by digest or commit.",
	v1alpha1.ReasonRefused:                "Name a host, address or scheme that the source controller allows, or have its administrator allow it (--egress-allow, --insecure-hosts).",
	v1alpha1.ReasonInvalidSpec:            "Correct the field that the message names; it was stored before its rules were enforced.",
	v1alpha1.ReasonLimitExceeded:          "Make the bundle smaller or simpler, or have the administrator of the controllers raise the limit that the message names.",
	v1alpha1.ReasonInvalidContent:         "Publish the bundle again: the content that the server delivers is broken or unsafe.",
	v1alpha1.ReasonDigestMismatch:         "Find out who changed the content; then correct the digest in the source, or publish the right content.",
	v1alpha1.ReasonVerificationFailed:     "Find out who signed the content; then sign it with a key that the source trusts, or correct the trusted keys. The applied revision keeps running.",
	v1alpha1.ReasonTrustChanged:           "Restore the key in the Secret of verify, or sign the content with a key that is trusted now. The applied revision keeps running.",
	v1alpha1.ReasonSignatureRequired:      "Set verify on each source that the message names, or install from another namespace: this one has the label satchel.dev/signatures=required. The applied revision keeps running.",
	v1alpha1.ReasonImageDenied:            "Use an image that the BundleImagePolicies permit, or have the rule changed that the message names. The applied revision keeps running.",
	v1alpha1.ReasonUploadPending:          "Upload the content with the run command and its folder; or correct spec.sources.upload.digest, the expected digest.",
	v1alpha1.ReasonExternalArtifactFailed: "Install Flux 2.7 or later, delete the ExternalArtifact that has the name, or set spec.externalArtifact to false. Deployments use the source all the same.",
	v1alpha1.ReasonQuotaExceeded:          "Delete unused sources of this namespace, make the bundle smaller, or have an administrator raise the quota that the message names.",
	v1alpha1.ReasonStorageFailed:          "Have an administrator look at the source controller's volume: it may be full or read-only.",
	v1alpha1.ReasonArtifactLost:           "Nothing: the source is fetched again. If that repeats, have an administrator look at the source controller's volume.",

	// Of deployments with spec.catalog.
	v1alpha1.ReasonResolutionFailed: "Widen the range or the channels in spec.catalog as the message says, or name other catalogs; the resolve command shows the same answer. What is installed keeps running.",
	v1alpha1.ReasonInvalidRange:     "Correct spec.catalog.version: a version such as 1.2.3, or a range such as \">=1.2 <2\".",
	v1alpha1.ReasonCatalogNotFound:  "Create the BundleCatalog in the namespace of the deployment, or correct spec.catalog.catalogs; the command catalog list shows those that the namespace sees.",
	v1alpha1.ReasonCatalogNotReady:  "See the status of the BundleCatalog that the message names; or name other catalogs in spec.catalog.catalogs.",
	v1alpha1.ReasonLockMismatch:     "Correct spec.catalog.lock to a bundle and image that a catalog lists, or remove it.",
	v1alpha1.ReasonInstalledUnknown: "Set spec.catalog.installed to the bundle and version that are installed.",
	v1alpha1.ReasonDeprecated:       "Choose another version, channel or package in spec.catalog, as the message of the catalog says.",

	// Of deployments.
	v1alpha1.ReasonSourceNotFound:          "Create the source that spec.sourceRef names, or correct kind and name; it must be in the same namespace.",
	v1alpha1.ReasonSourceNotReady:          "See the message of the source, which says what it waits for.",
	v1alpha1.ReasonSourceNotTrusted:        "Restore the key in the Secret of the source's verify, or sign the content with a key that is trusted now. The applied revision keeps running.",
	v1alpha1.ReasonSourceNotOwned:          "Rename the deployment, delete the BundleSource of its name, or refer to it with spec.sourceRef instead of spec.source.",
	v1alpha1.ReasonArtifactFailed:          "Check that bundle-source-controller runs and that bundle-deployment-controller reaches it; it is retried.",
	v1alpha1.ReasonConversionFailed:        "Correct the bundle as the message says; the render command shows the same problems without a cluster.",
	v1alpha1.ReasonConverting:              "Nothing: the bundle is being converted, or waits for a worker process; drift from the applied revision is still corrected.",
	v1alpha1.ReasonCPUBudgetExceeded:       "Wait as long as the message says; or make the bundle that uses too much CPU time smaller or simpler, or have the administrator raise --worker-namespace-cpu.",
	v1alpha1.ReasonWorkerUnavailable:       "Have the administrator look at the controller's log and its node: processes, memory or file descriptors have run out.",
	v1alpha1.ReasonWaitingForMemory:        "Nothing: it continues as soon as other large bundles are applied.",
	v1alpha1.ReasonInputNotFound:           "Create the Secret or ConfigMap that the message names, with its key, in the deployment's namespace, and allow the ServiceAccount of spec.serviceAccountName to get it; or set optional in the reference.",
	v1alpha1.ReasonInputInvalid:            "Correct what the Secret or ConfigMap holds under the key that the message names; it is read again as soon as it changes.",
	v1alpha1.ReasonAccountNotFound:         "Create the ServiceAccount that spec.serviceAccountName names, in the deployment's namespace, and grant it the permissions that the rbac command prints.",
	v1alpha1.ReasonKubeConfigNotFound:      "Create the Secret that spec.target.kubeConfig names, with the kubeconfig under its key, in the deployment's namespace, and allow the ServiceAccount of spec.serviceAccountName to get it.",
	v1alpha1.ReasonKubeConfigRefused:       "Write a kubeconfig that needs no command, file or proxy, to a server that the controller may reach (--egress-allow); it is read again every few seconds.",
	v1alpha1.ReasonClusterTooSlow:          "See why the remote cluster's API server is slow; it is retried. The administrator can give a turn more time (--remote-turn).",
	v1alpha1.ReasonClusterUnreachable:      "See that the remote cluster's API server runs and that the controller's network reaches it; it is retried.",
	v1alpha1.ReasonClusterDenied:           "Renew the credentials in the kubeconfig, and grant its user, or spec.target.serviceAccountName there, what the message names.",
	v1alpha1.ReasonDependencyNotReady:      "See the status of the deployment that the message names; this one continues when that is ready.",
	v1alpha1.ReasonDependencyCycle:         "Remove one of the dependencies of the cycle (spec.dependsOn); all its members wait for one another.",
	v1alpha1.ReasonInvalidExpression:       "Correct the expression that the message names; nothing new is installed until then.",
	v1alpha1.ReasonTargetChanged:           "If the cluster was replaced on purpose, delete the deployment and create it again; nothing is pruned until then.",
	v1alpha1.ReasonPlanRefused:             "Fix each problem of the list (grant the permissions, which the rbac command prints; create the namespace; install what is required); nothing was changed.",
	v1alpha1.ReasonDryRunFailed:            "Correct the object in the bundle, or what another client set in it, as the message says; the previous revision keeps running.",
	v1alpha1.ReasonStillRefused:            "Free what the message names (a port, a quota), or change the object in the bundle; then run the command reconcile. The previous revision keeps running.",
	v1alpha1.ReasonWrittenByAnotherVersion: "Do what the message says about the data that it names; if another version of Satchel was installed a moment ago, that version reads it.",
	v1alpha1.ReasonApplyFailed:             "Correct the object in the bundle, what another client set in it, or what refused it (an admission webhook, a quota); it is retried.",
	v1alpha1.ReasonHookFailed:              "Look at the hook that the message names, and at its Pod; correct the chart or its values, or run it again with the command reconcile and --retry.",
	v1alpha1.ReasonPruneFailed:             "Find out what blocks the deletion (a finalizer, a missing permission to delete); it is retried.",
	v1alpha1.ReasonApprovalPending:         "See the pending plan with the approve command and --dry-run, and have it approved or denied.",
	v1alpha1.ReasonApprovalRequired:        "See the pending plan with the approve command and --dry-run, and have it approved or denied; the applied revision keeps running.",
	v1alpha1.ReasonApprovalDenied:          "Propose another plan, by another revision or spec; or have the bundleapproval that denies it deleted.",
	v1alpha1.ReasonPruneHeld:               "To delete the objects, raise spec.prune.limit or approve the plan; to keep them, add them to the bundle again, or set spec.prune.enabled to false.",
	v1alpha1.ReasonHealthFailed:            "See the status of the object that the message names; its health is watched, and Ready recovers when the cause is gone.",
	v1alpha1.ReasonRevisionRejected:        "Publish a revision that works, or try this one again with the command reconcile and --retry; the last healthy one stays applied.",
	v1alpha1.ReasonRollbackFailed:          "Fix what the message names, which prevents the rollback to the last healthy revision; it is retried.",
	v1alpha1.ReasonRemovalFailed:           "Find out what blocks the deletion (a finalizer, a missing permission to delete); it is retried.",
	v1alpha1.ReasonFailed:                  "It is retried; if it lasts, see the log of the controller.",
}

// warningHints say what to do about warnings that need user action, by their prefix.
var warningHints = []struct{ begin, hint string }{
	{"certificates: ", "See that the ServiceAccount may write the Secrets of the certificates (the rbac command prints its permissions) and that no other client writes them; renewing is retried."},
}

// HintForWarning says what to do about a warning; empty when there is nothing to say.
func HintForWarning(warning string) string {
	for _, w := range warningHints {
		if strings.HasPrefix(warning, w.begin) {
			return w.hint
		}
	}
	return ""
}

// HintFor says what to do about a reason; empty when there is nothing to say.
func HintFor(reason string) string { return Hints[reason] }
