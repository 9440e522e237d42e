// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"slices"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/internal/convert/registryv1/bundle"
)

// generateServiceAccounts makes the accounts that permissions and Deployments name (S1 to S3), sorted. Every namespace has
// its own "default".
func generateServiceAccounts(in *input) ([]manifest.Manifest, []manifest.Problem) {
	names := slices.Sorted(slices.Values(in.Accounts()))
	var out []manifest.Manifest
	for _, name := range slices.Compact(names) {
		if name != bundle.DefaultAccount {
			out = append(out, in.object("v1", "ServiceAccount", in.InstallNamespace, name, nil))
		}
	}
	return out, nil
}
