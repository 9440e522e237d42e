// SPDX-License-Identifier: Apache-2.0

package impact

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// Impact is the effect on users. The zero value is no effect. Each list is sorted.
type Impact struct {
	Permissions []Permission
	Definitions []Definition
	Images      []Image
	Restarts    []Restart
}

// None tells that nothing changes for users.
func (i Impact) None() bool {
	return len(i.Permissions)+len(i.Definitions)+len(i.Images)+len(i.Restarts) == 0
}

// Of compares all objects of a deployment before and after. Both
// sides are in the same form: as rendered, or as an API server completes them. Namespaced
// objects without a namespace are in installNamespace. The objects are not changed.
func Of(before, after []*unstructured.Unstructured, installNamespace string) Impact {
	was, will := index(before, installNamespace), index(after, installNamespace)
	return Impact{
		Permissions: permissions(was, will),
		Definitions: definitionChanges(was, will),
		Images:      images(was, will),
		Restarts:    restarts(was, will),
	}
}

// objects are the relevant ones of one side, by identity.
type objects map[inventory.ID]*unstructured.Unstructured

func index(list []*unstructured.Unstructured, installNamespace string) objects {
	all := objects{}
	for _, object := range list {
		if object == nil {
			continue
		}
		id := inventory.IDOf(object)
		_, workload := templates[id.GroupKind()]
		switch {
		case clusterKinds[id.GroupKind()]:
			id.Namespace = ""
		case !workload && !namespacedAccess[id.GroupKind()]:
			continue
		case id.Namespace == "":
			id.Namespace = installNamespace
		}
		all[id] = object
	}
	return all
}

// ids are those of both sides, sorted.
func ids(was, will objects) []inventory.ID {
	var list []inventory.ID
	for id := range will {
		list = append(list, id)
	}
	for id := range was {
		if will[id] == nil {
			list = append(list, id)
		}
	}
	slices.SortFunc(list, inventory.ID.Compare)
	return list
}
