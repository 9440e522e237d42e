// SPDX-License-Identifier: Apache-2.0

package health

import "k8s.io/apimachinery/pkg/runtime/schema"

// alwaysCurrent lists, as Kind.group, the kinds that are healthy as soon
// as they exist.
var alwaysCurrent = map[string]bool{
	"ConfigMap":      true,
	"Endpoints":      true,
	"LimitRange":     true,
	"Namespace":      true,
	"PodTemplate":    true,
	"ResourceQuota":  true,
	"Secret":         true,
	"ServiceAccount": true,

	"ClusterRole.rbac.authorization.k8s.io":        true,
	"ClusterRoleBinding.rbac.authorization.k8s.io": true,
	"Role.rbac.authorization.k8s.io":               true,
	"RoleBinding.rbac.authorization.k8s.io":        true,

	"MutatingAdmissionPolicy.admissionregistration.k8s.io":          true,
	"MutatingAdmissionPolicyBinding.admissionregistration.k8s.io":   true,
	"MutatingWebhookConfiguration.admissionregistration.k8s.io":     true,
	"ValidatingAdmissionPolicy.admissionregistration.k8s.io":        true,
	"ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io": true,
	"ValidatingWebhookConfiguration.admissionregistration.k8s.io":   true,

	"CSIDriver.storage.k8s.io":            true,
	"CronJob.batch":                       true,
	"EndpointSlice.discovery.k8s.io":      true,
	"HorizontalPodAutoscaler.autoscaling": true,
	"Ingress.networking.k8s.io":           true,
	"IngressClass.networking.k8s.io":      true,
	"Lease.coordination.k8s.io":           true,
	"NetworkPolicy.networking.k8s.io":     true,
	"PriorityClass.scheduling.k8s.io":     true,
	"RuntimeClass.node.k8s.io":            true,
	"StorageClass.storage.k8s.io":         true,
}

// AlwaysCurrent tells whether objects of a kind are healthy as soon as they
// exist, so that their health need not be checked.
func AlwaysCurrent(kind schema.GroupKind) bool { return alwaysCurrent[kind.String()] }

// controlled are the kinds with a status that means nothing before their controller has
// observed them once.
var controlled = map[string]bool{
	"DaemonSet.apps": true, "Deployment.apps": true, "ReplicaSet.apps": true, "StatefulSet.apps": true,
}

// selecting are the kinds that select their Pods by spec.selector.
var selecting = map[string]bool{
	"DaemonSet.apps": true, "Deployment.apps": true, "Job.batch": true,
	"ReplicaSet.apps": true, "ReplicationController": true, "StatefulSet.apps": true,
}
