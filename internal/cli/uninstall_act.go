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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/install"
)

// carryOut removes everything: deployments while their controller runs, controllers before their RBAC, the record before the
// namespace that holds it.
func (u *uninstaller) carryOut(ctx context.Context) error {
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
	return slices.ContainsFunc(u.plan.Goes, func(d affectedObject) bool {
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
		if _, err := u.remove(ctx, p.id); err != nil {
			return err
		}
		asked = append(asked, p)
	}
	for _, p := range asked {
		if err := u.app.waitFor(ctx, targetOf(p.id), u.flags.timeout, func() (waitState, error) { return u.gone(ctx, p) }); err != nil {
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
		patience, cancel := context.WithTimeoutCause(ctx, u.flags.timeout/2, errTooLong)
		defer cancel()
		waiting = patience
	}
	all := target{kind: kind{name: "All"}, name: "BundleDeployments"}
	err := u.app.waitFor(waiting, all, u.flags.timeout, func() (waitState, error) { return u.departing(waiting) })
	if u.flags.keep && errors.Is(err, errNo) && ctx.Err() == nil {
		fmt.Fprintln(u.app.streams.ErrOut, "The controller does not remove the finalizers of the BundleDeployments: they are removed without it.")
		return u.release(ctx)
	}
	return err
}

// beginDeparture deletes a BundleDeployment.
func (u *uninstaller) beginDeparture(ctx context.Context, d *unstructured.Unstructured) error {
	if by := deliverer(d); by != "" {
		fmt.Fprintf(u.app.streams.ErrOut, "%s %s %s/%s comes from %s, which will create it again: remove its manifest there.\n",
			styleFor(u.app.streams.ErrOut).paint(yellow, "Warning:"), deployments.name, d.GetNamespace(), d.GetName(), inline(by))
	}
	policy, _, _ := unstructured.NestedString(d.Object, "spec", "deletionPolicy")
	if u.flags.keep && policy != string(v1alpha1.DeletionOrphan) {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"deletionPolicy":"Orphan"}}`))
		if err := u.client.Patch(ctx, d.DeepCopy(), patch, client.FieldOwner(fieldManager)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("orphaning the objects of %s %s/%s: %w", deployments.name, d.GetNamespace(), d.GetName(), err)
		}
	}
	uid := d.GetUID()
	err := u.client.Delete(ctx, d.DeepCopy(), client.Preconditions{UID: &uid})
	if client.IgnoreNotFound(err) != nil {
		return &accessError{verb: "delete", resource: deployments.resource, namespace: d.GetNamespace(), err: err}
	}
	return nil
}

// departing tells how many BundleDeployments are left, and what one of them waits for.
func (u *uninstaller) departing(ctx context.Context) (waitState, error) {
	left, err := u.list(ctx, deployments, true, "")
	if err != nil {
		return waitState{}, err
	}
	if len(left) == 0 {
		return waitState{done: true, text: "gone"}, nil
	}
	text := fmt.Sprintf("%d left, such as %s/%s", len(left), left[0].GetNamespace(), left[0].GetName())
	if d, err := typed(deployments, left[0]); err == nil {
		if one, isDeployment := d.(*v1alpha1.BundleDeployment); isDeployment {
			text += ": " + leavingText(one)
		}
	}
	return waitState{text: inline(text)}, nil
}

// sweep looks for BundleDeployments that were created meanwhile, when the controllers that set finalizers are gone.
func (u *uninstaller) sweep(ctx context.Context) error {
	left, err := u.list(ctx, deployments, true, "")
	if isAPIMissing(err) {
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
		plural(len(left), "BundleDeployment"), left[0].GetNamespace(), left[0].GetName())
}

// release deletes the BundleDeployments without their controller: their objects are not changed.
func (u *uninstaller) release(ctx context.Context) error {
	left, err := u.list(ctx, deployments, true, "")
	if err != nil {
		return err
	}
	for _, d := range left {
		if err := u.releaseOne(ctx, d); err != nil {
			return err
		}
	}
	fmt.Fprintf(u.app.streams.Out, "%s released without the controller; their objects are not annotated as orphaned\n", plural(len(left), "BundleDeployment"))
	return nil
}

// releaseOne removes the finalizer; if another client changed the object meanwhile, it is read again.
func (u *uninstaller) releaseOne(ctx context.Context, d *unstructured.Unstructured) error {
	for {
		if d.GetDeletionTimestamp().IsZero() {
			if err := u.client.Delete(ctx, d.DeepCopy()); client.IgnoreNotFound(err) != nil {
				return &accessError{verb: "delete", resource: deployments.resource, namespace: d.GetNamespace(), err: err}
			}
		}
		latest, err := u.bodies.Resource(deploymentsResource).Namespace(d.GetNamespace()).Get(ctx, d.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return &accessError{verb: "get", resource: deployments.resource, namespace: d.GetNamespace(), err: err}
		}
		latest.SetFinalizers(slices.DeleteFunc(latest.GetFinalizers(), func(f string) bool { return f == v1alpha1.Finalizer }))
		_, err = u.bodies.Resource(deploymentsResource).Namespace(d.GetNamespace()).Update(ctx, latest, metav1.UpdateOptions{FieldManager: fieldManager})
		switch {
		case err == nil, apierrors.IsNotFound(err):
			return nil
		case !apierrors.IsConflict(err):
			return fmt.Errorf("removing the finalizer of %s %s/%s: %w", deployments.name, d.GetNamespace(), d.GetName(), err)
		}
	}
}

// deploymentsResource is the resource of BundleDeployments.
var deploymentsResource = v1alpha1.GroupVersion.WithResource(deployments.resource)
