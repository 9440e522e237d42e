// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/cli/remove"
	"github.com/satchel-dev/satchel/internal/install"
	"github.com/satchel-dev/satchel/internal/view"
)

// carryOut removes everything: rollouts before they create deployments again, deployments while their controller runs, controllers before their RBAC, the record before the
// namespace that holds it.
func (u *uninstaller) carryOut(ctx context.Context) error {
	if err := u.letRolloutsGo(ctx); err != nil {
		return err
	}
	if err := u.letDeploymentsGo(ctx); err != nil {
		return err
	}
	if err := u.removePieces(ctx, func(p *piece) bool { return p.id.Kind == "Deployment" }); err != nil {
		return err
	}
	if err := u.sweep(ctx); err != nil {
		return err
	}
	if err := u.removePieces(ctx, func(p *piece) bool { return p.id.Kind == "CustomResourceDefinition" }); err != nil {
		return err
	}
	isRecord := func(p *piece) bool { return p.id.Kind == "ConfigMap" && p.id.Name == install.RecordName }
	if err := u.removePieces(ctx, func(p *piece) bool { return p.id.Kind != "Namespace" && !isRecord(p) }); err != nil {
		return err
	}
	for _, p := range u.pieces {
		if p.id.Kind == "Namespace" && !u.goes(p) {
			if err := u.leaveNamespace(ctx, p); err != nil {
				return err
			}
		}
	}
	if err := u.removePieces(ctx, isRecord); err != nil {
		return err
	}
	return u.removePieces(ctx, func(*piece) bool { return true })
}

func (u *uninstaller) goes(p *piece) bool {
	return slices.ContainsFunc(u.plan.Goes, func(d remove.AffectedObject) bool {
		return d.Group == p.id.Group && d.Kind == p.id.Kind && d.Namespace == p.id.Namespace && d.Name == p.id.Name
	})
}

// removePieces deletes some of the objects, the last applied first, and waits until they are gone.
func (u *uninstaller) removePieces(ctx context.Context, which func(*piece) bool) error {
	var asked []*piece
	for _, p := range slices.Backward(u.pieces) {
		if !u.goes(p) || !which(p) {
			continue
		}
		if _, err := removeObject(ctx, u.Examiner, p.id); err != nil {
			return err
		}
		asked = append(asked, p)
	}
	for _, p := range asked {
		if err := u.app.WaitFor(ctx, targetOf(p.id), u.flags.timeout, func() (kit.WaitState, error) { return gone(ctx, u.Examiner, p) }); err != nil {
			return err
		}
	}
	u.pieces = slices.DeleteFunc(u.pieces, func(p *piece) bool { return slices.Contains(asked, p) })
	return nil
}

// letDeploymentsGo deletes the BundleDeployments and waits until their controller has removed its finalizers. If their objects
// stay anyway, it does not wait for a controller that does not run.
func (u *uninstaller) letDeploymentsGo(ctx context.Context) error {
	if len(u.deployments) == 0 {
		return nil
	}
	for _, d := range u.deployments {
		if err := u.beginDeparture(ctx, d); err != nil {
			return err
		}
	}
	if u.flags.keep && !u.available {
		return u.release(ctx)
	}
	waiting := ctx
	if u.flags.keep {
		patience, cancel := context.WithTimeoutCause(ctx, u.flags.timeout/2, kit.ErrTooLong)
		defer cancel()
		waiting = patience
	}
	all := kit.Target{Kind: kit.Kind{Name: "All"}, Name: "BundleDeployments"}
	err := u.app.WaitFor(waiting, all, u.flags.timeout, func() (kit.WaitState, error) { return u.departing(waiting) })
	if u.flags.keep && errors.Is(err, kit.ErrNo) && ctx.Err() == nil {
		fmt.Fprintln(u.app.Streams.ErrOut, "The controller does not remove the finalizers of the BundleDeployments: they are removed without it.")
		return u.release(ctx)
	}
	return err
}

// beginDeparture deletes a BundleDeployment.
func (u *uninstaller) beginDeparture(ctx context.Context, d *unstructured.Unstructured) error {
	if by := kit.Deliverer(d); by != "" {
		fmt.Fprintf(u.app.Streams.ErrOut, "%s %s %s/%s comes from %s, which will create it again: remove its manifest there.\n",
			printer.StyleFor(u.app.Streams.ErrOut).Paint(printer.Yellow, "Warning:"), kit.Deployments.Name, d.GetNamespace(), d.GetName(), view.Inline(by))
	}
	policy, _, _ := unstructured.NestedString(d.Object, "spec", "deletionPolicy")
	if u.flags.keep && policy != string(v1alpha1.DeletionOrphan) {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"deletionPolicy":"Orphan"}}`))
		if err := u.Client.Patch(ctx, d.DeepCopy(), patch, client.FieldOwner(kit.FieldManager)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("orphaning the objects of %s %s/%s: %w", kit.Deployments.Name, d.GetNamespace(), d.GetName(), err)
		}
	}
	uid := d.GetUID()
	err := u.Client.Delete(ctx, d.DeepCopy(), client.Preconditions{UID: &uid})
	if client.IgnoreNotFound(err) != nil {
		return &kit.AccessError{Verb: "delete", Resource: kit.Deployments.Resource, Namespace: d.GetNamespace(), Err: err}
	}
	return nil
}

// departing tells how many BundleDeployments are left, and what one of them waits for.
func (u *uninstaller) departing(ctx context.Context) (kit.WaitState, error) {
	left, err := u.List(ctx, kit.Deployments, true, "")
	if err != nil {
		return kit.WaitState{}, err
	}
	if len(left) == 0 {
		return kit.WaitState{Done: true, Text: "gone"}, nil
	}
	text := fmt.Sprintf("%d left, such as %s/%s", len(left), left[0].GetNamespace(), left[0].GetName())
	if d, err := kit.Typed(kit.Deployments, left[0]); err == nil {
		if one, isDeployment := d.(*v1alpha1.BundleDeployment); isDeployment {
			text += ": " + remove.LeavingText(one)
		}
	}
	return kit.WaitState{Text: view.Inline(text)}, nil
}

// sweep looks for BundleDeployments that were created meanwhile, when the controllers that set finalizers are gone.
func (u *uninstaller) sweep(ctx context.Context) error {
	left, err := u.List(ctx, kit.Deployments, true, "")
	if kit.IsAPIMissing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	left = slices.DeleteFunc(left, func(d *unstructured.Unstructured) bool {
		return !slices.Contains(d.GetFinalizers(), v1alpha1.Finalizer)
	})
	switch {
	case len(left) == 0:
		return nil
	case u.flags.keep:
		return u.release(ctx)
	}
	return fmt.Errorf("%s were created while the others were deleted, such as %s/%s, and the controllers are gone: install Satchel again to remove their objects, or keep these with --keep-workloads",
		view.Plural(len(left), "BundleDeployment"), left[0].GetNamespace(), left[0].GetName())
}

// release deletes the BundleDeployments without their controller: their objects are not changed.
func (u *uninstaller) release(ctx context.Context) error {
	left, err := u.List(ctx, kit.Deployments, true, "")
	if err != nil {
		return err
	}
	for _, d := range left {
		if err := u.releaseOne(ctx, kit.Deployments, d); err != nil {
			return err
		}
	}
	fmt.Fprintf(u.app.Streams.Out, "%s released without the controller; their objects are not annotated as orphaned\n", view.Plural(len(left), "BundleDeployment"))
	return nil
}

// releaseOne deletes an object of a kind, and removes its finalizer; if another client changed the object meanwhile, it is read again.
func (u *uninstaller) releaseOne(ctx context.Context, k kit.Kind, d *unstructured.Unstructured) error {
	objects := u.Bodies.Resource(v1alpha1.GroupVersion.WithResource(k.Resource)).Namespace(d.GetNamespace())
	for {
		if d.GetDeletionTimestamp().IsZero() {
			if err := u.Client.Delete(ctx, d.DeepCopy()); client.IgnoreNotFound(err) != nil {
				return &kit.AccessError{Verb: "delete", Resource: k.Resource, Namespace: d.GetNamespace(), Err: err}
			}
		}
		latest, err := objects.Get(ctx, d.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return &kit.AccessError{Verb: "get", Resource: k.Resource, Namespace: d.GetNamespace(), Err: err}
		}
		latest.SetFinalizers(slices.DeleteFunc(latest.GetFinalizers(), func(f string) bool { return f == v1alpha1.Finalizer }))
		_, err = objects.Update(ctx, latest, metav1.UpdateOptions{FieldManager: kit.FieldManager})
		switch {
		case err == nil, apierrors.IsNotFound(err):
			return nil
		case !apierrors.IsConflict(err):
			return fmt.Errorf("removing the finalizer of %s %s/%s: %w", k.Name, d.GetNamespace(), d.GetName(), err)
		}
	}
}
