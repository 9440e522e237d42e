// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// allowedKind is a kind that a bundle may contain beside its CSV and CRDs (A1).
type allowedKind struct {
	kind, group, version string
	cluster              bool // cluster-scoped
}

var allowedKinds = []allowedKind{
	{kind: "ConfigMap", version: "v1"},
	{kind: "Secret", version: "v1"},
	{kind: "Service", version: "v1"},
	{kind: "ServiceAccount", version: "v1"},
	{kind: "Role", group: "rbac.authorization.k8s.io", version: "v1"},
	{kind: "RoleBinding", group: "rbac.authorization.k8s.io", version: "v1"},
	{kind: "ClusterRole", group: "rbac.authorization.k8s.io", version: "v1", cluster: true},
	{kind: "ClusterRoleBinding", group: "rbac.authorization.k8s.io", version: "v1", cluster: true},
	{kind: "NetworkPolicy", group: "networking.k8s.io", version: "v1"},
	{kind: "PodDisruptionBudget", group: "policy", version: "v1"},
	{kind: "PriorityClass", group: "scheduling.k8s.io", version: "v1", cluster: true},
	{kind: "VerticalPodAutoscaler", group: "autoscaling.k8s.io", version: "v1"},
	{kind: "PodMonitor", group: "monitoring.coreos.com", version: "v1"},
	{kind: "PrometheusRule", group: "monitoring.coreos.com", version: "v1"},
	{kind: "ServiceMonitor", group: "monitoring.coreos.com", version: "v1"},
	{kind: "ConsoleCLIDownload", group: "console.openshift.io", version: "v1", cluster: true},
	{kind: "ConsoleLink", group: "console.openshift.io", version: "v1", cluster: true},
	{kind: "ConsolePlugin", group: "console.openshift.io", version: "v1", cluster: true},
	{kind: "ConsoleQuickStart", group: "console.openshift.io", version: "v1", cluster: true},
	{kind: "ConsoleYAMLSample", group: "console.openshift.io", version: "v1", cluster: true},
}

// allowed looks a kind up by its name alone.
func allowed(kind string) (allowedKind, bool) {
	at := slices.IndexFunc(allowedKinds, func(a allowedKind) bool { return a.kind == kind })
	if at < 0 {
		return allowedKind{}, false
	}
	return allowedKinds[at], true
}

// inferredVersion is the apiVersion of a kind that has one obvious group, else empty.
func inferredVersion(kind string) string {
	if a, ok := allowed(kind); ok {
		return schema.GroupVersion{Group: a.group, Version: a.version}.String()
	}
	switch kind {
	case csvKind:
		return "operators.coreos.com/v1alpha1"
	case crdKind:
		return "apiextensions.k8s.io/v1"
	}
	return ""
}
