// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"encoding/base64"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// InjectAnnotation on an object that trusts a certificate names the Secret as namespace/name. Rendering sets it.
const InjectAnnotation = "satchel.dev/inject-ca-from"

const (
	admission     = "admissionregistration.k8s.io"
	apiextensions = "apiextensions.k8s.io"
)

// trusting are the kinds that can trust a certificate: their resource, and how to find the webhook clients
// of an object, which are mappings that may hold service and caBundle.
var trusting = map[schema.GroupKind]struct {
	resource schema.GroupVersionResource
	clients  func(object map[string]any) []map[string]any
}{
	{Group: admission, Kind: "ValidatingWebhookConfiguration"}: {
		schema.GroupVersionResource{Group: admission, Version: "v1", Resource: "validatingwebhookconfigurations"}, admissionClients,
	},
	{Group: admission, Kind: "MutatingWebhookConfiguration"}: {
		schema.GroupVersionResource{Group: admission, Version: "v1", Resource: "mutatingwebhookconfigurations"}, admissionClients,
	},
	{Group: apiextensions, Kind: "CustomResourceDefinition"}: {
		schema.GroupVersionResource{Group: apiextensions, Version: "v1", Resource: "customresourcedefinitions"}, conversionClients,
	},
}

// Resource is the resource of an object that Trusts a certificate; all of them are cluster-scoped.
func Resource(object *unstructured.Unstructured) schema.GroupVersionResource {
	return trusting[object.GroupVersionKind().GroupKind()].resource
}

func admissionClients(object map[string]any) []map[string]any {
	hooks, _ := object["webhooks"].([]any)
	var out []map[string]any
	for _, hook := range hooks {
		out = append(out, at(hook, "clientConfig"))
	}
	return out
}

func conversionClients(object map[string]any) []map[string]any {
	return []map[string]any{at(object, "spec", "conversion", "webhook", "clientConfig")}
}

// at is the mapping at a path, nil where there is none.
func at(value any, path ...string) map[string]any {
	for _, step := range path {
		mapping, _ := value.(map[string]any)
		value = mapping[step]
	}
	mapping, _ := value.(map[string]any)
	return mapping
}

// serviceClients are the webhook clients of an object that call a Service, as all do that a deployment itself serves.
func serviceClients(object *unstructured.Unstructured) []map[string]any {
	kind, known := trusting[object.GroupVersionKind().GroupKind()]
	if !known {
		return nil
	}
	return slices.DeleteFunc(kind.clients(object.Object), func(client map[string]any) bool { return client["service"] == nil })
}

// Trusts tells whether an object declares that it trusts the certificate of one of the Secrets.
func Trusts(object *unstructured.Unstructured, wanted []Request) bool {
	if len(wanted) == 0 {
		return false
	}
	from := object.GetAnnotations()[InjectAnnotation]
	named := slices.ContainsFunc(wanted, func(r Request) bool { return from == r.Namespace+"/"+r.Secret })
	return named && len(serviceClients(object)) > 0
}

// Inject returns a copy of an object with webhook clients that trust the authorities of bundle, a PEM file; or the object itself
// where no client needs it.
func Inject(object *unstructured.Unstructured, bundle []byte) *unstructured.Unstructured {
	if len(serviceClients(object)) == 0 {
		return object
	}
	filled := object.DeepCopy()
	for _, client := range serviceClients(filled) {
		client["caBundle"] = base64.StdEncoding.EncodeToString(bundle)
	}
	return filled
}

// Bundle is the bundle that the webhook clients of a live object trust, or the first of them where they differ; nil where they
// trust none.
func Bundle(live *unstructured.Unstructured) []byte {
	clients := serviceClients(live)
	if len(clients) == 0 {
		return nil
	}
	text, _ := clients[0]["caBundle"].(string)
	bundle, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil // the API server encodes it
	}
	return bundle
}

// Carries tells whether each webhook client of a live object trusts every authority of bundle, and possibly others. An
// object without clients carries everything: it cannot fail.
func Carries(live *unstructured.Unstructured, bundle []byte) bool {
	wanted := readCertificates(bundle)
	for _, client := range serviceClients(live) {
		text, _ := client["caBundle"].(string)
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return false
		}
		carried := readCertificates(raw)
		for _, cert := range wanted {
			if !slices.ContainsFunc(carried, cert.Equal) {
				return false
			}
		}
	}
	return true
}
