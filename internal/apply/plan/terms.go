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
)

// Terms are the settings, beside the content, that decide what a plan does: the account, the target,
// and what it may delete or adopt. Pruning counts with its limit.
type Terms struct {
	Account          string
	RemoteAccount    string
	KubeConfig       string
	KubeConfigReach  string // keyed hashes of the server, its authorities and the user
	Target           string
	CreateNamespace  bool
	Pruning          pruning.Policy
	Protection       ownership.Protection
	Recreate         bool
	UpgradeSafety    Enforcement
	Exempt           []string
	Ignore           []ignore.Rule
	InstallNamespace string
}

// Digest of the terms.
func (t Terms) Digest() (string, error) {
	data, err := json.Marshal(t)
	if err != nil {
		return "", fmt.Errorf("digesting the terms of a plan: %w", err)
	}
	return digest.Of("satchel.dev/terms/v1", string(data)), nil
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
