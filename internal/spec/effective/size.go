// SPDX-License-Identifier: Apache-2.0

package effective

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// LargestSpec is how many bytes the spec of a BundleDeployment may have as JSON. A cache has all specs in memory.
const LargestSpec = 256 << 10

// sizeAnnotation is the size of a spec that was trimmed. It exists in caches only.
const sizeAnnotation = "satchel.dev/size-of-trimmed-spec"

// TrimSpec drops the fields that make a spec too large, before a cache keeps it. What identifies the target and the objects stays, so
// that they can be removed. SizeProblem refuses such a spec, and nothing is converted by it.
func TrimSpec(d *v1alpha1.BundleDeployment) {
	size := sizeOf(&d.Spec)
	if size <= LargestSpec {
		return
	}
	spec := &d.Spec
	spec.Helm, spec.Processors, spec.RegistryV1, spec.Health.Expressions = nil, nil, nil, nil
	if d.Annotations == nil {
		d.Annotations = map[string]string{}
	}
	d.Annotations[sizeAnnotation] = strconv.Itoa(size)
}

// SizeProblem is what is wrong with a spec that is too large, trimmed or not; nil if it is not.
func SizeProblem(d *v1alpha1.BundleDeployment) error {
	size, err := strconv.Atoi(d.Annotations[sizeAnnotation])
	if err != nil {
		size = sizeOf(&d.Spec)
	}
	if size <= LargestSpec {
		return nil
	}
	return fmt.Errorf("spec has %d bytes as JSON, more than %d: move values to a ConfigMap or Secret (spec.helm.valuesFrom), and patched content to the bundle", size, LargestSpec)
}

func sizeOf(spec *v1alpha1.BundleDeploymentSpec) int {
	encoded, err := json.Marshal(spec)
	if err != nil {
		return LargestSpec + 1
	}
	return len(encoded)
}
