// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Served asks, bypassing the cache, whether a kind is served in some version: one small
// request while its group does not exist, and one more for each version when it does. It
// does not change the cache: see Forget.
func (k *Cache) Served(ctx context.Context, kind schema.GroupKind) (bool, error) {
	var group metav1.APIGroup
	found, err := k.read(ctx, &group, "/apis", kind.Group)
	if err != nil || !found {
		return false, err
	}
	for _, version := range group.Versions {
		var resources metav1.APIResourceList
		if _, err := k.read(ctx, &resources, "/apis", kind.Group, version.Version); err != nil {
			return false, err
		}
		for i := range resources.APIResources {
			if resources.APIResources[i].Kind == kind.Kind {
				return true, nil
			}
		}
	}
	return false, nil
}

// read gets one document of discovery; false when there is none.
func (k *Cache) read(ctx context.Context, into runtime.Object, path ...string) (bool, error) {
	err := k.small.RESTClient().Get().AbsPath(path...).SetHeader("Accept", "application/json").Do(ctx).Into(into)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("asking the API server for the group %s: %w", path[1], err)
	}
	return true, nil
}
