// SPDX-License-Identifier: Apache-2.0

// Package removal writes what a removal needs to the BundleDeployments of a rollout. Which are removed is decided in internal/rollout.
package removal

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/rollout"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// Writer writes BundleDeployments.
type Writer struct {
	Client  client.Client
	Manager string
}

// Delete deletes a BundleDeployment; with the policy Orphan its objects stay.
func (w Writer) Delete(ctx context.Context, child *v1alpha1.BundleDeployment, policy v1alpha1.DeletionPolicy) error {
	if policy == v1alpha1.DeletionOrphan && child.Spec.DeletionPolicy != v1alpha1.DeletionOrphan {
		changed := child.DeepCopy()
		changed.Spec.DeletionPolicy = v1alpha1.DeletionOrphan
		if err := w.Client.Patch(ctx, changed, client.MergeFrom(child), client.FieldOwner(w.Manager)); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	uid := child.UID
	if err := w.Client.Delete(ctx, child, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting bundledeployment %s: %w", client.ObjectKeyFromObject(child), err)
	}
	return nil
}

// Released is the plan of the approval by which a rollout may remove a cluster, whatever the limit; empty if there is none. What was
// approved for a former rollout of the same name does not count.
func Released(child *v1alpha1.BundleDeployment, rollout types.UID) string {
	uid, plan, _ := strings.Cut(child.Annotations[v1alpha1.RolloutReleasedAnnotation], "/")
	if uid == "" || uid != string(rollout) {
		return ""
	}
	return plan
}

// Release sets the plan of an approved removal that a BundleDeployment is part of; an empty one removes it.
func (w Writer) Release(ctx context.Context, child *v1alpha1.BundleDeployment, rollout types.UID, plan string) error {
	if plan != "" {
		plan = string(rollout) + "/" + plan
	}
	return w.Annotate(ctx, child, v1alpha1.RolloutReleasedAnnotation, plan)
}

// Stuck tells whether the removal of a BundleDeployment waits for something to be corrected.
func Stuck(child *v1alpha1.BundleDeployment) bool {
	return !child.DeletionTimestamp.IsZero() && apimeta.IsStatusConditionTrue(child.Status.Conditions, v1alpha1.RemovalBlockedCondition)
}

// LacksCluster tells whether the removal of a BundleDeployment waits for a kubeconfig that cannot be read.
func LacksCluster(child *v1alpha1.BundleDeployment) bool {
	blocked := apimeta.FindStatusCondition(child.Status.Conditions, v1alpha1.RemovalBlockedCondition)
	return !child.DeletionTimestamp.IsZero() && effective.IsRemote(child.Spec.Target.ClusterReference) && child.Annotations[v1alpha1.AbandonAnnotation] == "" &&
		blocked != nil && blocked.Status == metav1.ConditionTrue && blocked.Reason == v1alpha1.ReasonKubeConfigNotFound
}

// Abandon has the deployment controller stop the removal of the objects of a BundleDeployment that is being deleted.
func (w Writer) Abandon(ctx context.Context, child *v1alpha1.BundleDeployment) error {
	return w.Annotate(ctx, child, v1alpha1.AbandonAnnotation, "now")
}

// AbandonGone leaves the objects on clusters of which what leads to them, a Secret or a ClusterProfile, does not exist any more. The
// removal has to wait for that already, and isGone to see that there is none.
func (w Writer) AbandonGone(ctx context.Context, children map[string]*v1alpha1.BundleDeployment, isGone func(*v1alpha1.BundleDeployment) (bool, error)) error {
	for _, child := range children {
		if !LacksCluster(child) {
			continue
		}
		gone, err := isGone(child)
		if err == nil && gone {
			err = w.Abandon(ctx, child)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ReplaceRebuilt replaces the BundleDeployments that were decided on, and returns the names of the clusters of which it deleted them now.
func (w Writer) ReplaceRebuilt(ctx context.Context, rebuilt []rollout.Rebuilt, children map[string]*v1alpha1.BundleDeployment) ([]string, error) {
	var replaced []string
	for _, one := range rebuilt {
		if !one.Replace {
			continue
		}
		isNew, err := w.replace(ctx, children[one.Cluster])
		if isNew {
			replaced = append(replaced, one.Cluster)
		}
		if err != nil {
			return replaced, err
		}
	}
	return replaced, nil
}

// replace deletes the BundleDeployment of a cluster that was rebuilt, without a removal of its objects, and tells whether it did now. It is
// not deleted where it changed since it was read. The policy Orphan is set when it is being deleted, so that it never stays on one
// that is used further.
func (w Writer) replace(ctx context.Context, child *v1alpha1.BundleDeployment) (isNew bool, _ error) {
	if child.DeletionTimestamp.IsZero() {
		err := w.Client.Delete(ctx, child, client.Preconditions{UID: &child.UID, ResourceVersion: &child.ResourceVersion})
		switch {
		case apierrors.IsNotFound(err), apierrors.IsConflict(err): // it is looked at again
			return false, nil
		case err != nil:
			return false, fmt.Errorf("deleting bundledeployment %s of a cluster that was rebuilt: %w", client.ObjectKeyFromObject(child), err)
		}
		isNew = true
	}
	changed := child.DeepCopy()
	changed.Spec.DeletionPolicy = v1alpha1.DeletionOrphan
	metav1.SetMetaDataAnnotation(&changed.ObjectMeta, v1alpha1.AbandonAnnotation, "now")
	if err := w.Client.Patch(ctx, changed, client.MergeFrom(child), client.FieldOwner(w.Manager)); client.IgnoreNotFound(err) != nil {
		return isNew, fmt.Errorf("abandoning the removal of bundledeployment %s: %w", client.ObjectKeyFromObject(child), err)
	}
	return isNew, nil
}

// Annotate sets an annotation, or removes it if the value is empty.
func (w Writer) Annotate(ctx context.Context, child *v1alpha1.BundleDeployment, key, value string) error {
	changed := child.DeepCopy()
	if value == "" {
		delete(changed.Annotations, key)
	} else {
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, key, value)
	}
	if err := w.Client.Patch(ctx, changed, client.MergeFrom(child), client.FieldOwner(w.Manager)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("setting the annotation %s of bundledeployment %s: %w", key, client.ObjectKeyFromObject(child), err)
	}
	return nil
}
