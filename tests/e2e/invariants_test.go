// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/tests/e2erig"
)

// owned are the live objects with the labels of a deployment, of the given kinds. What is
// terminating is not counted.
func (r *rig) owned(ctx context.Context, key client.ObjectKey, kinds []schema.GroupVersionKind) (map[inventory.ID]bool, error) {
	found := map[inventory.ID]bool{}
	for _, kind := range kinds {
		var list unstructured.UnstructuredList
		list.SetGroupVersionKind(kind)
		err := r.Admin.List(ctx, &list, client.MatchingLabels{v1alpha1.DeploymentLabel: key.Name, v1alpha1.NamespaceLabel: key.Namespace})
		if apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue // its CRD does not exist
		}
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			if list.Items[i].GetDeletionTimestamp() == nil {
				found[inventory.IDOf(&list.Items[i])] = true
			}
		}
	}
	return found, nil
}

// sound waits until a deployment is Ready at its generation (I1), and what it owns, what
// its inventory lists and what its bundle contains are the same (I1, I2).
func (r *rig) soundly(t *testing.T, key client.ObjectKey, want map[inventory.ID]bool, kinds []schema.GroupVersionKind) {
	t.Helper()
	r.Eventually(t, t.Context(), "the deployment is Ready with exactly its objects", func(ctx context.Context) (bool, string) {
		var d v1alpha1.BundleDeployment
		if err := r.Admin.Get(ctx, key, &d); err != nil {
			return false, err.Error()
		}
		if d.Status.ObservedGeneration != d.Generation || !isReady(&d) {
			return false, e2erig.Describe(&d)
		}
		listed, err := inventory.Decode(d.Status.Inventory)
		if err != nil {
			return false, err.Error()
		}
		live, err := r.owned(ctx, key, kinds)
		if err != nil {
			return false, err.Error()
		}
		entries := map[inventory.ID]bool{}
		for _, entry := range listed.Entries {
			entries[entry.ID] = true
		}
		differs := differences("live", live, want) + differences("listed", entries, want)
		return differs == "", differs + e2erig.Describe(&d)
	})
}

// differences names what is in one set only; "" for none.
func differences(what string, have, want map[inventory.ID]bool) string {
	var lines []string
	for id := range have {
		if !want[id] {
			lines = append(lines, fmt.Sprintf("%s and not wanted: %s", what, id))
		}
	}
	for id := range want {
		if !have[id] {
			lines = append(lines, fmt.Sprintf("wanted and not %s: %s", what, id))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// idsOf are the identities of objects, of which those that name no namespace and have
// one go to the given one.
func idsOf(objects []*unstructured.Unstructured, namespace string) map[inventory.ID]bool {
	ids := map[inventory.ID]bool{}
	for _, object := range objects {
		id := inventory.IDOf(object)
		if id.Namespace == "" && !clusterWide[id.Kind] {
			id.Namespace = namespace
		}
		ids[id] = true
	}
	return ids
}

var clusterWide = map[string]bool{"Namespace": true, "CustomResourceDefinition": true, "ClusterRole": true, "ClusterRoleBinding": true}

func kindsOf(objects []*unstructured.Unstructured) []schema.GroupVersionKind {
	kinds := map[schema.GroupVersionKind]bool{}
	for _, object := range objects {
		kinds[object.GroupVersionKind()] = true
	}
	return slices.SortedFunc(maps.Keys(kinds), func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
}
