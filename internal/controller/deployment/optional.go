// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// awaitKinds waits for the kinds of the objects that were skipped.
func (r *Reconciler) awaitKinds(s *state, made plan.Plan) {
	var kinds []schema.GroupKind
	seen := map[schema.GroupKind]bool{}
	for _, id := range made.Skipped {
		if !seen[id.GroupKind()] {
			seen[id.GroupKind()] = true
			kinds = append(kinds, id.GroupKind())
		}
	}
	r.kinds.Set(s.Key(), s.resolved.Access.Client.Kinds(), kinds)
}

// mostSkippedNamed is how many skipped objects a message names.
const mostSkippedNamed = 5

// skippedText names the objects that a plan skips until their kinds are served; "" for
// none.
func skippedText(skipped []inventory.ID) string {
	if len(skipped) == 0 {
		return ""
	}
	named, more := skipped, ""
	if len(named) > mostSkippedNamed {
		named, more = named[:mostSkippedNamed], fmt.Sprintf(" and %d more", len(skipped)-mostSkippedNamed)
	}
	return fmt.Sprintf("; %d of spec.optionalKinds left out until their kinds are served: %s%s", len(skipped), pipeline.JoinNames(named), more)
}
