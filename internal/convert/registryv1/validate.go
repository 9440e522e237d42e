// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
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
	{"W2", webhookPorts},
	{"W3", webhookTypes},
}
