// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// restart is a workload whose Pods are replaced when it is taken over.
type restart struct {
	ID      string   `json:"object"`
	Because []string `json:"because"` // fields of the Pod template that change
}

// restarting are the kinds that replace their Pods when the template changes.
var restarting = []string{"Deployment", "StatefulSet", "DaemonSet"}

// mostBecause bounds what is said of one workload.
const mostBecause = 10

// wouldRestart compares the Pod template of a workload with the one that the bundle has, both with the defaults of the
// API server, which creates a copy without keeping it. Fields that the template has and the bundle does not are removed by
// the adoption, as they were the former owner's; a person's restart stays.
func (w *adopter) wouldRestart(ctx context.Context, object *unstructured.Unstructured) (restart, error) {
	found := restart{ID: inventory.IDOf(object).String()}
	if object.GroupVersionKind().Group != "apps" || !slices.Contains(restarting, object.GetKind()) {
		return found, nil
	}
	live := object.DeepCopy()
	if err := w.any.Get(ctx, client.ObjectKeyFromObject(object), live); err != nil {
		return found, fmt.Errorf("reading it: %w", err)
	}
	desired := object.DeepCopy()
	desired.SetName(fmt.Sprintf("%.50s-adopted", object.GetName()))
	if err := w.any.Create(ctx, desired, client.DryRunAll); err != nil {
		if apierrors.IsForbidden(err) {
			return found, errors.New("you may not create such an object, not even by a dry run")
		}
		return found, err
	}
	before, _, err := unstructured.NestedMap(live.Object, "spec", "template")
	if err != nil {
		return found, err
	}
	after, _, err := unstructured.NestedMap(desired.Object, "spec", "template")
	if err != nil {
		return found, err
	}
	unstructured.RemoveNestedField(before, "metadata", "annotations", "kubectl.kubernetes.io/restartedAt")
	found.Because = changes("spec.template", before, after)
	return found, nil
}

// changes are the paths at which two values differ, sorted. Empty and missing are the same.
func changes(path string, before, after any) []string {
	if reflect.DeepEqual(before, after) || vacant(before) && vacant(after) {
		return nil
	}
	b, isMap := before.(map[string]any)
	c, both := after.(map[string]any)
	if isMap && (both || after == nil) || both && before == nil {
		return changesOfMaps(path, b, c)
	}
	x, isList := before.([]any)
	y, bothLists := after.([]any)
	if isList && bothLists && len(x) == len(y) {
		return changesOfLists(path, x, y)
	}
	switch {
	case vacant(before):
		return []string{path + " is added"}
	case vacant(after):
		return []string{path + " is removed"}
	}
	return []string{path + " changes"}
}

func changesOfLists(path string, before, after []any) []string {
	var found []string
	for i := range before {
		found = append(found, changes(fmt.Sprintf("%s[%d]", path, i), before[i], after[i])...)
	}
	return bounds(found)
}

func changesOfMaps(path string, before, after map[string]any) []string {
	var keys []string
	for key := range before {
		keys = append(keys, key)
	}
	for key := range after {
		if _, there := before[key]; !there {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	var found []string
	for _, key := range keys {
		at := path + "." + key
		if strings.ContainsAny(key, "./") {
			at = path + "[" + key + "]"
		}
		found = append(found, changes(at, before[key], after[key])...)
	}
	return bounds(found)
}

func bounds(found []string) []string {
	if len(found) > mostBecause {
		return append(found[:mostBecause:mostBecause], "and more")
	}
	return found
}

// vacant tells that a value says nothing.
func vacant(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}
