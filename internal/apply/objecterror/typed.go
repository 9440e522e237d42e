// SPDX-License-Identifier: Apache-2.0

package objecterror

import (
	"strings"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

const (
	untyped    = "failed to create typed patch object ("
	undeclared = "field not declared in schema"
	doubleKey  = "duplicate entries for key"
)

// Mistyped tells whether the API server could not read what was applied by the schema of its kind, which it reports as an internal
// error: the same request will always be refused. An undeclared field of a custom resource is none of these, since the API server
// may not have loaded the newest CRD yet.
func Mistyped(id inventory.ID, err error) bool {
	if err == nil {
		return false
	}
	text := err.Error()
	custom := strings.Contains(id.Group, ".") && !strings.HasSuffix(id.Group, ".k8s.io")
	return strings.Contains(text, untyped) && (!custom || !strings.Contains(text, undeclared))
}

// mistyped adds to a message of Mistyped what to do.
func mistyped(message string) string {
	if strings.Contains(message, doubleKey) {
		return "a list has two items with the same key: keep one of them in the bundle: " + message
	}
	return "the object does not fit the schema of its kind: correct it in the bundle: " + message
}
