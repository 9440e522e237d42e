// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// Scope is whether objects of a kind live in namespaces.
type Scope int

// Unknown is the scope of kinds that neither Kubernetes nor the bundle defines.
const (
	Unknown Scope = iota
	Namespaced
	Cluster
)

// String names the scope.
func (s Scope) String() string {
	return [...]string{"unknown", "namespaced", "cluster"}[s]
}

// ScopeOf returns the scope of a kind that Kubernetes itself serves, Unknown for all others.
func ScopeOf(kind schema.GroupKind) Scope {
	return builtin[kind.Group][kind.Kind]
}

// builtin holds the kinds that Kubernetes serves, and a few that others fix, by group.
var builtin = map[string]map[string]Scope{
	"": {
		"Binding": Namespaced, "ConfigMap": Namespaced, "Endpoints": Namespaced, "Event": Namespaced, "LimitRange": Namespaced,
		"PersistentVolumeClaim": Namespaced, "Pod": Namespaced, "PodTemplate": Namespaced, "ReplicationController": Namespaced,
		"ResourceQuota": Namespaced, "Secret": Namespaced, "Service": Namespaced, "ServiceAccount": Namespaced,
		"ComponentStatus": Cluster, "Namespace": Cluster, "Node": Cluster, "PersistentVolume": Cluster,
	},
	"admissionregistration.k8s.io": {
		"MutatingAdmissionPolicy": Cluster, "MutatingAdmissionPolicyBinding": Cluster, "MutatingWebhookConfiguration": Cluster,
		"ValidatingAdmissionPolicy": Cluster, "ValidatingAdmissionPolicyBinding": Cluster, "ValidatingWebhookConfiguration": Cluster,
	},
	"apiextensions.k8s.io":   {"CustomResourceDefinition": Cluster},
	"apiregistration.k8s.io": {"APIService": Cluster},
	"apps": {
		"ControllerRevision": Namespaced, "DaemonSet": Namespaced, "Deployment": Namespaced, "ReplicaSet": Namespaced, "StatefulSet": Namespaced,
	},
	"authentication.k8s.io": {"SelfSubjectReview": Cluster, "TokenReview": Cluster},
	"authorization.k8s.io": {
		"LocalSubjectAccessReview": Namespaced, "SelfSubjectAccessReview": Cluster, "SelfSubjectRulesReview": Cluster, "SubjectAccessReview": Cluster,
	},
	"autoscaling": {"HorizontalPodAutoscaler": Namespaced, "Scale": Namespaced},
	"batch":       {"CronJob": Namespaced, "Job": Namespaced},
	"certificates.k8s.io": {
		"CertificateSigningRequest": Cluster, "ClusterTrustBundle": Cluster, "PodCertificateRequest": Namespaced,
	},
	"coordination.k8s.io": {"Lease": Namespaced, "LeaseCandidate": Namespaced},
	"discovery.k8s.io":    {"EndpointSlice": Namespaced},
	"events.k8s.io":       {"Event": Namespaced},
	"flowcontrol.apiserver.k8s.io": {
		"FlowSchema": Cluster, "PriorityLevelConfiguration": Cluster,
	},
	"internal.apiserver.k8s.io": {"StorageVersion": Cluster},
	"networking.k8s.io": {
		"Ingress": Namespaced, "NetworkPolicy": Namespaced, "IngressClass": Cluster, "IPAddress": Cluster, "ServiceCIDR": Cluster,
	},
	"node.k8s.io": {"RuntimeClass": Cluster},
	"policy":      {"Eviction": Namespaced, "PodDisruptionBudget": Namespaced, "PodSecurityPolicy": Cluster},
	"rbac.authorization.k8s.io": {
		"ClusterRole": Cluster, "ClusterRoleBinding": Cluster, "Role": Namespaced, "RoleBinding": Namespaced,
	},
	"resource.k8s.io": {
		"DeviceClass": Cluster, "DeviceTaintRule": Cluster, "ResourceClaim": Namespaced, "ResourcePoolStatusRequest": Cluster, "ResourceClaimTemplate": Namespaced, "ResourceSlice": Cluster,
	},
	"scheduling.k8s.io": {"PriorityClass": Cluster, "PodGroup": Namespaced, "Workload": Namespaced},
	"storage.k8s.io": {
		"CSIDriver": Cluster, "CSINode": Cluster, "CSIStorageCapacity": Namespaced, "StorageClass": Cluster,
		"VolumeAttachment": Cluster, "VolumeAttributesClass": Cluster,
	},
	"storagemigration.k8s.io": {"StorageVersionMigration": Cluster},

	// Not Kubernetes' own, but their projects fix the scope, and operator bundles are full of them.
	"autoscaling.k8s.io":      {"VerticalPodAutoscaler": Namespaced, "VerticalPodAutoscalerCheckpoint": Namespaced},
	"cert-manager.io":         {"Certificate": Namespaced, "CertificateRequest": Namespaced, "Issuer": Namespaced, "ClusterIssuer": Cluster},
	"console.openshift.io":    {"ConsoleCLIDownload": Cluster, "ConsoleLink": Cluster, "ConsolePlugin": Cluster, "ConsoleQuickStart": Cluster, "ConsoleYAMLSample": Cluster},
	"monitoring.coreos.com":   {"PodMonitor": Namespaced, "Probe": Namespaced, "PrometheusRule": Namespaced, "ServiceMonitor": Namespaced},
	"operators.coreos.com":    {"CatalogSource": Namespaced, "ClusterServiceVersion": Namespaced, "OperatorGroup": Namespaced, "Subscription": Namespaced},
	"route.openshift.io":      {"Route": Namespaced},
	"security.openshift.io":   {"SecurityContextConstraints": Cluster},
	"snapshot.storage.k8s.io": {"VolumeSnapshot": Namespaced, "VolumeSnapshotClass": Cluster, "VolumeSnapshotContent": Cluster},
}

// bundleScopes returns the scopes that the bundle's own CustomResourceDefinitions declare.
func bundleScopes(manifests []manifest.Manifest) map[schema.GroupKind]Scope {
	scopes := map[schema.GroupKind]Scope{}
	for _, m := range manifests {
		if m.Object.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}) {
			continue
		}
		group, _, _ := unstructured.NestedString(m.Object.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(m.Object.Object, "spec", "names", "kind")
		scope, _, _ := unstructured.NestedString(m.Object.Object, "spec", "scope")
		switch scope {
		case "Namespaced":
			scopes[schema.GroupKind{Group: group, Kind: kind}] = Namespaced
		case "Cluster":
			scopes[schema.GroupKind{Group: group, Kind: kind}] = Cluster
		}
	}
	return scopes
}
