// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// hints say what to do about a reason. Every reason of the API that stands for a failure has one.
var hints = map[string]string{
	// Of sources.
	v1alpha1.ReasonNotFound:               "Correct the image, repository, reference or URL in the source, which does not exist or is hidden from strangers; or create the Secret, ServiceAccount or ConfigMap that it names.",
	v1alpha1.ReasonUnauthorized:           "Name a Secret with credentials that may read it in the source's secretRef, or correct the one that is named.",
	v1alpha1.ReasonUnreachable:            "Check the host's name and that the source controller's network reaches it; it is tried again by itself.",
	v1alpha1.ReasonTimeout:                "Raise spec.timeout of the source, or find out why the server is slow; it is tried again by itself.",
	v1alpha1.ReasonRateLimited:            "Wait; or poll less often with a longer spec.interval, or pin the source by digest or commit.",
	v1alpha1.ReasonRefused:                "Name a host, address or scheme that the source controller allows, or have its administrator allow it (--egress-allow, --insecure-hosts).",
	v1alpha1.ReasonInvalidSpec:            "Correct the field that the message names; it was stored before its rules were enforced.",
	v1alpha1.ReasonLimitExceeded:          "Make the bundle smaller or simpler, or have the administrator of the controllers raise the limit that the message names.",
	v1alpha1.ReasonInvalidContent:         "Publish the bundle anew: what the server delivers is broken or unsafe.",
	v1alpha1.ReasonDigestMismatch:         "Find out who changed the content; then correct the digest in the source, or publish the right content.",
	v1alpha1.ReasonVerificationFailed:     "Find out who signed the content; then have it signed by somebody whom the source trusts, or correct whom it trusts. What was installed before keeps running.",
	v1alpha1.ReasonTrustChanged:           "Restore the key in the Secret of verify, or have the content signed by who is trusted now. What runs stays.",
	v1alpha1.ReasonSignatureRequired:      "Set verify on each source that the message names, or install from another namespace: this one has the label satchel.dev/signatures=required. What runs stays.",
	v1alpha1.ReasonUploadPending:          "Upload the content with the run command and its folder; or correct spec.sources.upload.digest, which says what is meant.",
	v1alpha1.ReasonExternalArtifactFailed: "Install Flux 2.7 or later, delete the ExternalArtifact that has the name, or set spec.externalArtifact to false. Deployments use the source all the same.",
	v1alpha1.ReasonQuotaExceeded:          "Delete sources of this namespace that nobody needs, make the bundle smaller, or have an administrator raise the quota that the message names.",
	v1alpha1.ReasonStorageFailed:          "Have an administrator look at the source controller's volume: it may be full or read-only.",
	v1alpha1.ReasonArtifactLost:           "Nothing: the source is fetched again. If that repeats, have an administrator look at the source controller's volume.",

	// Of deployments.
	v1alpha1.ReasonSourceNotFound:     "Create the source that spec.sourceRef names, or correct kind and name; it must be in the same namespace.",
	v1alpha1.ReasonSourceNotReady:     "Look at the source: its own message says what it waits for.",
	v1alpha1.ReasonSourceNotTrusted:   "Look at the source: restore the key in the Secret of its verify, or have the content signed by who is trusted now. What runs stays.",
	v1alpha1.ReasonSourceNotOwned:     "Rename the deployment, delete the BundleSource of its name, or refer to it with spec.sourceRef instead of spec.source.",
	v1alpha1.ReasonArtifactFailed:     "Check that bundle-source-controller runs and that bundle-deployment-controller reaches it; it is tried again by itself.",
	v1alpha1.ReasonConversionFailed:   "Correct the bundle as the message says; the render command shows the same problems without a cluster.",
	v1alpha1.ReasonConverting:         "Nothing: the bundle is being converted, or waits for a worker process; what was applied last is still corrected.",
	v1alpha1.ReasonCPUBudgetExceeded:  "Wait as long as the message says; or make the bundle that takes so much CPU time smaller or simpler, or have the administrator raise --worker-namespace-cpu.",
	v1alpha1.ReasonWorkerUnavailable:  "Have the administrator look at the controller's log and its node: processes, memory or file descriptors have run out.",
	v1alpha1.ReasonWaitingForMemory:   "Nothing: it goes on as soon as other large bundles are applied.",
	v1alpha1.ReasonInputNotFound:      "Create the Secret or ConfigMap that the message names, with its key, in the deployment's namespace, and let the account of spec.serviceAccountName get it; or set optional in the reference.",
	v1alpha1.ReasonInputInvalid:       "Correct what the Secret or ConfigMap holds under the key that the message names; it is read again as soon as it changes.",
	v1alpha1.ReasonAccountNotFound:    "Create the ServiceAccount that spec.serviceAccountName names, in the deployment's namespace, and give it the rights to install.",
	v1alpha1.ReasonKubeConfigNotFound: "Create the Secret that spec.kubeConfig names, with the kubeconfig under its key, in the deployment's namespace, and let the account of spec.serviceAccountName get it.",
	v1alpha1.ReasonKubeConfigRefused:  "Write a kubeconfig that needs no command, file or proxy, to a server that the controller may reach (--egress-allow); it is read again every few seconds.",
	v1alpha1.ReasonClusterTooSlow:     "See why the remote cluster's API server is slow; it is tried again by itself. The administrator can give a turn more time (--remote-turn).",
	v1alpha1.ReasonClusterUnreachable: "See that the remote cluster's API server runs and that the controller's network reaches it; it is tried again by itself.",
	v1alpha1.ReasonClusterDenied:      "Renew the credentials in the kubeconfig, and grant its user, or spec.remoteServiceAccountName there, what the message names.",
	v1alpha1.ReasonDependencyNotReady: "Look at the deployment that the message names; this one goes on by itself when that is ready.",
	v1alpha1.ReasonDependencyCycle:    "Take one of the dependencies of the circle away (spec.dependsOn); all of its members wait for one another.",
	v1alpha1.ReasonInvalidExpression:  "Correct the expression that the message names; nothing new is installed until then.",
	v1alpha1.ReasonTargetChanged:      "If the cluster was replaced on purpose, delete the deployment and create it again; nothing is pruned until then.",
	v1alpha1.ReasonPlanRefused:        "Remove each obstacle of the list (grant the rights, which the rbac command prints; create the namespace; install what is required); nothing was touched.",
	v1alpha1.ReasonDryRunFailed:       "Correct the object in the bundle as the message says; the previous revision keeps running.",
	v1alpha1.ReasonApplyFailed:        "Correct the object in the bundle, or what refused it (an admission webhook, a quota); it is tried again by itself.",
	v1alpha1.ReasonHookFailed:         "Look at the hook that the message names, and at its Pod; correct the chart or its values, or have it run again with the retry command.",
	v1alpha1.ReasonPruneFailed:        "Find out what keeps the object (a finalizer, a missing permission to delete); it is tried again by itself.",
	v1alpha1.ReasonApprovalPending:    "See what waits with the approve command and --dry-run, and have somebody who may approve it or deny it.",
	v1alpha1.ReasonApprovalRequired:   "See what waits with the approve command and --dry-run, and have somebody who may approve it or deny it; what runs stays in force.",
	v1alpha1.ReasonApprovalDenied:     "Propose another plan, by another revision or spec; or have the bundleapproval that denies it deleted.",
	v1alpha1.ReasonPruneHeld:          "If the objects shall go, raise spec.prune.limit or approve the plan; if they shall stay, bring them back in the bundle, or set spec.prune.enabled to false.",
	v1alpha1.ReasonHealthFailed:       "Look at the object that the message names; it goes on being watched, and recovers by itself when its cause is gone.",
	v1alpha1.ReasonRevisionRejected:   "Publish a revision that works, or have this one tried again with the retry command; the last healthy one is in force.",
	v1alpha1.ReasonRollbackFailed:     "See what keeps the last healthy revision from coming back, as the message says; it is tried again by itself.",
	v1alpha1.ReasonRemovalFailed:      "Find out what keeps the object (a finalizer, a missing permission to delete); it is tried again by itself.",
	v1alpha1.ReasonFailed:             "It is tried again by itself; if it lasts, see the log of the controller.",
}

// warningHints say what to do about warnings that last until somebody does something, by how they begin.
var warningHints = []struct{ begin, hint string }{
	{"certificates: ", "See that the account may write the Secrets of the certificates (the rbac command prints its rights) and that nobody else does; renewing is tried again by itself."},
}

// hintForWarning says what to do about a warning; empty when there is nothing to say.
func hintForWarning(warning string) string {
	for _, w := range warningHints {
		if strings.HasPrefix(warning, w.begin) {
			return w.hint
		}
	}
	return ""
}

// hintFor says what to do about a reason; empty when there is nothing to say.
func hintFor(reason string) string { return hints[reason] }
