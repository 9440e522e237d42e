// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// input is all that generators know.
type input struct {
	*Bundle
	Options
	targets []string // watched namespaces, sorted; one empty name means all
}

// generator makes one family of objects.
type generator struct {
	family   string
	generate func(*input) ([]manifest.Manifest, []manifest.Problem)
}

// generators in the order in which objects are emitted (O1).
var generators = []generator{
	{"service accounts", generateServiceAccounts},
	{"permissions", generatePermissions},
	{"cluster permissions", generateClusterPermissions},
	{"API cluster roles", generateAPIClusterRoles},
	{"custom resource definitions", generateCRDs},
	{"other objects", generateOthers},
	{"deployments", generateDeployments},
	{"validating webhooks", generateValidatingWebhooks},
	{"mutating webhooks", generateMutatingWebhooks},
	{"webhook services", generateWebhookServices},
	{"certificates", generateCertificates},
}

// all says whether every namespace is watched.
func (in *input) all() bool { return slices.Equal(in.targets, []string{""}) }

// namespaces must exist before the objects are applied.
func (in *input) namespaces() []string {
	out := []string{in.InstallNamespace}
	if !in.all() {
		out = append(out, in.targets...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// object is a generated one; for problems it belongs to the CSV's file. content is taken over.
func (in *input) object(apiVersion, kind, namespace, name string, content map[string]any) manifest.Manifest {
	metadata := map[string]any{"name": name}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	object := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}
	for key, value := range content {
		object[key] = value
	}
	return manifest.Manifest{File: in.csv.File, Document: in.csv.Document, Object: &unstructured.Unstructured{Object: object}}
}
