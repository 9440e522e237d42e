// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// AllowedKind is a kind that a bundle may contain beside its CSV and CRDs (A1).
type AllowedKind struct {
	kind, Group, version string
	Cluster              bool // cluster-scoped
}

var allowedKinds = []AllowedKind{
	{kind: "ConfigMap", version: "v1"},
	{kind: "Secret", version: "v1"},
	{kind: "Service", version: "v1"},
	{kind: "ServiceAccount", version: "v1"},
	{kind: "Role", Group: "rbac.authorization.k8s.io", version: "v1"},
	{kind: "RoleBinding", Group: "rbac.authorization.k8s.io", version: "v1"},
	{kind: "ClusterRole", Group: "rbac.authorization.k8s.io", version: "v1", Cluster: true},
	{kind: "ClusterRoleBinding", Group: "rbac.authorization.k8s.io", version: "v1", Cluster: true},
	{kind: "NetworkPolicy", Group: "networking.k8s.io", version: "v1"},
	{kind: "PodDisruptionBudget", Group: "policy", version: "v1"},
	{kind: "PriorityClass", Group: "scheduling.k8s.io", version: "v1", Cluster: true},
	{kind: "VerticalPodAutoscaler", Group: "autoscaling.k8s.io", version: "v1"},
	{kind: "PodMonitor", Group: "monitoring.coreos.com", version: "v1"},
	{kind: "PrometheusRule", Group: "monitoring.coreos.com", version: "v1"},
	{kind: "ServiceMonitor", Group: "monitoring.coreos.com", version: "v1"},
	{kind: "ConsoleCLIDownload", Group: "console.openshift.io", version: "v1", Cluster: true},
	{kind: "ConsoleLink", Group: "console.openshift.io", version: "v1", Cluster: true},
	{kind: "ConsolePlugin", Group: "console.openshift.io", version: "v1", Cluster: true},
	{kind: "ConsoleQuickStart", Group: "console.openshift.io", version: "v1", Cluster: true},
	{kind: "ConsoleYAMLSample", Group: "console.openshift.io", version: "v1", Cluster: true},
}

// KindNamed looks a kind up by its name alone.
func KindNamed(kind string) (AllowedKind, bool) {
	at := slices.IndexFunc(allowedKinds, func(a AllowedKind) bool { return a.kind == kind })
	if at < 0 {
		return AllowedKind{}, false
	}
	return allowedKinds[at], true
}

// inferredVersion is the apiVersion of a kind that has one obvious group, else empty.
func inferredVersion(kind string) string {
	if a, ok := KindNamed(kind); ok {
		return schema.GroupVersion{Group: a.Group, Version: a.version}.String()
	}
	switch kind {
	case csvKind:
		return "operators.coreos.com/v1alpha1"
	case crdKind:
		return "apiextensions.k8s.io/v1"
	}
	return ""
}
