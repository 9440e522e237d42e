// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/observe"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/deployment/snapshot"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/format"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// FindAccount gets the client that impersonates the deployment's ServiceAccount.
func (st *Stage) FindAccount(ctx context.Context, in *Input) (pipeline.Outcome, error) {
	var err error
	if in.Resolved.Access, err = st.Accounts.Find(ctx, in.Object); err != nil {
		return pipeline.Stop, err
	}
	return pipeline.Continue, nil
}

// FindAccountToRemove is FindAccount for a removal: see Accounts.FindToRemove.
func (st *Stage) FindAccountToRemove(ctx context.Context, in *Input) (pipeline.Outcome, error) {
	var err error
	if in.Resolved.Access, err = st.Accounts.FindToRemove(ctx, in.Object, st.Approvals.Proven(in.Object)); err != nil {
		return pipeline.Stop, err
	}
	return pipeline.Continue, nil
}

// Target reads the inventory and checks that its objects are in the current target
// cluster.
func (st *Stage) Target(ctx context.Context, in *Input) (pipeline.Outcome, error) {
	current, err := st.Accounts.Identify(ctx, in.Resolved.Access)
	if err != nil {
		return pipeline.Stop, err
	}
	listed, err := st.ReadInventory(in)
	in.Listed.Set(listed)
	if err != nil {
		return pipeline.Stop, failure.Error{Reason: v1alpha1.ReasonFailed, Stalled: true, Err: err}
	}
	if listed.Target() != "" && listed.Target() != current && (listed.Len() > 0 || in.Listed.Unreadable) {
		return pipeline.Stop, failure.Error{Reason: v1alpha1.ReasonTargetChanged, Stalled: true, Err: fmt.Errorf(
			"the objects of the inventory are in the cluster %s, and this is %s: nothing is applied or pruned here; if the objects in the old cluster do not matter, %s",
			listed.Target(), current, WayOut(in.Object))}
	}
	in.Listed.Set(listed.In(current))
	in.Object.Status.Internal.Server = st.Approvals.ServerOf(in.Object.Namespace, in.Resolved.Access.Reach)
	if stored := in.Object.Status.Inventory; stored != nil && stored.Target == "" && !in.Listed.Unreadable {
		return pipeline.Continue, in.Listed.Record(in.Subject, in.Listed.Inventory())
	}
	return pipeline.Continue, nil
}

// Accept stops a deployment with an invalid spec, before anything is loaded for it. Drift of its applied revision is still
// corrected.
func (st *Stage) Accept(_ context.Context, in *Input) (pipeline.Outcome, error) {
	err := effective.SizeProblem(in.Object)
	if err == nil {
		err = effective.Problem(&in.Object.Spec)
	}
	if err == nil {
		err = spec.CheckSelectors(in.Object)
	}
	if err != nil {
		return pipeline.Stop, failure.Error{Reason: v1alpha1.ReasonInvalidSpec, Stalled: true, Err: err}
	}
	return pipeline.Continue, nil
}

// ReadInventory reads the status. If that was lost, as in a restore from a backup, was written by another
// version of Satchel, or cannot be read during a deletion, the snapshot is used instead, so that nothing is
// orphaned; see recover for further objects.
func (st *Stage) ReadInventory(in *Input) (inventory.Current, error) {
	if in.Object.Status.Inventory != nil {
		listed, err := in.Kept.Decode(in.Object.Status.Inventory)
		if err == nil {
			return listed, nil
		}
		var another *format.AnotherVersionError
		if in.Object.DeletionTimestamp.IsZero() && !errors.As(err, &another) {
			return inventory.Current{}, fmt.Errorf("reading status.inventory: %w", err)
		}
		in.Listed.Unreadable = true
	}
	last, found, err := snapshot.Read(st.Snapshots, string(in.Object.UID))
	if snapshot.Unusable(err) || err == nil && !found && len(last.Begun) == 0 {
		return inventory.CurrentOf(in.unlisted()), nil
	}
	if err != nil {
		return inventory.CurrentOf(in.unlisted()), err
	}
	in.Note.Known = false // compare with the cluster in any case
	if in.Object.Status.Applied.Revision == "" {
		in.Object.Status.Applied.Revision = last.Revision
	}
	return inventory.CurrentOf(last.Inventory(in.AuthorityID())), nil
}

// unlisted is an empty inventory; if the one in the status cannot be read, with its
// cluster.
func (in *Input) unlisted() inventory.Inventory {
	if !in.Listed.Unreadable {
		return inventory.Inventory{}
	}
	return inventory.New(in.Object.Status.Inventory.Target)
}

// Lost tells that an inventory may have been lost, as in a restore from a backup: the
// deployment was reconciled before, since it has the finalizer, but its inventory is
// missing or cannot be read.
func (in *Input) Lost() bool {
	return !in.hasInventory() && controllerutil.ContainsFinalizer(in.Before, v1alpha1.Finalizer)
}

// hasInventory tells that the status has an inventory.
func (in *Input) hasInventory() bool {
	return in.Before.Status.Inventory != nil && !in.Listed.Unreadable
}

// Recover rebuilds a lost inventory: it finds the objects of the deployment by their
// labels, before anything is pruned or removed. They are listed beside what was applied
// last, if that is known, and stored with the status, whatever the outcome of this
// reconcile. If none is found, an empty inventory is stored, so that the search is not
// repeated.
func (st *Stage) Recover(ctx context.Context, in *Input) (pipeline.Outcome, error) {
	if in.hasInventory() || !in.Lost() {
		return pipeline.Continue, nil
	}
	found, err := observe.Recover(ctx, in.Resolved.Access.Client, in.Owner, in.knownNamespaces()...)
	if err != nil {
		return pipeline.Stop, err
	}
	if len(found.Entries) > 0 {
		in.Note.Known, in.Listed.Recovered = false, &found
	}
	if err := in.Listed.Record(in.Subject, in.Listed.Inventory().Union(inventory.New(in.Listed.Current().Target(), found.Entries...))); err != nil {
		return pipeline.Continue, err
	}
	in.Object.Status.Inventory.Recovered = in.Listed.Current().Len() > 0
	return pipeline.Continue, nil
}

// BeginInventory stores an empty inventory with the first status, whatever the outcome
// of the reconcile: without it, a deployment without objects would look like one that
// Lost its status. It names this cluster; for another one see target.
func (st *Stage) BeginInventory(ctx context.Context, in *Input) error {
	if in.Object.Status.Inventory != nil {
		return nil
	}
	switch _, applied, err := snapshot.Read(st.Snapshots, string(in.Object.UID)); {
	case applied, snapshot.Unusable(err):
		return nil // the status was lost, and the finalizer too
	case err != nil:
		return err
	}
	in.Object.Status.Inventory = &v1alpha1.Inventory{}
	if effective.IsRemote(in.Object.Spec.Target.ClusterReference) {
		return nil
	}
	target, err := st.Accounts.Tenants.Target(ctx)
	in.Object.Status.Inventory.Target = target
	return err
}

// knownNamespaces are those in which the deployment has, or may have, objects.
func (in *Input) knownNamespaces() []string {
	names := []string{in.Object.Namespace, effective.InstallNamespace(in.Object)}
	for _, entry := range in.Listed.Inventory().Entries {
		if entry.Namespace != "" {
			names = append(names, entry.Namespace)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
