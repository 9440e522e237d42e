// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/digest"
	"github.com/satchel-dev/satchel/internal/apply/plan/ignore"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/plan/pruning"
	"github.com/satchel-dev/satchel/internal/format"
)

// Terms are the settings, beside the content, that decide what a plan does: the account, the target,
// and what it may delete or adopt. Pruning counts with its limit. A setting that is not used is left out of the digest, so that
// another version with more settings has the same digests.
type Terms struct {
	Account          string               `json:",omitempty"`
	RemoteAccount    string               `json:",omitempty"`
	KubeConfig       string               `json:",omitempty"`
	KubeConfigReach  string               `json:",omitempty"` // keyed hashes of the server, its authorities and the user
	Target           string               `json:",omitempty"`
	CreateNamespace  bool                 `json:",omitempty"`
	Pruning          pruning.Policy       `json:",omitzero"`
	Protection       ownership.Protection `json:",omitempty"`
	Recreate         bool                 `json:",omitempty"`
	UpgradeSafety    Enforcement          `json:",omitempty"`
	Exempt           []string             `json:",omitempty"`
	Ignore           []ignore.Rule        `json:",omitempty"`
	InstallNamespace string               `json:",omitempty"`
}

// Digest of the terms.
func (t Terms) Digest() (string, error) {
	data, err := json.Marshal(t)
	if err != nil {
		return "", fmt.Errorf("digesting the terms of a plan: %w", err)
	}
	return digest.Of(format.Plan.Purpose("terms"), string(data)), nil
}

// Pruned are the objects that left the bundle and that the plan deletes or releases, or
// would without the limit. Sorted.
func (p Plan) Pruned() []inventory.ID {
	return p.removed(func(d Deletion) bool { return d.Deletes() || d.How == Release })
}

// Destroys are the objects that the plan deletes, or would without the limit, except those
// with a deletion that the inventory records as allowed before. Sorted.
func (p Plan) Destroys(previous inventory.Inventory) []inventory.ID {
	return p.removed(func(d Deletion) bool {
		entry, _ := previous.Get(d.ID)
		return d.Deletes() && entry.Mark != inventory.Leaving
	})
}

// removed are the objects of deletions that count, and those beyond the limit. Sorted.
func (p Plan) removed(counts func(Deletion) bool) []inventory.ID {
	var ids []inventory.ID
	for _, stage := range slices.Concat(p.PruneFirst, p.Prune) {
		for _, deletion := range stage.Deletions {
			if !deletion.RunOnce && counts(deletion) {
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
