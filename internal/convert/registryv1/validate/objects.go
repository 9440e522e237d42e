// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/internal/convert/registryv1/bundle"
)

func uniqueCRDs(b *bundle.Bundle) []manifest.Problem {
	first := map[string]manifest.Manifest{}
	var problems []manifest.Problem
	for _, crd := range b.CRDs {
		name := crd.Object.GetName()
		if earlier, double := first[name]; double {
			problems = append(problems, crd.Problem("V3", "the same CustomResourceDefinition is already in "+earlier.File, "keep one of them"))
			continue
		}
		first[name] = crd
	}
	return problems
}

func allowedOthers(b *bundle.Bundle) []manifest.Problem {
	var problems []manifest.Problem
	for _, m := range b.Others {
		if _, ok := bundle.KindNamed(m.Object.GetKind()); !ok {
			problems = append(problems, m.Problem("V13", "objects of this kind are not allowed in a registry+v1 bundle",
				"let the operator create it, or deploy it from a plain+v0 bundle"))
		}
	}
	return problems
}
