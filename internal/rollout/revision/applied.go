// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// Applied is what is applied: the rendered fields and no other, so that people may add fields. live is the BundleDeployment that is
// written over, with its version; nil if there is none.
func (c *Child) Applied(namespace string, live *v1alpha1.BundleDeployment) (*unstructured.Unstructured, error) {
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&c.Spec)
	if err != nil {
		return nil, fmt.Errorf("encoding the spec of bundledeployment %s/%s: %w", namespace, c.Name, err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.BundleDeploymentKind))
	object.SetNamespace(namespace)
	object.SetName(c.Name)
	object.SetLabels(c.Labels)
	object.SetAnnotations(c.Annotations)
	if live != nil {
		object.SetUID(live.UID)
		object.SetResourceVersion(live.ResourceVersion)
	}
	return object, nil
}
