// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/rollout/revision"
)

// Trim drops what is not read of a BundleDeployment, before it is cached: with thousands of them, that is most of the memory.
// Of one that belongs to no rollout, only the name and the labels are read.
func Trim(child *v1alpha1.BundleDeployment) {
	child.ManagedFields = nil
	if child.Labels[v1alpha1.RolloutLabel] == "" {
		child.Annotations = nil
		child.Spec = v1alpha1.BundleDeploymentSpec{}
		child.Status = v1alpha1.BundleDeploymentStatus{}
		return
	}
	status := &child.Status
	if listed := status.Inventory; listed != nil && listed.Target != "" {
		status.Inventory = &v1alpha1.Inventory{Target: listed.Target}
	} else {
		status.Inventory = nil
	}
	status.Plan = nil
	status.Internal.Executed = nil
	if status.Hooks != nil {
		status.Hooks = &v1alpha1.HooksStatus{OnDelete: status.Hooks.OnDelete}
	}
	for i := range status.History {
		one := &status.History[i]
		status.History[i] = v1alpha1.RevisionRecord{
			Revision: one.Revision, Generation: one.Generation, Outcome: one.Outcome, StartTime: one.StartTime, CompletionTime: one.CompletionTime,
		}
	}
	for i := range status.Conditions {
		if one := &status.Conditions[i]; one.Type != v1alpha1.ReadyCondition {
			one.Message = ""
		}
	}
}

// Cached are the BundleDeployments of the rollout in the cache, by the name of their cluster. They are not to be changed.
func (w Writer) Cached(ctx context.Context) (map[string]*v1alpha1.BundleDeployment, error) {
	var list v1alpha1.BundleDeploymentList
	found := map[string]*v1alpha1.BundleDeployment{}
	if err := w.Client.List(ctx, &list, append(w.ofRollout(), client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("listing the bundledeployments of bundlerollout %s: %w", w.Rollout, err)
	}
	w.add(found, &list)
	return found, nil
}

// pageSize is how many BundleDeployments are read at once past the cache.
const pageSize = 500

// Stored are the BundleDeployments of the rollout past the cache, page by page.
func (w Writer) Stored(ctx context.Context) (map[string]*v1alpha1.BundleDeployment, error) {
	found := map[string]*v1alpha1.BundleDeployment{}
	next := ""
	for {
		var list v1alpha1.BundleDeploymentList
		if err := w.Live.List(ctx, &list, append(w.ofRollout(), client.Limit(pageSize), client.Continue(next))...); err != nil {
			return nil, fmt.Errorf("listing the bundledeployments of bundlerollout %s: %w", w.Rollout, err)
		}
		for i := range list.Items {
			Trim(&list.Items[i])
		}
		w.add(found, &list)
		if next = list.Continue; next == "" {
			return found, nil
		}
	}
}

func (w Writer) ofRollout() []client.ListOption {
	return []client.ListOption{client.InNamespace(w.Rollout.Namespace), client.MatchingLabels{v1alpha1.RolloutLabel: w.Rollout.Name}}
}

// add adds those with the name that the rollout gives them.
func (w Writer) add(to map[string]*v1alpha1.BundleDeployment, list *v1alpha1.BundleDeploymentList) {
	for i := range list.Items {
		child := &list.Items[i]
		if cluster := child.Labels[v1alpha1.ClusterLabel]; child.Name == revision.ChildName(w.Rollout.Name, cluster) {
			to[cluster] = child
		}
	}
}
