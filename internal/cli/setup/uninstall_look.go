// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/cli/check"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/cli/remove"
	"github.com/satchel-dev/satchel/internal/install"
	"github.com/satchel-dev/satchel/internal/view"
)

// uninstaller removes an installation.
type uninstaller struct {
	*check.Examiner
	app         *kit.App
	flags       uninstallOptions
	record      *install.Record // nil where it was installed by other means
	pieces      []*piece        // that are there, in the order in which they were applied
	deployments []*unstructured.Unstructured
	available   bool // the deployment controller
	rollouts    []*unstructured.Unstructured
	plan        uninstallPlan
}

// uninstallPlan lists what is deleted and what stays.
type uninstallPlan struct {
	Namespace string `json:"namespace"`
	Version   string `json:"version,omitempty"`
	// Deployments are the existing BundleDeployments, and Fate is what happens to their objects.
	Deployments []remove.AffectedObject `json:"deployments"`
	// Rollouts are the existing BundleRollouts, which are deleted before, so that they create no BundleDeployments again.
	Rollouts []remove.AffectedObject `json:"rollouts,omitempty"`
	Fate     string                  `json:"fate,omitempty"`
	Goes     []remove.AffectedObject `json:"goes"`
	Stays    []remove.AffectedObject `json:"stays"`
	Unknown  []string                `json:"unknown,omitempty"`
}

// newUninstaller reads what is installed.
func newUninstaller(ctx context.Context, a *kit.App, o uninstallOptions) (*uninstaller, error) {
	e, err := check.NewExaminer(a, o.namespace)
	if err != nil {
		return nil, err
	}
	u := &uninstaller{Examiner: e, app: a, flags: o}
	if u.record, err = recordOf(ctx, e, o.namespace); err != nil {
		return nil, err
	}
	ids, err := u.candidates()
	if err != nil {
		return nil, err
	}
	if u.pieces, err = there(ctx, e, ids); err != nil {
		return nil, err
	}
	if u.record == nil && !slices.ContainsFunc(u.pieces, func(p *piece) bool { return p.id.Kind != "Namespace" }) {
		u.pieces = nil // only a namespace is no installation
	}
	if err := u.findLeases(ctx); err != nil {
		return nil, err
	}
	if err := u.findDeployments(ctx); err != nil {
		return nil, err
	}
	for _, p := range u.pieces {
		if tool := kit.Deliverer(p.live); tool != "" {
			return nil, fmt.Errorf("nothing was removed, because %s comes from %s: remove it there", p.id, view.Inline(tool))
		}
	}
	return u, u.decide(ctx)
}

func (u *uninstaller) isEmpty() bool {
	return len(u.plan.Goes) == 0 && len(u.deployments) == 0 && len(u.rollouts) == 0
}

// candidates are the possible objects of the installation: those of the record, else all that this program installs.
func (u *uninstaller) candidates() ([]install.ID, error) {
	if u.record != nil {
		return append(slices.Clone(u.record.Objects), install.ID{Version: "v1", Kind: "ConfigMap", Namespace: u.Namespace, Name: install.RecordName}), nil
	}
	options := install.Options{Namespace: u.Namespace}
	for _, path := range install.Optional {
		options.SetValue(true, path...)
	}
	objects, err := install.Manifests(options)
	if err != nil {
		return nil, err
	}
	var ids []install.ID
	for _, o := range objects {
		ids = append(ids, install.IDOf(o))
	}
	return ids, nil
}

// there reads the objects that exist. It leaves out cluster-scoped objects of an installation in another namespace.
func there(ctx context.Context, e *check.Examiner, ids []install.ID) ([]*piece, error) {
	pieces := make([]*piece, len(ids))
	problems := parallel.Each(ctx, kit.AtOnce, slices.Collect(upTo(len(ids))), func(ctx context.Context, at int) error {
		id := ids[at]
		mapping, err := e.Mapper.RESTMapping(id.GroupVersionKind().GroupKind(), id.Version)
		if apimeta.IsNoMatchError(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("looking for the kind of %s: %w", id, err)
		}
		found, err := e.One(ctx, mapping.Resource, id.Namespace, id.Name, true)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return fmt.Errorf("reading %s: %w", id, err)
		}
		pieces[at] = &piece{id: id, resource: mapping.Resource, live: found.Body}
		return nil
	})
	if err := errors.Join(append(problems, context.Cause(ctx))...); err != nil {
		return nil, err
	}
	pieces = slices.DeleteFunc(pieces, func(p *piece) bool { return p == nil })
	for _, p := range pieces {
		if other := subjectNamespace(p.live); p.id.Kind == "ClusterRoleBinding" && other != e.Namespace {
			return nil, fmt.Errorf("nothing was removed, because Satchel is installed in the namespace %s (%s): give --system-namespace %s", other, p.id, other)
		}
	}
	return pieces, nil
}

// upTo counts from 0.
func upTo(n int) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

// findLeases adds the leases of the controllers, which they made themselves.
func (u *uninstaller) findLeases(ctx context.Context) error {
	leases, err := u.Installed(ctx, check.LeasesResource, "")
	if err != nil {
		return fmt.Errorf("listing the leases of the namespace %s: %w", u.Namespace, err)
	}
	for i := range leases {
		lease := &leases[i]
		if slices.ContainsFunc(append([]string{check.RolloutController}, check.ControllerNames...), func(name string) bool { return strings.HasPrefix(lease.GetName(), name) }) {
			u.pieces = append(u.pieces, &piece{id: install.IDOf(lease), resource: check.LeasesResource, live: lease})
		}
	}
	return nil
}

// findDeployments lists the BundleDeployments and BundleRollouts of all namespaces, and checks whether the deployment controller runs.
func (u *uninstaller) findDeployments(ctx context.Context) (err error) {
	if u.deployments, err = u.List(ctx, kit.Deployments, true, ""); err != nil && !kit.IsAPIMissing(err) {
		return err
	}
	if u.rollouts, err = u.List(ctx, kit.Rollouts, true, ""); err != nil && !kit.IsAPIMissing(err) {
		return err
	}
	for _, p := range u.pieces {
		if p.id.Kind == "Deployment" && p.id.Name == install.DeploymentController {
			available, _, _ := unstructured.NestedInt64(p.live.Object, "status", "availableReplicas")
			u.available = available > 0
		}
	}
	return nil
}

// decide plans what happens to each object.
func (u *uninstaller) decide(ctx context.Context) error {
	u.plan = uninstallPlan{Namespace: u.Namespace, Deployments: []remove.AffectedObject{}, Goes: []remove.AffectedObject{}, Stays: []remove.AffectedObject{}}
	if u.record != nil {
		u.plan.Version = u.record.Version
	}
	for _, d := range u.deployments {
		u.plan.Deployments = append(u.plan.Deployments, remove.AffectedObject{Group: v1alpha1.GroupVersion.Group, Kind: kit.Deployments.Name, Namespace: d.GetNamespace(), Name: d.GetName()})
	}
	for _, o := range u.rollouts {
		u.plan.Rollouts = append(u.plan.Rollouts, remove.AffectedObject{Group: v1alpha1.GroupVersion.Group, Kind: kit.Rollouts.Name, Namespace: o.GetNamespace(), Name: o.GetName()})
	}
	switch {
	case u.flags.keep:
		u.plan.Fate = "their objects stay, and keep running"
	case u.flags.remove:
		u.plan.Fate = "their objects are removed"
	default:
		u.plan.Fate = "choose what happens to their objects: --keep-workloads or --delete-deployments"
	}
	for _, p := range u.pieces {
		why, err := u.whyStays(ctx, p)
		if err != nil {
			return err
		}
		d := remove.AffectedObject{Group: p.id.Group, Kind: p.id.Kind, Namespace: p.id.Namespace, Name: p.id.Name, Why: why}
		if why == "" {
			u.plan.Goes = append(u.plan.Goes, d)
			continue
		}
		u.plan.Stays = append(u.plan.Stays, d)
	}
	return nil
}

// whyStays says why an object of the installation is kept; empty if it is deleted.
func (u *uninstaller) whyStays(ctx context.Context, p *piece) (string, error) {
	switch {
	case p.id.Kind == "CustomResourceDefinition" && !u.flags.definitions:
		return "add --crds to delete it, and all resources of its kind", nil
	case p.id.Kind != "Namespace":
		return "", nil
	case u.record != nil && !u.record.OwnNamespace:
		return "it existed before Satchel", nil
	}
	return u.inhabited(ctx, p.id.Name)
}

func (u *uninstaller) printPlan() error {
	if u.flags.output != printer.OutputText {
		return printer.PrintValue(u.app.Streams.Out, u.flags.output, u.plan)
	}
	fmt.Fprint(u.app.Streams.Out, u.plan.print(printer.StyleFor(u.app.Streams.Out)))
	return nil
}

// print writes it for people.
func (p uninstallPlan) print(s printer.Style) string {
	var out strings.Builder
	fmt.Fprintf(&out, "Satchel %sin the namespace %s is to be removed\n", strings.TrimLeft(view.Inline(p.Version)+" ", " "), s.Paint(printer.Bold, view.Inline(p.Namespace)))
	if len(p.Rollouts) > 0 {
		remove.WriteAffected(&out, s.Paint(printer.Red, "Deleted before all others"), p.Rollouts)
		fmt.Fprintf(&out, "  so that they create no BundleDeployments again\n")
	}
	if len(p.Deployments) > 0 {
		remove.WriteAffected(&out, s.Paint(printer.Red, "Deleted first"), p.Deployments)
		fmt.Fprintf(&out, "  %s\n", p.Fate)
	}
	remove.WriteAffected(&out, s.Paint(printer.Red, "To delete"), p.Goes)
	remove.WriteAffected(&out, s.Paint(printer.Green, "To keep"), p.Stays)
	return out.String()
}
