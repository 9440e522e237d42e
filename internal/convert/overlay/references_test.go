// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// looksLikeReference matches the JSON names of fields that may name other objects.
var looksLikeReference = regexp.MustCompile(`(?i)(names?|refs?|class|claim|account|secret|service|group)$`)

// notReferences are paths, from their ends, of fields that look like references and name no object of a bundle, with the reason.
var notReferences = []struct{ path, reason string }{
	{`(containers|initContainers|ephemeralContainers|env|ports|volumeMounts|volumeDevices|volumes|httpHeaders|sysctls|variables|matchConditions|schedulingGates|options|sharedCounters|counters|podGroupTemplates|requests|firstAvailable|devices|webhooks|forNodes|forZones|claims|resourceClaims|volumeClaimTemplates)/name`, "the item's own name"},
	{`(containerName|targetContainerName|podGroupTemplateName|fileKeyRef/volumeName|port/name)`, "a part of the same object"},
	{`(nodeName|hostname|hostnames|os/name|runAsUserName|runAsUser|schedulerName|signerName|driverName|resourceName|scopeName|controllerName|username|topologyKey)`, "no object that a bundle installs under a name of its choice"},
	{`(diskName|shareName|datasetName|pdName|initiatorName|storagePolicyName|scaleIO/volumeName|storageos/volumeName|volumePath|volumesetName|clusterName)`, "a name outside of the cluster"},
	{`(externalName)`, "a host, which Host follows"},
	{`(grpc/service|loadBalancerClass|metric/name|metricName|containerResource/name|resource/name|external/metricName|groupName|subjects/user/name|subjects/group/name|apiGroup|group|fsGroup|supplementalGroups|runAsGroup)`, "no object"},
}

// notReferenceKinds are kinds that bundles do not contain, or in which another component writes the references.
var notReferenceKinds = []string{
	"Event", "Binding", "Eviction", "TokenReview", "TokenRequest", "SelfSubjectReview", "SubjectAccessReview", "LocalSubjectAccessReview", "SelfSubjectAccessReview", "SelfSubjectRulesReview",
	"ComponentStatus", "Node", "Lease", "LeaseCandidate", "CSINode", "CSIDriver", "ResourceSlice", "ResourcePoolStatusRequest", "PodCertificateRequest", "CertificateSigningRequest",
	"ControllerRevision", "IPAddress", "ServiceCIDR", "StorageVersion", "StorageVersionMigration", "DeviceTaintRule", "PodDisruptionBudget", "DeviceClass", "ImageReview",
}

// TestEveryReferenceOfBuiltInKindsIsFollowed walks over the fields of all kinds of Kubernetes, from the types of which the
// API server's OpenAPI document is generated.
func TestEveryReferenceOfBuiltInKindsIsFollowed(t *testing.T) {
	checked, unused := 0, map[string]bool{}
	for _, exception := range notReferences {
		unused[exception.path] = true
	}
	for gvk, typ := range clientgoscheme.Scheme.AllKnownTypes() {
		if _, object := typ.FieldByName("ObjectMeta"); !object || slices.Contains(notReferenceKinds, gvk.Kind) || gvk.Version == "__internal" || gvk.Group == "extensions" {
			continue
		}
		known := followed(gvk.GroupKind())
		for _, path := range slices.Sorted(maps.Keys(referencesOf(typ))) {
			checked++
			if known[path] || known[strings.TrimSuffix(path, "/name")] {
				continue
			}
			if exception := exempt(path); exception != "" {
				delete(unused, exception)
				continue
			}
			t.Errorf("%s %s: %s looks like a reference, and is neither in the table nor in the exceptions", gvk.GroupVersion(), gvk.Kind, path)
		}
	}
	for path := range unused {
		t.Errorf("no field matches the exception %s", path)
	}
	if checked < 1000 {
		t.Errorf("only %d fields were looked at", checked)
	}
}

// followed are the paths of a kind that tables hold.
func followed(kind schema.GroupKind) map[string]bool {
	paths := map[string]bool{}
	if at, has := podSpecs[kind]; has {
		for _, rule := range podReferences {
			paths[strings.Join(slices.Concat(at, rule.path), "/")] = true
		}
	}
	for _, rule := range references[kind] {
		paths[strings.Join(rule.path, "/")] = true
	}
	return paths
}

func exempt(path string) string {
	for _, exception := range notReferences {
		if regexp.MustCompile(`(^|/)` + exception.path + `$`).MatchString(path) {
			return exception.path
		}
	}
	return ""
}

// referencesOf are the paths of strings of a type that look like references, without metadata and status.
func referencesOf(typ reflect.Type) map[string]bool {
	found := map[string]bool{}
	var walk func(typ reflect.Type, path []string, within []reflect.Type)
	walk = func(typ reflect.Type, path []string, within []reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() == reflect.String && looksLikeReference.MatchString(path[len(path)-1]) {
			found[strings.Join(path, "/")] = true
		}
		if typ.Kind() != reflect.Struct || slices.Contains(within, typ) {
			return
		}
		for i := range typ.NumField() {
			field := typ.Field(i)
			name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			switch {
			case name == "" || strings.Contains(options, "inline"):
				walk(field.Type, path, append(within[:len(within):len(within)], typ))
			case name == "metadata", name == "status", name == "-", len(path) == 0 && (name == "kind" || name == "apiVersion"):
			default:
				walk(field.Type, append(path[:len(path):len(path)], name), append(within[:len(within):len(within)], typ))
			}
		}
	}
	walk(typ, nil, nil)
	return found
}

// The groups with references in tables are those of Kubernetes.
func TestBuiltInGroups(t *testing.T) {
	for _, version := range clientgoscheme.Scheme.PrioritizedVersionsAllGroups() {
		if !slices.Contains(builtInGroups, version.Group) && version.Group != "imagepolicy.k8s.io" {
			t.Errorf("the group %q is not in builtInGroups", version.Group)
		}
	}
}
