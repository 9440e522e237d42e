// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// ConversionService is the Service of the conversion webhook of a CRD; nil where it has none: it does not convert by
// webhook, or calls a URL.
func ConversionService(crd *unstructured.Unstructured) *types.NamespacedName {
	if !ConvertsByWebhook(crd) {
		return nil
	}
	service, _, _ := unstructured.NestedMap(crd.Object, "spec", "conversion", "webhook", "clientConfig", "service")
	namespace, _ := service["namespace"].(string)
	name, _ := service["name"].(string)
	if namespace == "" || name == "" {
		return nil
	}
	return &types.NamespacedName{Namespace: namespace, Name: name}
}

// Interim returns the CRD to apply in place of the desired one until the workloads behind its conversion webhook are
// available: all its versions, with the conversion and the storage version of the live one. What was served stays served.
// It is nil where the desired one can be applied at once. The first line that holds decides.
//
//	the desired one has no webhook behind a Service  nil: nothing tells when it answers, or storageversion.Migrator takes care
//	its versions lack the live storage version       nil: an API server does not accept a CRD without it
//	same webhook, same storage version               nil: the webhook is called as before
//	same webhook                                     the desired conversion, the live storage version
//	else                                             the live conversion, the live storage version
func Interim(live, desired *unstructured.Unstructured) *unstructured.Unstructured {
	storage, _ := Versions(live)
	wanted, _ := Versions(desired)
	if ConversionService(desired) == nil || !hasVersion(desired, storage) {
		return nil
	}
	same := sameWebhook(live, desired)
	if same && storage == wanted {
		return nil
	}
	interim := desired.DeepCopy()
	spec, _ := interim.Object["spec"].(map[string]any)
	spec["versions"] = interimVersions(live, interim, storage)
	if !same {
		spec["conversion"] = conversionOf(live)
	}
	return interim
}

// WhyNoInterim says why a CRD with another conversion webhook, or another storage version, than the live one has to be applied
// at once; empty where Interim knows a way, or none is needed.
func WhyNoInterim(live, desired *unstructured.Unstructured) string {
	storage, _ := Versions(live)
	wanted, _ := Versions(desired)
	switch {
	case !ConvertsByWebhook(desired) || storage == wanted && equality.Semantic.DeepEqual(clientConfig(live), clientConfig(desired)):
		return ""
	case ConversionService(desired) == nil:
		return "it calls a URL, and not a Service"
	case !hasVersion(desired, storage):
		return fmt.Sprintf("spec.versions lacks %s, in which resources are stored", storage)
	}
	return ""
}

// StoredBefore is the storage version of the desired CRD, where it lacks versions in which resources may be stored now and the
// webhook of the live one can convert them to that version; else "".
func StoredBefore(live, desired *unstructured.Unstructured) string {
	storage, _ := Versions(desired)
	stored, _, _ := unstructured.NestedStringSlice(live.Object, "status", "storedVersions")
	dropped := slices.ContainsFunc(stored, func(name string) bool { return !hasVersion(desired, name) })
	if !dropped || !ConvertsByWebhook(live) || !hasVersion(live, storage) {
		return ""
	}
	return storage
}

// Storing is the desired CRD with the specification of the live one, but for the storage version.
func Storing(live, desired *unstructured.Unstructured, storage string) *unstructured.Unstructured {
	interim := desired.DeepCopy()
	interim.Object["spec"] = live.DeepCopy().Object["spec"]
	for _, version := range versionsOf(interim) {
		version["storage"] = nameOf(version) == storage
	}
	return interim
}

// WithVersionsOf is the desired CRD with the versions that only the live one has, which are not stored.
func WithVersionsOf(live, desired *unstructured.Unstructured) *unstructured.Unstructured {
	storage, _ := Versions(desired)
	all := desired.DeepCopy()
	versions := interimVersions(live.DeepCopy(), all, storage)
	for _, version := range versions {
		if fields, is := version.(map[string]any); is {
			fields["storage"] = nameOf(fields) == storage
		}
	}
	_ = unstructured.SetNestedSlice(all.Object, versions, "spec", "versions")
	return all
}

// clientConfig is what a CRD calls for conversions, without the certificates that are trusted.
func clientConfig(crd *unstructured.Unstructured) map[string]any {
	config, _, _ := unstructured.NestedMap(crd.Object, "spec", "conversion", "webhook", "clientConfig")
	delete(config, "caBundle")
	return config
}

// conversionOf is the conversion of a CRD, with its default.
func conversionOf(crd *unstructured.Unstructured) map[string]any {
	conversion, found, _ := unstructured.NestedMap(crd.Object, "spec", "conversion")
	if !found {
		return map[string]any{"strategy": "None"}
	}
	return conversion
}

// interimVersions are the versions of the desired CRD, and those that only the live one has.
func interimVersions(live, desired *unstructured.Unstructured, storage string) []any {
	former := map[string]map[string]any{}
	for _, version := range versionsOf(live) {
		former[nameOf(version)] = version
	}
	var versions []any
	for _, version := range versionsOf(desired) {
		name := nameOf(version)
		version["storage"] = name == storage
		if isServed(former[name]) {
			version["served"] = true
		}
		delete(former, name)
		versions = append(versions, version)
	}
	for _, name := range slices.Sorted(maps.Keys(former)) {
		versions = append(versions, former[name])
	}
	return versions
}

// sameWebhook tells whether both CRDs convert by the webhook at the same place; trust in its certificate may differ.
func sameWebhook(live, desired *unstructured.Unstructured) bool {
	a, b := ConversionService(live), ConversionService(desired)
	return a != nil && b != nil && *a == *b && webhookPath(live) == webhookPath(desired) && webhookPort(live) == webhookPort(desired)
}

func webhookPath(crd *unstructured.Unstructured) string {
	path, _, _ := unstructured.NestedString(crd.Object, "spec", "conversion", "webhook", "clientConfig", "service", "path")
	return path
}

const defaultWebhookPort = 443

func webhookPort(crd *unstructured.Unstructured) int64 {
	port, _, _ := unstructured.NestedFieldNoCopy(crd.Object, "spec", "conversion", "webhook", "clientConfig", "service", "port")
	switch port := port.(type) {
	case int64:
		return port
	case float64:
		return int64(port)
	}
	return defaultWebhookPort
}

func hasVersion(crd *unstructured.Unstructured, name string) bool {
	return name != "" && slices.ContainsFunc(versionsOf(crd), func(version map[string]any) bool { return nameOf(version) == name })
}
