// SPDX-License-Identifier: Apache-2.0

// Package removal writes what a removal needs to the BundleDeployments of a rollout. Which are removed is decided in internal/rollout.
package removal

import (
	"context"
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
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

// Released tells whether an approval permits to remove a cluster, whatever the limit.
func Released(child *v1alpha1.BundleDeployment) bool {
	return child.Annotations[v1alpha1.RolloutReleasedAnnotation] != ""
}

// Release sets the plan of an approved removal that a BundleDeployment is part of; an empty one removes it.
func (w Writer) Release(ctx context.Context, child *v1alpha1.BundleDeployment, plan string) error {
	return w.annotate(ctx, child, v1alpha1.RolloutReleasedAnnotation, plan)
}

// Stuck tells whether the removal of a BundleDeployment waits for something to be corrected.
func Stuck(child *v1alpha1.BundleDeployment) bool {
	return !child.DeletionTimestamp.IsZero() && apimeta.IsStatusConditionTrue(child.Status.Conditions, v1alpha1.RemovalBlockedCondition)
}

// LacksCluster tells whether the removal of a BundleDeployment waits for a kubeconfig that cannot be read.
func LacksCluster(child *v1alpha1.BundleDeployment) bool {
	blocked := apimeta.FindStatusCondition(child.Status.Conditions, v1alpha1.RemovalBlockedCondition)
	return !child.DeletionTimestamp.IsZero() && child.Spec.KubeConfig != nil && child.Annotations[v1alpha1.AbandonAnnotation] == "" &&
		blocked != nil && blocked.Status == metav1.ConditionTrue && blocked.Reason == v1alpha1.ReasonKubeConfigNotFound
}

// Abandon has the deployment controller stop the removal of the objects of a BundleDeployment that is being deleted.
func (w Writer) Abandon(ctx context.Context, child *v1alpha1.BundleDeployment) error {
	return w.annotate(ctx, child, v1alpha1.AbandonAnnotation, "now")
}

// annotate sets an annotation, or removes it.
func (w Writer) annotate(ctx context.Context, child *v1alpha1.BundleDeployment, key, value string) error {
	before := child.DeepCopy()
	if value == "" {
		delete(child.Annotations, key)
	} else {
		metav1.SetMetaDataAnnotation(&child.ObjectMeta, key, value)
	}
	if err := w.Client.Patch(ctx, child, client.MergeFrom(before), client.FieldOwner(w.Manager)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("setting the annotation %s of bundledeployment %s: %w", key, client.ObjectKeyFromObject(child), err)
	}
	return nil
}
