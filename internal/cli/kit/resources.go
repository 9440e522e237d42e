// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SystemNamespace is where the controllers are, unless a flag says otherwise.
const SystemNamespace = "satchel-system"

// DefinitionsResource is the resource of CRDs.
var DefinitionsResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// CoreResource is the resource of a kind of the core API that a spec refers to: Secret, ConfigMap or ServiceAccount.
func CoreResource(kind string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: strings.ToLower(kind) + "s"}
}

// SecretResource are the Secrets.
var SecretResource = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
