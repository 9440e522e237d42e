// SPDX-License-Identifier: Apache-2.0

package kustomize

import "sigs.k8s.io/kustomize/kyaml/openapi"

// builtInSchema is the version that kustomize has before any kustomization is built.
var builtInSchema = openapi.GetSchemaVersion()

// Reset drops an OpenAPI schema that an earlier build left in the process: kustomize keeps it in a global variable, and it
// changes how the next kustomization is merged. What is refused sets none, so that mostly there is nothing to do.
func Reset() {
	if openapi.GetSchemaVersion() != builtInSchema {
		openapi.ResetOpenAPI()
	}
}
