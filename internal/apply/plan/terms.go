// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// Terms are the settings, beside the content, that decide what a plan does: the account, the target,
// and what it may delete or adopt. Pruning counts with its limit.
type Terms struct {
	Account          string
	RemoteAccount    string
	KubeConfig       string
	Target           string
	CreateNamespace  bool
	Pruning          Pruning
	Protection       Protection
	Recreate         bool
	UpgradeSafety    Enforcement
	Exempt           []string
	Ignore           []IgnoreRule
	InstallNamespace string
}

// Digest of the terms.
func (t Terms) Digest() (string, error) {
	data, err := json.Marshal(t)
	if err != nil {
		return "", fmt.Errorf("digesting the terms of a plan: %w", err)
	}
	return digestOf("satchel.dev/terms/v1", string(data)), nil
}

// Material is the digest of a converted bundle, by its Content, of further inputs beside the bundle, by their digest, which
// may be empty, and of its Secrets, by an HMAC of the values: readers of the digest cannot guess them.
func Material(content, inputs string, objects []*unstructured.Unstructured, key []byte) (string, error) {
	var lines []string
	for _, object := range objects {
		if !isSecret(inventory.IDOf(object)) {
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
	parts := []string{"satchel.dev/material/v1", content, hex.EncodeToString(mac.Sum(nil))}
	if inputs != "" {
		parts = append(parts, inputs)
	}
	return digestOf(parts...), nil
}

// Key is the digest of the parts of a plan that do not depend on what was there before.
func Key(material, terms string) string { return digestOf("satchel.dev/key/v1", material, terms) }

// Digest identifies a plan for its approval: the deployment, the key, the pruned objects in
// any order, and the digest of the plan that was executed before.
func Digest(uid, key, base string, pruned []inventory.ID) string {
	lines := make([]string, 0, len(pruned))
	for _, id := range pruned {
		lines = append(lines, fmt.Sprintf("%q", []string{id.Group, id.Kind, id.Namespace, id.Name}))
	}
	slices.Sort(lines)
	return digestOf(slices.Concat([]string{"satchel.dev/plan/v1", uid, key, base}, slices.Compact(lines))...)
}

// Pruned are the objects that left the bundle and that the plan deletes or releases, or
// would without the limit. Sorted.
func (p Plan) Pruned() []inventory.ID {
	var ids []inventory.ID
	for _, stage := range slices.Concat(p.PruneFirst, p.Prune) {
		for _, deletion := range stage.Deletions {
			if (deletion.Deletes() || deletion.How == Release) && !deletion.RunOnce {
				ids = append(ids, deletion.ID)
			}
		}
	}
	if p.Held != nil {
		ids = append(ids, p.Held.Objects...)
	}
	slices.SortFunc(ids, inventory.ID.Compare)
	return ids
}

// Destroys are the objects that the plan deletes, or would without the limit, except those
// with a deletion that the inventory records as allowed before. Sorted.
func (p Plan) Destroys(previous inventory.Inventory) []inventory.ID {
	var ids []inventory.ID
	for _, stage := range slices.Concat(p.PruneFirst, p.Prune) {
		for _, deletion := range stage.Deletions {
			if entry, _ := previous.Get(deletion.ID); deletion.Deletes() && !deletion.RunOnce && entry.Mark != inventory.Leaving {
				ids = append(ids, deletion.ID)
			}
		}
	}
	if p.Held != nil {
		ids = append(ids, p.Held.Objects...)
	}
	slices.SortFunc(ids, inventory.ID.Compare)
	return ids
}
