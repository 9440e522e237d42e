// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"fmt"
	"slices"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

const (
	crdV1      = "apiextensions.k8s.io/v1"
	crdV1beta1 = "apiextensions.k8s.io/v1beta1"
)

// crdShape leaves metadata and status to others: the former is trimmed already, the latter dropped.
var crdShape = func() *shape {
	s := *shapeOf[apiextensions.CustomResourceDefinition]()
	s.fields["metadata"] = field{shape: &shape{}}
	s.missing = nil
	delete(s.fields, "status")
	return &s
}()

// readCRD brings a CustomResourceDefinition into the form of v1 (P10, P11).
func readCRD(m manifest.Manifest) (manifest.Manifest, []manifest.Problem) {
	switch m.Object.GetAPIVersion() {
	case crdV1:
	case crdV1beta1:
		if problems := upgradeCRD(m); len(problems) > 0 {
			return m, problems
		}
	default:
		return m, []manifest.Problem{m.Problem("P10", "the apiVersion is not one of a CustomResourceDefinition", "write it in "+crdV1)}
	}
	var problems []manifest.Problem
	for _, wrong := range fit(crdShape, m.Object.Object) {
		problems = append(problems, m.Problem("P10", wrong.String(), "correct the type"))
	}
	return m, problems
}

// crdField reads a text of a CRD's spec; empty where it is missing.
func crdField(crd manifest.Manifest, fields ...string) string {
	value, _, _ := unstructured.NestedString(crd.Object.Object, append([]string{"spec"}, fields...)...)
	return value
}

func generateCRDs(in *input) ([]manifest.Manifest, []manifest.Problem) {
	var problems []manifest.Problem
	converted := map[string]bool{}
	for _, w := range in.conversionWebhooks() {
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
	for _, crd := range in.CRDs {
		if name := crd.Object.GetName(); crdField(crd, "conversion", "strategy") == "Webhook" && !converted[name] {
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
	in.warn("CustomResourceDefinition %s%s brings a conversion webhook that the bundle does not define; its objects can be read in other versions only where that one answers", names[0], more)
}
