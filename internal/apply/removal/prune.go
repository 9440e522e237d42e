// SPDX-License-Identifier: Apache-2.0

package removal

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/crds"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/apply/observe"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/storageversion"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/apply/write"
)

// Remaining is an object that is not gone yet, and why.
type Remaining struct {
	inventory.ID
	Reason string
}

// String is the object for people.
func (r Remaining) String() string { return r.ID.String() + " " + r.Reason }

// Pruned is the result of deleting or releasing objects. Objects that are not Gone stay in
// the inventory.
type Pruned struct {
	// Gone objects leave the inventory: deleted, released, or never ours.
	Gone []inventory.ID
	// Deleted is how many objects were really deleted, or began to terminate;
	// DeletedIDs are those.
	Deleted    int
	DeletedIDs []inventory.ID
	// Orphaned are those of the Gone objects that stay, annotated as orphaned.
	Orphaned []inventory.ID
	// HandedOver names the deployments to which objects were released.
	HandedOver []string
	// Waiting objects are terminating, or were changing; try again.
	Waiting []Remaining
	// Denied objects could not be deleted.
	Denied []*objecterror.Error
	// Notes tell what was kept or left alone on purpose, and why.
	Notes []string
}

// Complete tells that everything went.
func (p Pruned) Complete() bool { return len(p.Waiting) == 0 && len(p.Denied) == 0 }

// Add adds the result of further objects.
func (p *Pruned) Add(more Pruned) {
	p.Gone = append(p.Gone, more.Gone...)
	p.Deleted += more.Deleted
	p.DeletedIDs = append(p.DeletedIDs, more.DeletedIDs...)
	p.Orphaned = append(p.Orphaned, more.Orphaned...)
	p.HandedOver = append(p.HandedOver, more.HandedOver...)
	p.Waiting = append(p.Waiting, more.Waiting...)
	p.Denied = append(p.Denied, more.Denied...)
	p.Notes = append(p.Notes, more.Notes...)
}

// Prune deletes or releases the objects, stage by stage. Each is deleted only in the state
// in which it was read as the owner's. It does not block: where a stage is
// awaited and not gone yet, the rest is left to the next call. An error means that
// the context ended; the result is valid beside it.
func Prune(ctx context.Context, client *tenant.Client, owner inventory.Owner, stages []plan.DeletionStage, o Options) (Pruned, error) {
	o = o.defaulted()
	pruned := Pruned{}
	for _, stage := range stages {
		pruned.stage(ctx, client, owner, stage, o)
		if err := ctx.Err(); err != nil {
			return pruned, fmt.Errorf("deleting stage %q: %w", stage.Name, err)
		}
		if stage.Awaited && len(pruned.Waiting) > 0 {
			break
		}
	}
	return pruned, nil
}

func (p *Pruned) stage(ctx context.Context, client *tenant.Client, owner inventory.Owner, stage plan.DeletionStage, o Options) {
	for i, end := range parallel.Each(ctx, o.Parallelism, stage.Deletions, o.deleter(client, owner).object) {
		id := stage.Deletions[i].ID
		switch {
		case end.denied != nil:
			p.Denied = append(p.Denied, end.denied)
		case end.waiting != "":
			p.Waiting = append(p.Waiting, Remaining{ID: id, Reason: end.waiting})
		case end.gone:
			p.Gone = append(p.Gone, id)
		}
		if end.deleted {
			p.Deleted++
			p.DeletedIDs = append(p.DeletedIDs, id)
		}
		if end.orphaned {
			p.Orphaned = append(p.Orphaned, id)
		}
		if end.handed != "" {
			p.HandedOver = append(p.HandedOver, end.handed)
		}
		if end.note != "" {
			p.Notes = append(p.Notes, id.String()+" "+end.note)
		}
	}
}

// end is the result for one object; zero when it was not begun.
type end struct {
	gone, deleted bool
	orphaned      bool   // gone from the inventory, and stays
	handed        string // the deployment that it was released to
	waiting, note string
	denied        *objecterror.Error
}

// deleter deletes and releases objects as the tenant.
type deleter struct {
	client   *tenant.Client
	owner    inventory.Owner
	limit    int
	migrator storageversion.Migrator
	handOver func(inventory.ID) (to, waits string)
}

func (d deleter) object(ctx context.Context, deletion plan.Deletion) end {
	switch deletion.How {
	case plan.Forget:
		return end{gone: true, note: deletion.Note}
	case plan.Await:
		return end{waiting: deletion.Reason}
	case plan.Keep:
		return end{denied: &objecterror.Error{ID: deletion.ID, Reason: "Forbidden", Message: "cannot be looked at: " + deletion.Reason}}
	case plan.Release:
		return d.release(ctx, deletion)
	}
	switch to, waits := d.handOver(deletion.ID); {
	case waits != "":
		return end{waiting: waits}
	case to != "":
		kept := d.release(ctx, deletion)
		if kept.orphaned {
			kept.note = "is handed over to BundleDeployment " + to
			kept.handed = to
		}
		return kept
	}
	switch deletion.How {
	case plan.DeleteEmpty:
		return d.deleteEmpty(ctx, deletion)
	case plan.DeleteUnused:
		return d.deleteUnused(ctx, deletion)
	}
	return d.delete(ctx, deletion)
}

const notServedNow = "is of a kind that is not served at the moment"

const notOurs = "is left alone: it is not this deployment's any more"

// delete deletes the object in the state in which it was read as ours; when it
// changed since, it is read again.
func (d deleter) delete(ctx context.Context, deletion plan.Deletion) end {
	ref, live := tenant.RefTo(deletion.ID, deletion.Resource), deletion.Live
	for range write.Attempts {
		gone, err := d.client.Delete(ctx, ref, live.UID, live.ResourceVersion)
		switch {
		case objecterror.NotServed(err):
			return end{waiting: notServedNow}
		case apierrors.IsNotFound(err):
			return end{gone: true}
		case err == nil && gone:
			return end{gone: true, deleted: true}
		case err == nil:
			return end{deleted: true, waiting: ownership.BeingDeleted(live)}
		case !apierrors.IsConflict(err):
			return end{denied: objecterror.Of(deletion.ID, err)}
		}
		again := observe.Object(ctx, d.client, d.owner, deletion.ID, ref)
		switch {
		case again.Unserved:
			return end{waiting: notServedNow}
		case again.Error != nil:
			return end{denied: objecterror.Of(deletion.ID, again.Error)}
		case again.Live == nil:
			return end{gone: true}
		case !again.Live.Ours(d.owner):
			return end{gone: true, note: notOurs}
		case again.Live.GuardedNamespace(deletion.ID) != "":
			return end{waiting: write.WasChanging} // it is released by the next attempt
		case again.Live.Deleting:
			return end{waiting: ownership.BeingDeleted(*again.Live)}
		}
		live = *again.Live
	}
	return end{waiting: "keeps changing"}
}

// orphan releases an object, unless its conversion has to be waited for. A CRD that is
// released together with the server of its webhook converts as before.
func (d deleter) orphan(ctx context.Context, deletion plan.Deletion, live *unstructured.Unstructured) (kept storageversion.Conversion, err error) {
	ref := tenant.RefTo(deletion.ID, deletion.Resource)
	kept.Live = live
	if crds.IsCRD(deletion.ID) && !deletion.Whole {
		storage, _ := crds.Versions(live)
		kept, err = d.migrator.RemoveConversion(ctx, ref, live, storage)
	}
	if err != nil || kept.Waiting != "" {
		return kept, err
	}
	if err = write.Release(ctx, d.client, ref, kept.Live, d.owner, kept.Patch); err == nil {
		d.migrator.Forget(live)
	}
	return kept, err
}

// release keeps the object, labelled as orphaned. A CRD does not keep a conversion
// webhook that is removed.
func (d deleter) release(ctx context.Context, deletion plan.Deletion) end {
	ref := tenant.RefTo(deletion.ID, deletion.Resource)
	live, err := d.client.Get(ctx, ref)
	if objecterror.NotServed(err) {
		return end{waiting: notServedNow}
	}
	if apierrors.IsNotFound(err) {
		return end{gone: true}
	}
	if err != nil {
		return end{denied: objecterror.Of(deletion.ID, err)}
	}
	if !ownership.LiveOf(live, d.owner).Ours(d.owner) {
		return end{gone: true, note: notOurs}
	}
	finalized := d.finalized(ctx, deletion, live)
	kept, err := d.orphan(ctx, deletion, live)
	switch {
	case ctx.Err() != nil:
		return end{}
	case apierrors.IsConflict(err):
		return end{waiting: write.WasChanging}
	case err != nil:
		return end{denied: objecterror.Of(deletion.ID, err)}
	case kept.Waiting != "":
		return end{waiting: kept.Waiting}
	}
	note := "is kept, marked " + inventory.AnnotationOrphaned
	for _, more := range []string{kept.Note, kept.Loss(), finalized} {
		if more != "" {
			note += "; " + more
		}
	}
	return end{gone: true, orphaned: true, note: note}
}
