// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	jsonpatch "github.com/evanphx/json-patch/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/convert/registryv1/shape"
)

// Limits of a template and of a patch.
const (
	MaxTemplateBytes = 64 << 10
	MaxPatchBytes    = 16 << 10
)

// Fields of a BundleDeployment that the rollout sets, and those that are equal on all clusters.
var (
	ownFields    = []string{"source", "sourceRef", "catalog", "target.kubeConfig", "target.clusterProfileRef", "suspend", "dependsOn"}
	sharedFields = []string{"serviceAccountName", "target.namespace", "approval"}
)

// override is a patch for some clusters.
type override struct {
	selector labels.Selector
	patch    []byte
}

func readOverrides(from []v1alpha1.RolloutOverride) ([]override, error) {
	var read []override
	var problems []error
	for i := range from {
		field := fmt.Sprintf("spec.overrides[%d]", i)
		selector, err := metav1.LabelSelectorAsSelector(&from[i].Selector)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s.selector: %w", field, err))
		}
		problems = append(problems, checkPatch(field+".patch", from[i].Patch.Raw))
		read = append(read, override{selector, from[i].Patch.Raw})
	}
	return read, errors.Join(problems...)
}

// checkPatch refuses fields that a patch may not set. Whether the values fit is seen when it is merged.
func checkPatch(field string, patch []byte) error {
	if len(patch) > MaxPatchBytes {
		return fmt.Errorf("%s has %d bytes, more than %d", field, len(patch), MaxPatchBytes)
	}
	return refuseFields(field, patch, append(slices.Clone(ownFields), sharedFields...))
}

// refuseFields refuses some fields of an object.
func refuseFields(field string, object []byte, refused []string) error {
	var fields map[string]any
	if err := utiljson.Unmarshal(object, &fields); err != nil || fields == nil {
		return fmt.Errorf("%s is not an object", field)
	}
	var problems []error
	for _, path := range slices.Sorted(slices.Values(refused)) {
		switch {
		case !hasPath(fields, strings.Split(path, ".")):
		case slices.Contains(ownFields, path):
			problems = append(problems, fmt.Errorf("%s.%s is set by the rollout: remove it", field, path))
		default:
			problems = append(problems, fmt.Errorf("%s.%s has to be the same on all clusters: set it in spec.template.spec", field, path))
		}
	}
	return errors.Join(problems...)
}

// hasPath tells whether an object has a value at a path, or replaces what contains it as a whole, such as by null.
func hasPath(fields map[string]any, path []string) bool {
	value, has := fields[path[0]]
	if !has || len(path) == 1 {
		return has
	}
	within, isObject := value.(map[string]any)
	return !isObject || hasPath(within, path[1:])
}

// merge applies the patches for a cluster, in their order, as RFC 7386 defines it.
func merge(template []byte, overrides []override, clusterLabels map[string]string) ([]byte, error) {
	merged := template
	for i := range overrides {
		if !overrides[i].selector.Matches(labels.Set(clusterLabels)) {
			continue
		}
		var err error
		if merged, err = jsonpatch.MergePatch(merged, overrides[i].patch); err != nil {
			return nil, fmt.Errorf("merging spec.overrides[%d].patch: %w", i, err)
		}
		if len(merged) > MaxSpecBytes {
			return nil, &SizeError{fmt.Errorf("the spec of the BundleDeployment has more than %d bytes after spec.overrides[%d].patch: make the template or the patches smaller", MaxSpecBytes, i)}
		}
	}
	return merged, nil
}

// specShape is the type of a spec of a BundleDeployment.
var specShape = sync.OnceValue(shape.Of[v1alpha1.BundleDeploymentSpec])

// misfits names every unknown field and every value of another type.
func misfits(field string, object []byte) error {
	var value any
	if err := utiljson.Unmarshal(object, &value); err != nil {
		return fmt.Errorf("%s is not valid JSON: %w", field, err)
	}
	var problems []string
	for _, misfit := range shape.Strict(specShape(), value, shape.Path{{Key: field}}) {
		if len(problems) == mostProblems {
			problems = append(problems, "and more")
			break
		}
		problems = append(problems, misfit.String())
	}
	if len(problems) > 0 {
		return errors.New(strings.Join(problems, "; "))
	}
	return nil
}
