// SPDX-License-Identifier: Apache-2.0

package violation

import (
	"fmt"
	"strings"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
)

// Collides is the violation for an object of another owner, with the remedies.
func Collides(l ownership.Live, id inventory.ID, owner inventory.Owner) Violation {
	violation := Violation{
		Rule: Collision, Object: id,
		Message: fmt.Sprintf("%s exists already and %s", id, l.Holder(owner)),
	}
	switch {
	case l.HeldByAnother(owner):
		violation.Remedy = fmt.Sprintf("two deployments never share an object: to move it here from a deployment of the same namespace, leave this one as it is and remove "+
			"the object from the other one, which then hands it over with its data; to leave it there, remove it here; "+
			"if the other one is gone for good, take the labels %s and %s off the object and annotate it with %s: \"true\"",
			inventory.LabelDeployment, inventory.LabelNamespace, inventory.AnnotationOrphaned)
	case strings.HasPrefix(l.Tool, ownership.HelmRelease):
		violation.Remedy = fmt.Sprintf("adopt the whole release, without a restart, with kubectl satchel-migrate adopt %s -n %s --delete-former; "+
			"or annotate the object with %s: \"true\" or set spec.apply.collisionProtection to %s, and delete Helm's records of the release, so that helm uninstall does not delete the object",
			owner.Name, owner.Namespace, inventory.AnnotationOrphaned, ownership.None)
	case l.Controlled(owner):
		violation.Remedy = fmt.Sprintf("have that owner release it; or, to adopt it, annotate it with %s: \"true\" or set spec.apply.collisionProtection to %s",
			inventory.AnnotationOrphaned, ownership.None)
	default:
		violation.Remedy = fmt.Sprintf("remove it; or, to adopt it, annotate it with %s: \"true\" or set spec.apply.collisionProtection to %s",
			inventory.AnnotationOrphaned, ownership.IfUnmanaged)
	}
	return violation
}
