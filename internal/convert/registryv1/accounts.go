// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"cmp"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

const defaultAccount = "default"

// generateServiceAccounts makes the accounts that permissions and Deployments name (S1 to S3), sorted. Every namespace has
// its own "default".
func generateServiceAccounts(in *input) ([]manifest.Manifest, []manifest.Problem) {
	names := slices.Sorted(slices.Values(in.accounts()))
	var out []manifest.Manifest
	for _, name := range slices.Compact(names) {
		if name != defaultAccount {
			out = append(out, in.object("v1", "ServiceAccount", in.InstallNamespace, name, nil))
		}
	}
	return out, nil
}

// accounts are those that permissions and Deployments name, as often as they do.
func (b *Bundle) accounts() []string {
	var names []string
	for _, permissions := range [][]v1alpha1.StrategyDeploymentPermissions{b.permissions(), b.clusterPermissions()} {
		for _, p := range permissions {
			names = append(names, accountName(p))
		}
	}
	for _, d := range b.deployments() {
		pod := d.Spec.Template.Spec
		names = append(names, cmp.Or(pod.ServiceAccountName, pod.DeprecatedServiceAccount, defaultAccount))
	}
	return names
}

func accountName(p v1alpha1.StrategyDeploymentPermissions) string {
	return cmp.Or(p.ServiceAccountName, defaultAccount)
}

func (b *Bundle) permissions() []v1alpha1.StrategyDeploymentPermissions {
	return b.CSV.Spec.InstallStrategy.StrategySpec.Permissions
}

func (b *Bundle) clusterPermissions() []v1alpha1.StrategyDeploymentPermissions {
	return b.CSV.Spec.InstallStrategy.StrategySpec.ClusterPermissions
}
