// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/controller/step"
)

// lost tells that an inventory may have been lost, as in a restore from a backup: the
// deployment was worked on before, for it has the finalizer, and lists nothing, not
// even its cluster.
func (s *state) lost() bool {
	return s.before.Status.Inventory == nil && controllerutil.ContainsFinalizer(s.before, v1alpha1.Finalizer)
}

// recover looks for the objects of a deployment whose inventory was lost, by their
// labels, before anything is pruned or removed. What it finds is listed beside what
// was applied last, if that is known. It happens once: from then on the inventory is
// in the status.
func (r *Reconciler) recover(ctx context.Context, s *state) (step.Outcome, error) {
	if s.lost() && s.client != nil {
		namespaces := []string{s.object.Namespace, s.object.InstallNamespaceOrDefault()}
		for _, entry := range s.previous.Entries {
			namespaces = append(namespaces, entry.Namespace)
		}
		slices.Sort(namespaces)
		namespaces = slices.DeleteFunc(slices.Compact(namespaces), func(name string) bool { return name == "" })
		found, err := apply.Recover(ctx, s.client, s.owner, namespaces...)
		if err != nil {
			return step.Stop, err
		}
		s.previous = s.previous.Union(inventory.New(s.previous.Target, found.Entries...))
		if len(found.Entries) > 0 {
			s.noted, s.recovered = false, &found
		}
	}
	if s.object.Status.Inventory != nil {
		return step.Continue, nil
	}
	return step.Continue, s.record(s.previous)
}

// emitRecovered records that an inventory was rebuilt, and what of it is not known.
func (r *Reconciler) emitRecovered(s *state) {
	if s.recovered == nil {
		return
	}
	note := fmt.Sprintf("the inventory was lost; %d objects were found by their labels", len(s.recovered.Entries))
	if unseen := s.recovered.Unseen; len(unseen) > 0 {
		note += "; where the account may not list them everywhere, these kinds were looked for in known namespaces only, or not at all: " + strings.Join(unseen, ", ")
	}
	r.normal(s, "InventoryRebuilt", "Recover", note)
}
