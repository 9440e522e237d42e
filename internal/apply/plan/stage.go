// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/digest"
)

// The stages in the order of applying. Objects of one stage do not depend on
// one another.
const (
	stageNamespaces   = "namespaces"
	stageCertificates = "certificates"
	stageDefinitions  = "definitions"
	stageFoundations  = "foundations"
	stageBindings     = "bindings"
	stageResources    = "resources"
	stageWorkloads    = "workloads"
	stageCustom       = "custom resources"
	stageAdmission    = "admission"
)

// LabelCertificate labels the Secrets of self-signed certificates; its value is
// CertificateAuthority or CertificateServing.
const LabelCertificate = "satchel.dev/certificate"

// Values of LabelCertificate.
const (
	// CertificateAuthority: the Secret holds a certificate authority.
	CertificateAuthority = "authority"
	// CertificateServing: the Secret holds a certificate that serves webhooks.
	CertificateServing = "serving"
)

// applyOrder: dependencies come first, certificates before the CRDs
// and webhooks that trust them and the workloads that mount them; objects that could
// refuse the others (webhooks, policies, APIs that are served by a workload) come
// last.
var applyOrder = []string{
	stageNamespaces, stageCertificates, stageDefinitions, stageFoundations, stageBindings,
	stageResources, stageWorkloads, stageCustom, stageAdmission,
}

// ground are the stages that precede hooks.
var ground = map[string]bool{stageNamespaces: true, stageCertificates: true, stageDefinitions: true}

// deleteOrder: custom resources while their operator still runs; then admission,
// which would refuse everything once its server is gone; then CRDs, which lose their
// conversion webhooks while those still answer; RBAC, which may grant the account its own
// permissions, comes late, and a namespace last. Within these bounds the objects of higher
// phases are deleted before those of lower ones: see deletionPlace. An inventory does not tell the
// Secrets of certificates from others: they are deleted with the foundations.
var deleteOrder = []string{
	stageCustom, stageAdmission, stageDefinitions, stageWorkloads, stageResources,
	stageBindings, stageFoundations, stageNamespaces,
}

// stageOfKind lists the kinds that have a stage of their own, as Kind or
// Kind.group. Everything else is a resource.
var stageOfKind = map[string]string{
	"Namespace": stageNamespaces,
	"CustomResourceDefinition.apiextensions.k8s.io": stageDefinitions,

	"ServiceAccount":                               stageFoundations,
	"Secret":                                       stageFoundations,
	"ConfigMap":                                    stageFoundations,
	"LimitRange":                                   stageFoundations,
	"ResourceQuota":                                stageFoundations,
	"Role.rbac.authorization.k8s.io":               stageFoundations,
	"ClusterRole.rbac.authorization.k8s.io":        stageFoundations,
	"PriorityClass.scheduling.k8s.io":              stageFoundations,
	"StorageClass.storage.k8s.io":                  stageFoundations,
	"RuntimeClass.node.k8s.io":                     stageFoundations,
	"RoleBinding.rbac.authorization.k8s.io":        stageBindings,
	"ClusterRoleBinding.rbac.authorization.k8s.io": stageBindings,

	"Pod":                   stageWorkloads,
	"ReplicationController": stageWorkloads,
	"Deployment.apps":       stageWorkloads,
	"StatefulSet.apps":      stageWorkloads,
	"DaemonSet.apps":        stageWorkloads,
	"ReplicaSet.apps":       stageWorkloads,
	"Job.batch":             stageWorkloads,
	"CronJob.batch":         stageWorkloads,

	"APIService.apiregistration.k8s.io":                             stageAdmission,
	"ValidatingWebhookConfiguration.admissionregistration.k8s.io":   stageAdmission,
	"MutatingWebhookConfiguration.admissionregistration.k8s.io":     stageAdmission,
	"ValidatingAdmissionPolicy.admissionregistration.k8s.io":        stageAdmission,
	"ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io": stageAdmission,
	"MutatingAdmissionPolicy.admissionregistration.k8s.io":          stageAdmission,
	"MutatingAdmissionPolicyBinding.admissionregistration.k8s.io":   stageAdmission,
}

// applyStage is the stage in which a desired object is applied.
func applyStage(object Object) string {
	if IsCertificate(object) {
		return stageCertificates
	}
	if isAccountToken(object) {
		return stageBindings
	}
	return stageOf(object.ID, object.Kind)
}

// IsCertificate tells whether a desired object is the Secret of a self-signed certificate.
func IsCertificate(object Object) bool {
	return digest.IsSecret(object.ID) && object.Desired.GetLabels()[LabelCertificate] != ""
}

// isAccountToken tells a Secret for the token of a service account from others: Kubernetes deletes such a Secret
// unless the account exists before it.
func isAccountToken(object Object) bool {
	return digest.IsSecret(object.ID) && object.Desired.Object["type"] == "kubernetes.io/service-account-token"
}

func stageOf(id inventory.ID, kind Kind) string {
	if kind.Definition != "" {
		return stageCustom
	}
	if stage, found := stageOfKind[id.GroupKind().String()]; found {
		return stage
	}
	return stageResources
}

// IsAccess tells whether an object grants permissions: the API server checks these kinds for
// escalation on every write.
func IsAccess(id inventory.ID) bool { return id.Group == "rbac.authorization.k8s.io" }
