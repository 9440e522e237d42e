// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

func upgradeCRD(m manifest.Manifest) []manifest.Problem {
	return []manifest.Problem{m.Problem("P10", "v1beta1", "")}
}
