// SPDX-License-Identifier: Apache-2.0

// Package collect removes stored revisions that nothing uses any more, with their pinned sources and their copies of inputs.
package collect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/rollout/inputs"
	"github.com/satchel-dev/satchel/internal/rollout/revision"
)

// Used are the names of the objects of revisions in use: those of the status, of recorded starts, of more names, and what
// BundleDeployments run, or may go back to.
func Used(rollout *v1alpha1.BundleRollout, more []string, children map[string]*v1alpha1.BundleDeployment) map[string]bool {
	names := map[string]bool{}
	keep := func(name string) { names[revision.SourceName(rollout.Name, name)] = true }
	status := &rollout.Status
	for _, one := range []*v1alpha1.RolloutRevision{status.UpdateRevision, status.CurrentRevision} {
		if one != nil {
			keep(one.Name)
		}
	}
	for _, name := range more {
		keep(name)
	}
	for _, record := range status.History {
		keep(record.Name)
	}
	for _, entry := range status.Starting {
		keep(entry.Revision)
	}
	for _, child := range children {
		keep(child.Annotations[v1alpha1.RolloutRevisionAnnotation])
		if child.Spec.SourceRef != nil {
			names[child.Spec.SourceRef.Name] = true
		}
		if kept := child.Status.Internal.Artifact; kept != nil {
			names[kept.Source[strings.LastIndexByte(kept.Source, '/')+1:]] = true
		}
	}
	return names
}

// Revisions removes stored revisions.
type Revisions struct {
	Client client.Client
	Live   client.Reader
	// Inputs removes copies of inputs.
	Inputs inputs.Keeper
	// Quiet tells that no start is recorded: only then are copies of inputs removed that only one cluster has, since a start
	// writes them before the BundleDeployment that reads them.
	Quiet bool
}

// Remove deletes the stored revisions and pinned sources of a rollout that are not in use, and returns the names of those revisions.
func (r Revisions) Remove(ctx context.Context, rollout types.NamespacedName, used func(object string) bool) ([]string, error) {
	of := []client.ListOption{client.InNamespace(rollout.Namespace), client.MatchingLabels{v1alpha1.RolloutLabel: rollout.Name}}
	var sources v1alpha1.BundleSourceList
	var kept appsv1.ControllerRevisionList
	if err := r.Live.List(ctx, &sources, of...); err != nil {
		return nil, fmt.Errorf("listing the bundlesources of bundlerollout %s: %w", rollout, err)
	}
	if err := r.Live.List(ctx, &kept, of...); err != nil {
		return nil, fmt.Errorf("listing the controllerrevisions of bundlerollout %s: %w", rollout, err)
	}
	var objects []client.Object
	for i := range sources.Items {
		objects = append(objects, &sources.Items[i])
	}
	for i := range kept.Items {
		objects = append(objects, &kept.Items[i])
	}
	objects = slices.DeleteFunc(objects, func(o client.Object) bool {
		return used(o.GetName()) || o.GetAnnotations()[revision.DigestAnnotation] == "" // or not one of ours
	})
	if err := r.removeOwnInputs(ctx, rollout, kept.Items); err != nil {
		return nil, err
	}
	var removed []string
	for _, object := range objects {
		if err := r.removeInputs(ctx, rollout.Name, object); err != nil {
			return removed, err
		}
		if err := r.Client.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			return removed, fmt.Errorf("deleting %s/%s of an unused revision: %w", object.GetNamespace(), object.GetName(), err)
		}
		removed = append(removed, revision.Name(object.GetAnnotations()[revision.DigestAnnotation]))
	}
	return removed, nil
}

// removeOwnInputs deletes copies of inputs that only one cluster has and that no BundleDeployment reads any more, where a stored revision
// has such inputs. Those that the ServiceAccount may not list or delete stay.
func (r Revisions) removeOwnInputs(ctx context.Context, rollout types.NamespacedName, stored []appsv1.ControllerRevision) error {
	if !r.Quiet || !slices.ContainsFunc(stored, hasOwnInputs) {
		return nil
	}
	copies, err := r.Inputs.OwnCopies(ctx, rollout.Name)
	if err == nil && len(copies) > 0 {
		err = r.removeUnread(ctx, rollout, copies)
	}
	if lacks := (*inputs.MissingError)(nil); errors.As(err, &lacks) {
		ctrl.LoggerFrom(ctx).Error(err, "copies of inputs stay")
		return nil
	}
	return err
}

// removeUnread deletes the copies that no BundleDeployment reads. These are read past the cache, and after the copies were listed.
func (r Revisions) removeUnread(ctx context.Context, rollout types.NamespacedName, copies []inputs.Copied) error {
	var children v1alpha1.BundleDeploymentList
	if err := r.Live.List(ctx, &children, client.InNamespace(rollout.Namespace), client.MatchingLabels{v1alpha1.RolloutLabel: rollout.Name}); err != nil {
		return fmt.Errorf("listing the bundledeployments of bundlerollout %s: %w", rollout, err)
	}
	read := map[inputs.Copied]bool{}
	for i := range children.Items {
		for _, one := range revision.InputsOf(&children.Items[i].Spec) {
			read[inputs.CopyNamed(one.Kind, one.Name)] = true
		}
	}
	copies = slices.DeleteFunc(copies, func(one inputs.Copied) bool { return read[one] })
	return r.Inputs.DeleteCopies(ctx, rollout.Name, copies)
}

// hasOwnInputs tells whether clusters of a stored revision may have inputs of their own.
func hasOwnInputs(kept appsv1.ControllerRevision) bool {
	data, err := revision.Decode(kept.Data.Raw, kept.Annotations[revision.DigestAnnotation])
	return err == nil && data.HasOwnInputs()
}

// removeInputs deletes the copies of inputs of a revision. Those that the ServiceAccount may not delete are named in the log, and stay.
func (r Revisions) removeInputs(ctx context.Context, rollout string, object client.Object) error {
	kept, isRevision := object.(*appsv1.ControllerRevision)
	if !isRevision {
		return nil
	}
	digest := kept.Annotations[revision.DigestAnnotation]
	data, err := revision.Decode(kept.Data.Raw, digest)
	if err != nil || len(data.Inputs) == 0 {
		return nil //nolint:nilerr // it was changed, and names no copies
	}
	err = r.Inputs.Delete(ctx, rollout, revision.Name(digest), data.Inputs)
	if lacks := (*inputs.MissingError)(nil); errors.As(err, &lacks) {
		ctrl.LoggerFrom(ctx).Error(err, "copies of inputs stay", "revision", revision.Name(digest))
		return nil
	}
	return err
}
