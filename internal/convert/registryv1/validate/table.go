// SPDX-License-Identifier: Apache-2.0

// Package validate finds what is wrong with a registry+v1 bundle that was read: a table of rules, each a pure function that
// names every offender. The problems of reading are found by package bundle.
package validate

import (
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/internal/convert/registryv1/bundle"
)

// validator looks for one kind of fault and returns one problem an offender.
type validator struct {
	rule  string
	check func(*bundle.Bundle) []manifest.Problem
}

// validators all run, whatever the others find.
var validators = []validator{
	{"C1", noOwnedAPIServices},
	{"C4", usableInstallModes},
	{"V1", uniqueDeployments},
	{"V2", deploymentNames},
	{"V3", uniqueCRDs},
	{"V4", ownedCRDsPresent},
	{"V5", packageName},
	{"V6", conversionNeedsAllNamespaces},
	{"V7", webhookDeployments},
	{"V8", uniqueWebhooks},
	{"V9", webhookNames},
	{"V10", oneConversionWebhook},
	{"V11", conversionOfOwned},
	{"V12", forbiddenRules},
	{"V13", allowedOthers},
	{"V14", noPreservedFields},
	{"D1", deploymentContainers},
	{"S1", accountNames},
	{"W2", webhookPorts},
	{"W3", webhookTypes},
}

// CheckPart validates what could be read of a bundle with problems, leaving out what may follow from them.
func CheckPart(b *bundle.Bundle, problems []manifest.Problem) []manifest.Problem {
	if !b.HasCSV {
		return nil
	}
	return slices.DeleteFunc(Check(b), func(p manifest.Problem) bool {
		switch p.Rule {
		case "V4": // the CRD may be in what was not read
			return slices.ContainsFunc(problems, func(known manifest.Problem) bool { return strings.HasPrefix(known.File, bundle.ManifestsFolder) })
		case "V5":
			return slices.ContainsFunc(problems, func(known manifest.Problem) bool { return known.File == bundle.AnnotationsFile })
		}
		return false
	})
}

// Check runs all validators and returns all that they find.
func Check(b *bundle.Bundle) []manifest.Problem {
	var problems []manifest.Problem
	for _, v := range validators {
		problems = append(problems, v.check(b)...)
	}
	return problems
}
