// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"

	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/cli/check"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/cli/remove"
	"github.com/satchel-dev/satchel/internal/install"
	"github.com/satchel-dev/satchel/internal/view"
)

// preflight runs check --pre, and prints only the problems.
func (i *installer) preflight(ctx context.Context) error {
	if err := i.Examine(ctx, true); err != nil {
		return err
	}
	broken := i.Report.Broken()
	i.Report.Checks = slices.DeleteFunc(i.Report.Checks, func(f check.Finding) bool { return f.State == check.CheckOK })
	fmt.Fprint(i.app.Streams.ErrOut, i.Report.Print(printer.StyleFor(i.app.Streams.ErrOut)))
	if broken {
		fmt.Fprintln(i.app.Streams.ErrOut, "Nothing was changed.")
		return kit.ErrNo
	}
	return nil
}

// try applies all objects as a dry run, as far as that is possible now, and records the outcomes.
func (i *installer) try(ctx context.Context) error {
	problems := parallel.Each(ctx, kit.AtOnce, i.pieces, func(ctx context.Context, p *piece) error {
		switch {
		case p.recreate != "":
			p.outcome = pieceRecreated
			return nil
		case p.id.Namespace != "" && !i.namespaceThere():
			p.outcome = pieceCreated
			return nil
		}
		return i.apply(ctx, p, true)
	})
	if err := errors.Join(append(problems, context.Cause(ctx))...); err != nil {
		return fmt.Errorf("nothing was changed, because the API server refuses it: %w", err)
	}
	return nil
}

// apply applies one object, and says what that changed.
func (i *installer) apply(ctx context.Context, p *piece, dryRun bool) error {
	options := metav1.ApplyOptions{FieldManager: kit.FieldManager, Force: true}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	after, err := i.Bodies.Resource(p.resource).Namespace(p.id.Namespace).Apply(ctx, p.id.Name, p.desired, options)
	if err != nil {
		return fmt.Errorf("applying %s: %w", p.id, err)
	}
	switch {
	case p.live == nil:
		p.outcome = pieceCreated
	case sameContent(p.live, after):
		p.outcome = pieceUnchanged
	default:
		p.outcome = pieceChanged
	}
	if !dryRun && p.recreate != "" {
		p.outcome = pieceRecreated
	}
	return nil
}

// sameContent compares objects without the fields that every write changes.
func sameContent(before, after *unstructured.Unstructured) bool {
	content := func(o *unstructured.Unstructured) map[string]any {
		o = o.DeepCopy()
		for _, field := range []string{"managedFields", "resourceVersion", "generation"} {
			unstructured.RemoveNestedField(o.Object, "metadata", field)
		}
		unstructured.RemoveNestedField(o.Object, "status")
		return o.Object
	}
	return equality.Semantic.DeepEqual(content(before), content(after))
}

// carryOut applies the objects. The record is written before the objects that it lists, so that an interruption leaves no
// unrecorded object.
func (i *installer) carryOut(ctx context.Context) error {
	record := install.Record{Version: i.app.Version.Version, Options: i.chosen, OwnNamespace: i.ownsNamespace(), Objects: append(i.ids(), i.obsolete...)}
	recorded := false
	for _, p := range i.pieces {
		if p.id.Kind != "Namespace" && !recorded {
			if err := i.remember(ctx, record); err != nil {
				return err
			}
			recorded = true
		}
		if err := i.put(ctx, p); err != nil {
			return err
		}
	}
	if err := i.awaitInstallation(ctx); err != nil {
		return err
	}
	left, err := i.removeObsolete(ctx)
	if err != nil {
		return err
	}
	record.Objects = append(i.ids(), left...)
	return i.remember(ctx, record)
}

// ownsNamespace tells whether the namespace belongs to the installation: it was created now, or by an installation with
// kubectl, which left RBAC and no record.
func (i *installer) ownsNamespace() bool {
	if i.before != nil {
		return i.before.OwnNamespace
	}
	return !i.namespaceThere() || slices.ContainsFunc(i.pieces, func(p *piece) bool { return p.live != nil && p.id.Kind == "ClusterRoleBinding" })
}

// remember writes the record.
func (i *installer) remember(ctx context.Context, record install.Record) error {
	kept, err := record.ConfigMap()
	if err != nil {
		return fmt.Errorf("writing down what is installed: %w", err)
	}
	_, err = i.Bodies.Resource(configMapsResource).Namespace(kept.GetNamespace()).Apply(ctx, kept.GetName(), kept, metav1.ApplyOptions{FieldManager: kit.FieldManager, Force: true})
	if err != nil {
		return fmt.Errorf("writing down what is installed, in the ConfigMap %s/%s: %w", kept.GetNamespace(), kept.GetName(), err)
	}
	return nil
}

// put applies one object, and reports what changed.
func (i *installer) put(ctx context.Context, p *piece) error {
	switch {
	case p.recreate != "":
		if err := i.deleteFirst(ctx, p); err != nil {
			return err
		}
	case p.live != nil:
		if err := i.transferFields(ctx, p); err != nil {
			return err
		}
	}
	if err := i.apply(ctx, p, false); err != nil {
		return err
	}
	if p.outcome != pieceUnchanged {
		i.tell(p.outcome, p.id, p.recreate)
	}
	return nil
}

func (i *installer) tell(outcome pieceOutcome, id install.ID, why string) {
	if why != "" {
		why = ": " + why
	}
	fmt.Fprintf(i.app.Streams.Out, "%-9s %s%s\n", outcome, view.Inline(id.String()), why)
}

// deleteFirst deletes an object that cannot be changed in place, and waits until it and what belongs to it are gone.
func (i *installer) deleteFirst(ctx context.Context, p *piece) error {
	foreground, uid := metav1.DeletePropagationForeground, p.live.GetUID()
	err := i.Bodies.Resource(p.resource).Namespace(p.id.Namespace).Delete(ctx, p.id.Name,
		metav1.DeleteOptions{PropagationPolicy: &foreground, Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting %s, which has to be recreated: %w", p.id, err)
	}
	return i.app.WaitFor(ctx, targetOf(p.id), i.flags.timeout, func() (kit.WaitState, error) { return gone(ctx, i.Examiner, p) })
}

// targetOf names an object as messages do.
func targetOf(id install.ID) kit.Target {
	return kit.Target{Kind: kit.Kind{Name: id.Kind}, Name: id.Name}
}

// gone tells whether an object that was seen is no more.
func gone(ctx context.Context, e *check.Examiner, p *piece) (kit.WaitState, error) {
	found, err := e.One(ctx, p.resource, p.id.Namespace, p.id.Name, false)
	switch {
	case apierrors.IsNotFound(err), err == nil && found.GetUID() != p.live.GetUID():
		return kit.WaitState{Done: true, Text: "gone"}, nil
	case err != nil:
		return kit.WaitState{}, fmt.Errorf("reading %s: %w", p.id, err)
	}
	return kit.WaitState{Text: "being deleted" + remove.WithFinalizers(found)}, nil
}

// formerAppliers are the field managers of kubectl. Fields that they own and that the desired object lacks would stay forever.
var formerAppliers = sets.New("kubectl-client-side-apply", "kubectl")

// transferFields transfers the fields that kubectl applied to this program, so that obsolete ones are removed.
func (i *installer) transferFields(ctx context.Context, p *piece) error {
	if !slices.ContainsFunc(p.live.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool { return formerAppliers.Has(f.Manager) }) {
		return nil
	}
	entries := p.live.GetManagedFields()
	for at := range entries {
		// The library takes over what was updated; what kubectl applied on the server's side is called updated for that.
		if formerAppliers.Has(entries[at].Manager) && entries[at].Subresource == "" {
			entries[at].Operation = metav1.ManagedFieldsOperationUpdate
		}
	}
	seen := p.live.DeepCopy()
	seen.SetManagedFields(entries)
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(seen, formerAppliers, kit.FieldManager)
	if err != nil || len(patch) == 0 {
		return err
	}
	after, err := i.Bodies.Resource(p.resource).Namespace(p.id.Namespace).Patch(ctx, p.id.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: kit.FieldManager})
	if err != nil {
		return fmt.Errorf("taking %s over from kubectl: %w", p.id, err)
	}
	p.live = after
	return nil
}
