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
	return !s.hasInventory() && controllerutil.ContainsFinalizer(s.Before, v1alpha1.Finalizer)
}

// hasInventory tells that the status has an inventory.
func (s *state) hasInventory() bool { return s.Before.Status.Inventory != nil && !s.listed.Unreadable }

// recover rebuilds a lost inventory: it finds the objects of the deployment by their
// labels, before anything is pruned or removed. They are listed beside what was applied
// last, if that is known, and stored with the status, whatever the outcome of this
// reconcile. If none is found, an empty inventory is stored, so that the search is not
// repeated.
func (r *Reconciler) recover(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if s.hasInventory() || !s.lost() {
		return pipeline.Continue, nil
	}
	found, err := observe.Recover(ctx, s.resolved.Access.Client, s.Owner, s.knownNamespaces()...)
	if err != nil {
		return pipeline.Stop, err
	}
	if len(found.Entries) > 0 {
		s.note.Known, s.listed.Recovered = false, &found
	}
	if err := s.listed.Record(&s.Subject, s.listed.Inventory.Union(inventory.New(s.listed.Inventory.Target, found.Entries...))); err != nil {
		return pipeline.Continue, err
	}
	s.Object.Status.Inventory.Recovered = s.listed.Inventory.Len() > 0
	return pipeline.Continue, nil
}

// beginInventory stores an empty inventory with the first status, whatever the outcome
// of the reconcile: without it, a deployment without objects would look like one that
// lost its status. It names this cluster; for another one see target.
func (r *Reconciler) beginInventory(ctx context.Context, s *state) error {
	if s.Object.Status.Inventory != nil {
		return nil
	}
	if _, applied, err := snapshot.Read(r.Snapshots, string(s.Object.UID)); err != nil || applied {
		return err // the status was lost, and the finalizer too
	}
	s.Object.Status.Inventory = &v1alpha1.Inventory{}
	if s.Object.Spec.KubeConfig != nil {
		return nil
	}
	target, err := r.Tenants.Target(ctx)
	s.Object.Status.Inventory.Target = target
	return err
}

// knownNamespaces are those in which the deployment has, or may have, objects.
func (s *state) knownNamespaces() []string {
	names := []string{s.Object.Namespace, s.Object.InstallNamespaceOrDefault()}
	for _, entry := range s.listed.Inventory.Entries {
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
	if s.listed.Recovered == nil {
		return
	}
	why := "was lost"
	if s.listed.Unreadable {
		why = "could not be read"
	}
	note := fmt.Sprintf("the inventory %s; %d objects were found by their labels", why, len(s.listed.Recovered.Entries))
	if unseen := s.listed.Recovered.Unseen; len(unseen) > 0 {
		note += "; the ServiceAccount may not list these kinds in all namespaces, so they were looked for in known namespaces only, or not at all: " + strings.Join(unseen, ", ")
	}
	r.normal(s, "InventoryRebuilt", "Recover", note)
}
