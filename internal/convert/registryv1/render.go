// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/internal/convert/registryv1/bundle"
	"github.com/satchel-dev/satchel/internal/convert/registryv1/crd"
	"github.com/satchel-dev/satchel/internal/convert/registryv1/deploymentconfig"
)

// input is all that generators know.
type input struct {
	*bundle.Bundle
	Options
	config  *deploymentconfig.Config // nil for none
	targets []string                 // watched namespaces, sorted; one empty name means all
	// ports at which each deployment serves its webhooks; deployments without webhooks are missing
	ports map[string]map[servicePort]int32
	// namespaced custom resources of the bundle
	namespaced map[schema.GroupKind]bool
}

func newInput(b *bundle.Bundle, o Options, targets []string) *input {
	in := &input{Bundle: b, Options: o, targets: targets, ports: map[string]map[servicePort]int32{}, namespaced: map[schema.GroupKind]bool{}}
	wanted := map[string][]servicePort{}
	for _, w := range b.Webhooks() {
		wanted[w.DeploymentName] = append(wanted[w.DeploymentName], portOf(w))
	}
	for deployment, ports := range wanted {
		in.ports[deployment] = servicePorts(ports)
	}
	for _, m := range b.CRDs {
		if crd.Field(m, "scope") == "Namespaced" {
			in.namespaced[schema.GroupKind{Group: crd.Field(m, "group"), Kind: crd.Field(m, "names", "kind")}] = true
		}
	}
	return in
}

// served says whether a webhook is answered by the deployment.
func (in *input) served(deployment string) bool { return in.ports[deployment] != nil }

// generator makes one family of objects.
type generator struct {
	family   string
	generate func(*input) ([]manifest.Manifest, []manifest.Problem)
	bundled  bool // it passes on what the bundle contains
}

// generators in the order in which objects are emitted (O1).
var generators = []generator{
	{family: "service accounts", generate: generateServiceAccounts},
	{family: "permissions", generate: generatePermissions},
	{family: "cluster permissions", generate: generateClusterPermissions},
	{family: "API cluster roles", generate: generateAPIClusterRoles},
	{family: "custom resource definitions", generate: generateCRDs, bundled: true},
	{family: "other objects", generate: generateOthers, bundled: true},
	{family: "deployments", generate: generateDeployments},
	{family: "validating webhooks", generate: generateValidatingWebhooks},
	{family: "mutating webhooks", generate: generateMutatingWebhooks},
	{family: "webhook services", generate: generateWebhookServices},
	{family: "certificates", generate: generateCertificates},
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
	return manifest.Manifest{File: in.Source.File, Document: in.Source.Document, Object: &unstructured.Unstructured{Object: object}}
}
