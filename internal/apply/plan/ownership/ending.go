// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// Ending is what annotations of a live object say about its deletion. They are read from
// the live object, which has those of the bundle that was applied last: users who may
// annotate an object can protect it, too, but not cause its deletion.
type Ending struct {
	Unpruned bool   // it is kept when it leaves the bundle
	Kept     string // the annotation that keeps it in any case; empty: none
	Timing   string // BeforeApply, AfterHealthy, or what the deployment says
}

// endingOf reads the annotations. A protecting annotation holds with any value except
// the opposite: a misspelt value must not cost data.
func endingOf(annotations map[string]string) Ending {
	protects := func(key, unless string) bool {
		value, found := annotations[key]
		return found && !strings.EqualFold(value, unless)
	}
	return Ending{
		Unpruned: protects(v1alpha1.PruneAnnotation, "Enabled"),
		Kept:     keptBy(protects, v1alpha1.DeletionPolicyAnnotation, v1alpha1.ResourcePolicyAnnotation),
		Timing:   annotations[v1alpha1.PruneTimingAnnotation],
	}
}

// keptBy returns the first of the annotations that protect an object from any deletion.
func keptBy(protects func(key, unless string) bool, keys ...string) string {
	at := slices.IndexFunc(keys, func(key string) bool { return protects(key, string(v1alpha1.DeletionDelete)) })
	if at < 0 {
		return ""
	}
	return keys[at]
}
