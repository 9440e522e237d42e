// SPDX-License-Identifier: Apache-2.0

package escalation

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

const (
	rbacGroup     = "rbac.authorization.k8s.io"
	secretKind    = "Secret"
	configMapKind = "ConfigMap"
	claimKind     = "PersistentVolumeClaim"
)

// rule says what is harmless in objects of a kind.
type rule struct {
	// fields that are harmless.
	fields field
	// why every new or changed object counts; empty: only what is not among the fields.
	why string
	// created says why each new object counts; empty: it does not.
	created string
	// strictKeys: labels and annotations without a domain count, too.
	strictKeys bool
	// secret: values are not shown.
	secret bool
}

func (r rule) onCreation(before *unstructured.Unstructured, id inventory.ID) []string {
	if before != nil || r.created == "" {
		return nil
	}
	return []string{"is new: " + strings.ReplaceAll(r.created, "NAME", id.Name)}
}

// kinds is the list of kinds that are harmless in the install namespace.
var kinds = map[schema.GroupKind]rule{
	{Kind: "Pod"}: {fields: inSpec(podSpec)},
	{Group: "apps", Kind: "Deployment"}: workload(
		"minReadySeconds", "paused", "progressDeadlineSeconds", "replicas", "revisionHistoryLimit", "selector", "strategy"),
	{Group: "apps", Kind: "DaemonSet"}:  workload("minReadySeconds", "revisionHistoryLimit", "selector", "updateStrategy"),
	{Group: "apps", Kind: "ReplicaSet"}: workload("minReadySeconds", "replicas", "selector"),
	{Group: "apps", Kind: "StatefulSet"}: statefulSet(workload(
		"minReadySeconds", "podManagementPolicy", "replicas", "revisionHistoryLimit", "selector", "serviceName", "updateStrategy")),
	{Kind: "ReplicationController"}:   workload("minReadySeconds", "replicas", "selector"),
	{Group: "batch", Kind: "Job"}:     {fields: inSpec(jobSpec)},
	{Group: "batch", Kind: "CronJob"}: {fields: inSpec(cronJobSpec)},

	{Kind: configMapKind}:    {fields: field{below: harmless("binaryData", "data", "immutable")}},
	{Kind: secretKind}:       {fields: field{below: secretFields}, strictKeys: true, secret: true},
	{Kind: "ServiceAccount"}: {fields: field{below: accountFields}, strictKeys: true, created: newAccount},
	{Kind: "Service"}:        {fields: inSpec(field{below: serviceFields})},
	{Kind: claimKind}:        {fields: inSpec(claimSpec)},
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: {fields: inSpec(field{below: with(
		harmless("behavior", "maxReplicas", "metrics", "minReplicas", "targetCPUUtilizationPercentage"),
		map[string]field{"scaleTargetRef": {check: scaleTarget}})})},
	{Group: "policy", Kind: "PodDisruptionBudget"}: {fields: inSpec(field{below: harmless(
		"maxUnavailable", "minAvailable", "selector", "unhealthyPodEvictionPolicy")})},
}

// newAccount is why a new ServiceAccount counts.
const newAccount = "bindings outside of the bundle may give permissions to a ServiceAccount of the name NAME"

// reasons say why a kind is not on the list. Others than these are not known.
var reasons = map[schema.GroupKind]string{
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}: "a NetworkPolicy decides which connections are allowed",
	{Group: "networking.k8s.io", Kind: "Ingress"}:       "an Ingress makes Services available outside of the cluster",
	{Kind: "PersistentVolume"}:                          "a PersistentVolume is cluster-scoped and may lead to the files of a node",
	{Kind: "Endpoints"}:                                 "it decides where the connections of a Service lead",
	{Group: "discovery.k8s.io", Kind: "EndpointSlice"}:  "it decides where the connections of a Service lead",
	{Kind: "ResourceQuota"}:                             "it limits all objects of the namespace",
	{Kind: "LimitRange"}:                                "it changes all Pods of the namespace",
}

var secretFields = with(harmless("data", "immutable", "stringData"), map[string]field{
	"type": {only: []string{
		"", "Opaque", "kubernetes.io/basic-auth", "kubernetes.io/dockercfg", "kubernetes.io/dockerconfigjson", "kubernetes.io/ssh-auth", "kubernetes.io/tls",
	}},
})

var accountFields = map[string]field{
	"automountServiceAccountToken": {check: automount},
	"imagePullSecrets":             {check: secretList},
	"secrets":                      {check: secretList},
}

var serviceFields = with(harmless("internalTrafficPolicy", "ipFamilies", "ipFamilyPolicy", "publishNotReadyAddresses", "selector", "sessionAffinity",
	"sessionAffinityConfig", "trafficDistribution"), map[string]field{
	"clusterIP":  {only: []string{"", "None"}},
	"clusterIPs": {only: []string{"[None]"}},
	"ports":      {below: harmless("appProtocol", "name", "port", "protocol", "targetPort")},
	"type":       {only: []string{"", "ClusterIP"}},
})

var claimSpec = field{below: with(harmless("accessModes", "resources", "volumeMode"), map[string]field{"storageClassName": {check: storageClass}})}

var jobFields = harmless("activeDeadlineSeconds", "backoffLimit", "backoffLimitPerIndex", "completionMode", "completions", "maxFailedIndexes",
	"parallelism", "podFailurePolicy", "podReplacementPolicy", "selector", "successPolicy", "suspend", "ttlSecondsAfterFinished")

var jobSpec = field{below: with(jobFields, map[string]field{
	"manualSelector": {only: []string{"", "false"}}, "managedBy": {only: []string{"", "kubernetes.io/job-controller"}}, "template": template,
})}

var cronJobSpec = field{below: with(harmless("concurrencyPolicy", "failedJobsHistoryLimit", "schedule", "startingDeadlineSeconds",
	"successfulJobsHistoryLimit", "suspend", "timeZone"), map[string]field{
	"jobTemplate": {below: map[string]field{"metadata": {check: templateMetadata}, "spec": jobSpec}},
})}

// workload is a kind with a Pod template beside harmless fields.
func workload(names ...string) rule {
	return rule{fields: inSpec(field{below: with(harmless(names...), map[string]field{"template": template})})}
}

func statefulSet(of rule) rule {
	spec := of.fields.below["spec"].below
	spec["persistentVolumeClaimRetentionPolicy"] = field{below: map[string]field{
		"whenDeleted": {only: []string{"", "Retain"}}, "whenScaled": {only: []string{"", "Retain"}},
	}}
	spec["volumeClaimTemplates"] = field{check: claimTemplates}
	return of
}

func inSpec(spec field) field { return field{below: map[string]field{"spec": spec}} }

func harmless(names ...string) map[string]field {
	below := make(map[string]field, len(names))
	for _, name := range names {
		below[name] = anything
	}
	return below
}

// with adds fields to a map of its own.
func with(below, more map[string]field) map[string]field {
	all := make(map[string]field, len(below)+len(more))
	for _, from := range []map[string]field{below, more} {
		for name, field := range from {
			all[name] = field
		}
	}
	return all
}

// claimTemplates reads those of a StatefulSet, which uses the claims also if they exist already.
func claimTemplates(f *facts, place string, value any) {
	for i, item := range list(value) {
		name := text(fields(fields(item)["metadata"])["name"])
		f.hold(true, spot{place: place}, fmt.Sprintf("uses the claims %s-*, which may exist already", name))
		claimSpec.read(f, fields(item)["spec"], fmt.Sprintf("%s[%d].spec", place, i))
	}
}

// scaleTarget reads the workload that is scaled.
func scaleTarget(f *facts, place string, value any) {
	group, _, found := strings.Cut(text(fields(value)["apiVersion"]), "/")
	if !found {
		group = ""
	}
	if text(fields(value)["kind"]) == "" {
		f.leave(place, value)
	}
	f.refer(group, text(fields(value)["kind"]), fields(value)["name"])
}

// storageClass reads that of a claim: volumes of another class may have been made for others. With an empty one, the claim
// takes such a volume in any case.
func storageClass(f *facts, place string, value any) {
	if name, set := value.(string); set && name == "" {
		f.unlisted[place] = `""`
	}
	f.refer("storage.k8s.io", "StorageClass", value)
}

func automount(f *facts, place string, value any) {
	f.places[place] = ""
	f.bind(isFalse(value), spot{place: place}, "automountServiceAccountToken: false")
}

func secretList(f *facts, _ string, value any) {
	for _, item := range list(value) {
		f.refer("", secretKind, fields(item)["name"])
	}
}
