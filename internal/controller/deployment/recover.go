// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/observe"
	"github.com/satchel-dev/satchel/internal/controller/deployment/snapshot"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// lost tells that an inventory may have been lost, as in a restore from a backup: the
// deployment was reconciled before, since it has the finalizer, but its inventory is
// missing or cannot be read.
func (s *state) lost() bool {
	return !s.hasInventory() && controllerutil.ContainsFinalizer(s.before, v1alpha1.Finalizer)
}

// hasInventory tells that the status has an inventory.
func (s *state) hasInventory() bool { return s.before.Status.Inventory != nil && !s.listed.unreadable }

// recover rebuilds a lost inventory: it finds the objects of the deployment by their
// labels, before anything is pruned or removed. They are listed beside what was applied
// last, if that is known, and stored with the status, whatever the outcome of this
// reconcile. If none is found, an empty inventory is stored, so that the search is not
// repeated.
func (r *Reconciler) recover(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if s.hasInventory() || !s.lost() {
		return pipeline.Continue, nil
	}
	found, err := observe.Recover(ctx, s.resolved.access.Client, s.owner, s.knownNamespaces()...)
	if err != nil {
		return pipeline.Stop, err
	}
	if len(found.Entries) > 0 {
		s.noted, s.listed.recovered = false, &found
	}
	if err := s.record(s.listed.inventory.Union(inventory.New(s.listed.inventory.Target, found.Entries...))); err != nil {
		return pipeline.Continue, err
	}
	s.object.Status.Inventory.Recovered = s.listed.inventory.Len() > 0
	return pipeline.Continue, nil
}

// beginInventory stores an empty inventory with the first status, whatever the outcome
// of the reconcile: without it, a deployment without objects would look like one that
// lost its status. It names this cluster; for another one see target.
func (r *Reconciler) beginInventory(ctx context.Context, s *state) error {
	if s.object.Status.Inventory != nil {
		return nil
	}
	if _, applied, err := snapshot.Read(r.Snapshots, string(s.object.UID)); err != nil || applied {
		return err // the status was lost, and the finalizer too
	}
	s.object.Status.Inventory = &v1alpha1.Inventory{}
	if s.object.Spec.KubeConfig != nil {
		return nil
	}
	target, err := r.Tenants.Target(ctx)
	s.object.Status.Inventory.Target = target
	return err
}

// knownNamespaces are those in which the deployment has, or may have, objects.
func (s *state) knownNamespaces() []string {
	names := []string{s.object.Namespace, s.object.InstallNamespaceOrDefault()}
	for _, entry := range s.listed.inventory.Entries {
		if entry.Namespace != "" {
			names = append(names, entry.Namespace)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// emitRecovered emits that an inventory was rebuilt, and which kinds could not be
// searched everywhere.
func (r *Reconciler) emitRecovered(s *state) {
	if s.listed.recovered == nil {
		return
	}
	why := "was lost"
	if s.listed.unreadable {
		why = "could not be read"
	}
	note := fmt.Sprintf("the inventory %s; %d objects were found by their labels", why, len(s.listed.recovered.Entries))
	if unseen := s.listed.recovered.Unseen; len(unseen) > 0 {
		note += "; the ServiceAccount may not list these kinds in all namespaces, so they were looked for in known namespaces only, or not at all: " + strings.Join(unseen, ", ")
	}
	r.normal(s, "InventoryRebuilt", "Recover", note)
}
