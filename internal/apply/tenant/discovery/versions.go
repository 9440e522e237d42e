// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Versions returns all API versions and kinds that the cluster serves, as "group/version" and "group/version/Kind", sorted,
// by a recent answer of discovery; and the groups with unknown kinds because their servers do not answer.
func (k *Cache) Versions(ctx context.Context) (versions, silent []string, err error) {
	known, err := k.young(ctx)
	if err != nil {
		return nil, nil, err
	}
	return slices.Clone(known.versions), slices.Sorted(maps.Keys(known.failed)), nil
}

// versionsOf lists the versions and kinds in an answer of discovery.
func versionsOf(groups []*metav1.APIGroup, lists []*metav1.APIResourceList) []string {
	found := map[string]bool{}
	for _, group := range groups {
		for _, version := range group.Versions {
			found[version.GroupVersion] = true
		}
	}
	for _, list := range lists {
		for i := range list.APIResources {
			found[list.GroupVersion+"/"+list.APIResources[i].Kind] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}
