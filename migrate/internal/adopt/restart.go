// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// Restart is a workload that replaces its Pods when it is adopted.
type Restart struct {
	ID      string   `json:"object"`
	Because []string `json:"because"` // fields of the Pod template that change
	// Annotations are those that only the running Pods have; Conditions: they have the variable that OLM sets.
	Annotations map[string]string `json:"annotations,omitempty"`
	Conditions  bool              `json:"operatorConditions,omitempty"`
}

// restarting are the kinds that replace their Pods when the template changes.
var restarting = []string{"Deployment", "StatefulSet", "DaemonSet"}

// mostBecause bounds the reasons that are listed for one workload.
const mostBecause = 10

// wouldRestart compares the Pod template of a workload with the one that the bundle has, both with the defaults of the
// API server, which creates a copy without keeping it. Fields that the template has and the bundle does not are removed by
// the adoption, as they were the former owner's; the annotation of kubectl rollout restart stays.
func (w *adopter) wouldRestart(ctx context.Context, object *unstructured.Unstructured) (Restart, error) {
	found := Restart{ID: inventory.IDOf(object).String()}
	if object.GroupVersionKind().Group != "apps" || !slices.Contains(restarting, object.GetKind()) {
		return found, nil
	}
	live := object.DeepCopy()
	if err := w.any.Get(ctx, client.ObjectKeyFromObject(object), live); err != nil {
		return found, fmt.Errorf("reading it: %w", err)
	}
	desired := object.DeepCopy()
	desired.SetName("")
	desired.SetGenerateName("adopted-")
	if err := w.any.Create(ctx, desired, client.DryRunAll); err != nil {
		if apierrors.IsForbidden(err) {
			return found, errors.New("you lack permission to create such an object, which the dry run needs")
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
	found.Because = Changes("spec.template", before, after)
	found.Annotations = onlyIn(annotationsOf(before), annotationsOf(after))
	found.Conditions = HasConditionName(before) && !HasConditionName(after)
	return found, nil
}

func annotationsOf(template map[string]any) map[string]string {
	annotations, _, _ := unstructured.NestedStringMap(template, "metadata", "annotations")
	return annotations
}

// onlyIn are the entries of before with keys that after lacks.
func onlyIn(before, after map[string]string) map[string]string {
	only := maps.Clone(before)
	maps.DeleteFunc(only, func(key, _ string) bool {
		_, there := after[key]
		return there
	})
	return only
}

// HasConditionName tells whether a container has the variable that OLM gives to every operator.
func HasConditionName(template map[string]any) bool {
	containers, _, _ := unstructured.NestedSlice(template, "spec", "containers")
	for _, container := range containers {
		fields, _ := container.(map[string]any)
		variables, _, _ := unstructured.NestedSlice(fields, "env")
		for _, variable := range variables {
			if named, _ := variable.(map[string]any); named["name"] == "OPERATOR_CONDITION_NAME" {
				return true
			}
		}
	}
	return false
}

// ToKeep returns the options of spec.registryV1 that avoid a restart of an operator's Pods. Options apply to all Deployments
// of a bundle, so only those count that all restarting ones need. Empty: no option helps.
func (f Adoption) ToKeep() map[string]any {
	options := map[string]any{}
	for i, workload := range f.Restarts {
		if i > 0 && (workload.Conditions != f.Restarts[0].Conditions || !maps.Equal(workload.Annotations, f.Restarts[0].Annotations)) {
			return nil
		}
	}
	if len(f.Restarts) == 0 || !f.Operator {
		return nil
	}
	if f.Restarts[0].Conditions {
		options["operatorConditions"] = true
	}
	if annotations := f.Restarts[0].Annotations; len(annotations) > 0 {
		options["deploymentConfig"] = map[string]any{"annotations": annotations}
	}
	return options
}

// Changes are the paths at which two values differ, sorted. Empty and missing are the same.
func Changes(path string, before, after any) []string {
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
		found = append(found, Changes(fmt.Sprintf("%s[%d]", path, i), before[i], after[i])...)
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
		found = append(found, Changes(at, before[key], after[key])...)
	}
	return bounds(found)
}

func bounds(found []string) []string {
	if len(found) > mostBecause {
		return append(found[:mostBecause:mostBecause], "and more")
	}
	return found
}

// vacant tells whether a value is empty.
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
