// SPDX-License-Identifier: Apache-2.0

package change

import (
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/view"
)

// Suspend sets spec.suspend of an object of any kind.
func Suspend(o view.Object) Change {
	if view.Summarize(o).Suspended {
		return Change{Done: "suspended already"}
	}
	return Change{Spec: map[string]any{"suspend": true}, Done: "suspended", Commit: "commit suspend: true there, or suspend that as well"}
}

// Resume removes spec.suspend of an object of any kind. It refuses where a GitOps tool has set the field, which would set it again.
func Resume(one kit.Chosen, o Options) (Change, error) {
	if !view.Summarize(one.Object).Suspended {
		return Change{Done: "is not suspended"}, nil
	}
	if err := RefuseSet(one, o, "suspend"); err != nil {
		return Change{}, err
	}
	return Change{Spec: map[string]any{"suspend": nil}, Done: "resumed"}, nil
}

// RefuseSet refuses to remove a field of the spec that a GitOps tool has set; with --export the change is for that tool.
func RefuseSet(one kit.Chosen, o Options, path ...string) error {
	by := setBy(one.Object, path)
	if by == "" || o.Export {
		return nil
	}
	field := "spec"
	for _, name := range path {
		field += "." + name
	}
	return fmt.Errorf("%s of %s %s/%s is set by %s, which would set it again: remove it there", field, one.Kind.Name, one.Object.GetNamespace(), one.Name, view.Inline(by))
}

// byUsers are the field managers of changes that users make by hand.
var byUsers = []string{kit.FieldManager, "kubectl-edit", "kubectl-patch"}

// setBy is the GitOps tool that has set a field of the spec; empty if none has.
func setBy(o view.Object, path []string) string {
	tool := kit.Deliverer(o)
	if tool == "" {
		return ""
	}
	for _, entry := range o.GetManagedFields() {
		if !slices.Contains(byUsers, entry.Manager) && entry.Subresource == "" && hasField(entry.FieldsV1, path) {
			return tool
		}
	}
	return ""
}

// hasField tells whether managed fields have a field of the spec.
func hasField(fields *metav1.FieldsV1, path []string) bool {
	if fields == nil {
		return false
	}
	at := fields.GetRawBytes()
	for _, name := range append([]string{"spec"}, path...) {
		var owned map[string]json.RawMessage
		if json.Unmarshal(at, &owned) != nil {
			return false
		}
		var has bool
		if at, has = owned["f:"+name]; !has {
			return false
		}
	}
	return true
}
