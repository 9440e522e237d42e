// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// IsNamespace tells whether an object is a namespace.
func IsNamespace(id inventory.ID) bool { return id.Group == "" && id.Kind == "Namespace" }
