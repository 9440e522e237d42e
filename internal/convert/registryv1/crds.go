// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"fmt"
	"slices"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/internal/convert/registryv1/crd"
)

func generateCRDs(in *input) ([]manifest.Manifest, []manifest.Problem) {
	var problems []manifest.Problem
	converted := map[string]bool{}
	for _, w := range in.ConversionWebhooks() {
		for _, name := range w.ConversionCRDs {
			problems = append(problems, in.convert(name, w)...)
			converted[name] = true
		}
	}
	in.warnOfForeignConversion(converted)
	return in.CRDs, problems
}

// warnOfForeignConversion names the CRDs with a conversion webhook outside of the bundle: OLM passes them on unchanged, and
// their objects can be read only where that webhook runs.
func (in *input) warnOfForeignConversion(converted map[string]bool) {
	var names []string
	for _, m := range in.CRDs {
		if name := m.Object.GetName(); crd.Field(m, "conversion", "strategy") == "Webhook" && !converted[name] {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	more := ""
	if len(names) > 1 {
		more = fmt.Sprintf(" (and %d more)", len(names)-1)
	}
	in.Warn("CustomResourceDefinition %s%s brings a conversion webhook that the bundle does not define; its objects can be read in other versions only where that one answers", names[0], more)
}
