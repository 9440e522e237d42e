// SPDX-License-Identifier: Apache-2.0

package violation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
)

// Lineage is the chain of deployments that created a deployment by their bundles. None may
// contain one of its own lineage: it would change itself, and at its removal each would wait for
// the other to be deleted.
type Lineage struct {
	// Members describe the deployment itself and its ancestors, by the UIDs of their objects.
	Members map[types.UID]string
	// Depth is the number of ancestors.
	Depth int
}

// MostNested is the maximum number of ancestors of a deployment that another one creates.
const MostNested = 8

// IsDeployment tells whether an object is a BundleDeployment.
func IsDeployment(id inventory.ID) bool {
	return id.Group == v1alpha1.GroupVersion.Group && id.Kind == v1alpha1.BundleDeploymentKind
}

// Forbids says why an object must not be in the bundle; nil when it may.
func (l Lineage) Forbids(id inventory.ID, live ownership.Live) *Violation {
	if who, found := l.Members[live.UID]; found && live.UID != "" {
		return &Violation{Rule: Recursion, Object: id, Message: fmt.Sprintf("%s is %s", id, who), Remedy: "take it out of the bundle"}
	}
	if IsDeployment(id) && l.Depth >= MostNested {
		return &Violation{
			Rule: Recursion, Object: id,
			Message: fmt.Sprintf("%s would be one more deployment that another one brings, and %d are above it already", id, l.Depth+1),
			Remedy:  "take it out of the bundle, and create it beside this one",
		}
	}
	return nil
}
