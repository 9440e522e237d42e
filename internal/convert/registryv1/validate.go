// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// validator looks for one kind of fault and returns one problem an offender.
type validator struct {
	rule  string
	check func(*Bundle) []manifest.Problem
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

// validatePart validates what could be read of a bundle with problems, leaving out what may follow from them.
func validatePart(b *Bundle, problems []manifest.Problem) []manifest.Problem {
	if !b.read {
		return nil
	}
	return slices.DeleteFunc(Validate(b), func(p manifest.Problem) bool {
		switch p.Rule {
		case "V4": // the CRD may be in what was not read
			return slices.ContainsFunc(problems, func(known manifest.Problem) bool { return strings.HasPrefix(known.File, manifestsFolder) })
		case "V5":
			return slices.ContainsFunc(problems, func(known manifest.Problem) bool { return known.File == annotationsFile })
		}
		return false
	})
}
