// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// kindsVariable says how many kinds the bundle has: 1 without it, at most 10.
const kindsVariable = "SATCHEL_FLEET_KINDS"

// kindCount is how many kinds the bundle has: ConfigMaps, and one object of each further kind.
type kindCount int

// furtherKinds are manifests of kinds of which an object is healthy as soon as it exists, and needs no controller.
var furtherKinds = []string{
	`{apiVersion: v1, kind: Secret, metadata: %s}`,
	`{apiVersion: v1, kind: ServiceAccount, metadata: %s}`,
	`{apiVersion: v1, kind: LimitRange, metadata: %s, spec: {limits: [{type: Container, max: {cpu: "8"}}]}}`,
	`{apiVersion: v1, kind: PodTemplate, metadata: %s, template: {spec: {containers: [{name: c, image: "example.org/c:1"}]}}}`,
	`{apiVersion: v1, kind: Service, metadata: %s, spec: {clusterIP: None, selector: {app: shop}}}`,
	`{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: %s, spec: {podSelector: {}}}`,
	`{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: %s}`,
	`{apiVersion: apps/v1, kind: ControllerRevision, metadata: %s, revision: 1, data: {shop: 1}}`,
	`{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: %s, addressType: IPv4, endpoints: []}`,
}

func kindsOfBundle(t *testing.T) kindCount {
	t.Helper()
	text := os.Getenv(kindsVariable)
	if text == "" {
		return 1
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 1+len(furtherKinds) {
		t.Fatalf("%s is %q: it has to be a number from 1 to %d", kindsVariable, text, 1+len(furtherKinds))
	}
	return kindCount(n)
}

// manifests are those of the further kinds. Their annotation version names the version.
func (n kindCount) manifests(version string) []string {
	var all []string
	for _, manifest := range furtherKinds[:n-1] {
		all = append(all, fmt.Sprintf(manifest, fmt.Sprintf(`{name: shop, annotations: {version: %q}}`, version)))
	}
	return all
}

// objects are names of one object of each kind in a namespace.
func (n kindCount) objects(namespace string) []*unstructured.Unstructured {
	all := []*unstructured.Unstructured{{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}}
	all[0].SetName("shop-1")
	for _, manifest := range n.manifests("") {
		one := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(manifest), &one.Object); err != nil {
			panic(err) // the manifests above are YAML
		}
		all = append(all, one)
	}
	for _, one := range all {
		one.SetNamespace(namespace)
	}
	return all
}

// versionOf is the version that an object of the bundle names.
func versionOf(object *unstructured.Unstructured) string {
	if version, found, err := unstructured.NestedString(object.Object, "data", "version"); found && err == nil {
		return version
	}
	return object.GetAnnotations()["version"]
}
