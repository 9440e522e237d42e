// SPDX-License-Identifier: Apache-2.0

package digest

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/inventory/objectjson"
	"github.com/satchel-dev/satchel/internal/format"
)

// lastApplied is the annotation with kubectl's copy of what it applied, including the values of Secrets.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Content is the digest of a converted bundle, "sha256:" and 64 hexadecimal digits:
// of the objects as they come out of the conversion, whatever their order, and of the
// namespace of those without one. The values of Secrets are left out, but not their keys.
// What the cluster adds does not count: certificates, the owner's labels, the
// scope of kinds. So anyone with the bundle and the options computes the same without a
// cluster. The objects are not changed.
func Content(objects []*unstructured.Unstructured, installNamespace string) (string, error) {
	var encoder objectjson.Encoder
	var encoded []byte
	ends := make([]int, 0, len(objects))
	for _, object := range objects {
		var err error
		if encoded, err = encoder.Append(encoded, withoutValues(object)); err != nil {
			return "", fmt.Errorf("digesting %s: %w", inventory.IDOf(object), err)
		}
		ends = append(ends, len(encoded))
	}
	lines := make([][]byte, 0, len(objects))
	from := 0
	for _, end := range ends {
		lines = append(lines, encoded[from:end])
		from = end
	}
	slices.SortFunc(lines, bytes.Compare)
	namespace, err := json.Marshal(installNamespace)
	if err != nil {
		return "", fmt.Errorf("digesting the install namespace: %w", err)
	}
	sum := sha256.New()
	for i, line := range slices.Concat([][]byte{[]byte(format.Plan.Purpose("content")), namespace}, lines) {
		if i > 0 {
			sum.Write([]byte{'\n'})
		}
		sum.Write(line)
	}
	return digest.NewDigest(digest.SHA256, sum).String(), nil
}

// Of digests lines that contain no line ends.
func Of(lines ...string) string {
	return digest.FromString(strings.Join(lines, "\n")).String()
}

// withoutValues is the object, or for a Secret its parts that are not secret.
func withoutValues(object *unstructured.Unstructured) map[string]any {
	if !IsSecret(inventory.IDOf(object)) {
		return object.Object
	}
	bare := maps.Clone(object.Object)
	for _, field := range []string{"data", "stringData"} {
		if value, found := bare[field]; found {
			bare[field] = keysOf(value)
		}
	}
	metadata, _ := bare["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if _, found := annotations[lastApplied]; found {
		annotations, metadata = maps.Clone(annotations), maps.Clone(metadata)
		annotations[lastApplied], metadata["annotations"] = nil, annotations
		bare["metadata"] = metadata
	}
	return bare
}

// keysOf are the keys of a map without their values; nothing for other values.
func keysOf(value any) map[string]any {
	entries, _ := value.(map[string]any)
	bare := make(map[string]any, len(entries))
	for key := range entries {
		bare[key] = nil
	}
	return bare
}

// IsSecret tells whether the object is a Secret; its values appear in no digest.
func IsSecret(id inventory.ID) bool { return id.Group == "" && id.Kind == "Secret" }

// Material is the digest of a converted bundle, by its Content, of further inputs beside the bundle, by their digest, which
// may be empty, and of its Secrets, by an HMAC of the values: readers of the digest cannot guess them.
func Material(content, inputs string, objects []*unstructured.Unstructured, key []byte) (string, error) {
	var lines []string
	for _, object := range objects {
		if !IsSecret(inventory.IDOf(object)) {
			continue
		}
		line, err := json.Marshal(object.Object)
		if err != nil {
			return "", fmt.Errorf("digesting %s: %w", inventory.IDOf(object), err)
		}
		lines = append(lines, string(line))
	}
	slices.Sort(lines)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(strings.Join(lines, "\n")))
	parts := []string{format.Plan.Purpose("material"), content, hex.EncodeToString(mac.Sum(nil))}
	if inputs != "" {
		parts = append(parts, inputs)
	}
	return Of(parts...), nil
}

// Key is the digest of the parts of a plan that do not depend on what was there before.
func Key(material, terms string) string { return Of(format.Plan.Purpose("key"), material, terms) }

// Plan identifies a plan for its approval: the deployment, the key, the pruned objects in
// any order, and the digest of the plan that was executed before.
func Plan(uid, key, base string, pruned []inventory.ID) string {
	lines := make([]string, 0, len(pruned))
	for _, id := range pruned {
		lines = append(lines, fmt.Sprintf("%q", []string{id.Group, id.Kind, id.Namespace, id.Name}))
	}
	slices.Sort(lines)
	return Of(slices.Concat([]string{format.Plan.Purpose("plan"), uid, key, base}, slices.Compact(lines))...)
}
