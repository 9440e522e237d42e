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

// Terms are what, beside the content, decides what a plan does: as whom, where, and what
// it may destroy or take. Pruning counts with its limit.
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

// Material is the digest of what a bundle became, by its Content, by the digest of what went into it beside the bundle, which
// may be empty, and by its Secrets, of which the values count by a hash with a key: whoever reads the digest cannot guess them.
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

// Key is the digest of all of a plan that does not depend on what was there before.
func Key(material, terms string) string { return digestOf("satchel.dev/key/v1", material, terms) }

// Digest is what an approval of a plan is of: the deployment, the key, what it lets go,
// whatever the order, and the digest of the plan that was carried out before.
func Digest(uid, key, base string, letsGo []inventory.ID) string {
	lines := make([]string, 0, len(letsGo))
	for _, id := range letsGo {
		lines = append(lines, fmt.Sprintf("%q", []string{id.Group, id.Kind, id.Namespace, id.Name}))
	}
	slices.Sort(lines)
	return digestOf(slices.Concat([]string{"satchel.dev/plan/v1", uid, key, base}, slices.Compact(lines))...)
}

// LetsGo are the objects that left the bundle and that the plan deletes or gives up, or
// would if that was not held. Sorted.
func (p Plan) LetsGo() []inventory.ID {
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

// Destroys are the objects that the plan deletes, or would if that was not held, and of
// which the inventory does not say that their deletion was allowed before. Sorted.
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
