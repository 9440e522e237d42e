// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"

	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/install"
)

// preflight runs check --pre, and prints only the problems.
func (i *installer) preflight(ctx context.Context) error {
	if err := i.examine(ctx, true); err != nil {
		return err
	}
	broken := i.report.broken()
	i.report.Checks = slices.DeleteFunc(i.report.Checks, func(f finding) bool { return f.State == checkOK })
	fmt.Fprint(i.app.streams.ErrOut, i.report.print(styleFor(i.app.streams.ErrOut)))
	if broken {
		fmt.Fprintln(i.app.streams.ErrOut, "Nothing was changed.")
		return errNo
	}
	return nil
}

// try applies all objects as a dry run, as far as that is possible now, and records the outcomes.
func (i *installer) try(ctx context.Context) error {
	problems := parallel.Each(ctx, atOnce, i.pieces, func(ctx context.Context, p *piece) error {
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
	options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	after, err := i.bodies.Resource(p.resource).Namespace(p.id.Namespace).Apply(ctx, p.id.Name, p.desired, options)
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
	return equalJSON(content(before), content(after))
}

// carryOut applies the objects. The record is written before the objects that it lists, so that an interruption leaves no
// unrecorded object.
func (i *installer) carryOut(ctx context.Context) error {
	record := install.Record{Version: i.app.version.Version, Options: i.chosen, OwnNamespace: i.ownsNamespace(), Objects: append(i.ids(), i.obsolete...)}
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
	_, err = i.bodies.Resource(configMapsResource).Namespace(kept.GetNamespace()).Apply(ctx, kept.GetName(), kept, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	if err != nil {
		return fmt.Errorf("writing down what is installed, in the ConfigMap %s/%s: %w", kept.GetNamespace(), kept.GetName(), err)
	}
	return nil
}

// put applies one object, and reports what changed.
func (i *installer) put(ctx context.Context, p *piece) error {
	switch {
	case p.recreate != "":
		if err := i.takeAway(ctx, p); err != nil {
			return err
		}
	case p.live != nil:
		if err := i.takeOver(ctx, p); err != nil {
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
	fmt.Fprintf(i.app.streams.Out, "%-9s %s%s\n", outcome, inline(id.String()), why)
}

// takeAway deletes an object and waits until it is gone, with what belongs to it.
func (i *installer) takeAway(ctx context.Context, p *piece) error {
	foreground, uid := metav1.DeletePropagationForeground, p.live.GetUID()
	err := i.bodies.Resource(p.resource).Namespace(p.id.Namespace).Delete(ctx, p.id.Name,
		metav1.DeleteOptions{PropagationPolicy: &foreground, Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting %s, which has to be recreated: %w", p.id, err)
	}
	return i.app.waitFor(ctx, targetOf(p.id), i.flags.timeout, func() (waitState, error) { return i.gone(ctx, p) })
}

// targetOf names an object as messages do.
func targetOf(id install.ID) target {
	return target{kind: kind{name: id.Kind}, name: id.Name}
}

// gone tells whether an object that was seen is no more.
func (e *examiner) gone(ctx context.Context, p *piece) (waitState, error) {
	found, err := e.one(ctx, p.resource, p.id.Namespace, p.id.Name, false)
	switch {
	case apierrors.IsNotFound(err), err == nil && found.GetUID() != p.live.GetUID():
		return waitState{done: true, text: "gone"}, nil
	case err != nil:
		return waitState{}, fmt.Errorf("reading %s: %w", p.id, err)
	}
	return waitState{text: "being deleted" + withFinalizers(found)}, nil
}

// formerAppliers are the field managers of kubectl. Fields that they own and that the desired object lacks would stay forever.
var formerAppliers = sets.New("kubectl-client-side-apply", "kubectl")

// takeOver transfers the fields that kubectl applied to this program, so that obsolete ones are removed.
func (i *installer) takeOver(ctx context.Context, p *piece) error {
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
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(seen, formerAppliers, fieldManager)
	if err != nil || len(patch) == 0 {
		return err
	}
	after, err := i.bodies.Resource(p.resource).Namespace(p.id.Namespace).Patch(ctx, p.id.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil {
		return fmt.Errorf("taking %s over from kubectl: %w", p.id, err)
	}
	p.live = after
	return nil
}
