// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"cmp"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// DefaultAccount is the ServiceAccount that every namespace has.
const DefaultAccount = "default"

// Accounts are those that permissions and Deployments name, as often as they do.
func (b *Bundle) Accounts() []string {
	var names []string
	for _, permissions := range [][]v1alpha1.StrategyDeploymentPermissions{b.Permissions(), b.ClusterPermissions()} {
		for _, p := range permissions {
			names = append(names, AccountName(p))
		}
	}
	for _, d := range b.Deployments() {
		pod := d.Spec.Template.Spec
		names = append(names, cmp.Or(pod.ServiceAccountName, pod.DeprecatedServiceAccount, DefaultAccount))
	}
	return names
}

// AccountName is the ServiceAccount that gets permissions.
func AccountName(p v1alpha1.StrategyDeploymentPermissions) string {
	return cmp.Or(p.ServiceAccountName, DefaultAccount)
}

// Permissions are those that the operator needs in the namespaces that it watches.
func (b *Bundle) Permissions() []v1alpha1.StrategyDeploymentPermissions {
	return b.CSV.Spec.InstallStrategy.StrategySpec.Permissions
}

// ClusterPermissions are those that it needs in the whole cluster.
func (b *Bundle) ClusterPermissions() []v1alpha1.StrategyDeploymentPermissions {
	return b.CSV.Spec.InstallStrategy.StrategySpec.ClusterPermissions
}

// Deployments are what the CSV installs.
func (b *Bundle) Deployments() []v1alpha1.StrategyDeploymentSpec {
	return b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
}

// Webhooks of the given types, all without any, in the order of the CSV.
func (b *Bundle) Webhooks(types ...v1alpha1.WebhookAdmissionType) []v1alpha1.WebhookDescription {
	if len(types) == 0 {
		return b.CSV.Spec.WebhookDefinitions
	}
	var out []v1alpha1.WebhookDescription
	for _, w := range b.CSV.Spec.WebhookDefinitions {
		if slices.Contains(types, w.Type) {
			out = append(out, w)
		}
	}
	return out
}

// RelatedImages are the images that the CSV lists, in its order.
func (b *Bundle) RelatedImages() []string {
	var images []string
	for _, related := range b.CSV.Spec.RelatedImages {
		images = append(images, related.Image)
	}
	return images
}

// OwnedCRDs are the names in the CSV, sorted and without repetitions.
func (b *Bundle) OwnedCRDs() []string {
	var names []string
	for _, owned := range b.CSV.Spec.CustomResourceDefinitions.Owned {
		names = append(names, owned.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// CRD finds a CustomResourceDefinition of the bundle by name.
func (b *Bundle) CRD(name string) (manifest.Manifest, bool) {
	if b.byName == nil {
		b.byName = make(map[string]manifest.Manifest, len(b.CRDs))
		for _, crd := range b.CRDs {
			b.byName[crd.Object.GetName()] = crd
		}
	}
	crd, ok := b.byName[name]
	return crd, ok
}

// ConversionWebhooks are the webhooks that convert custom resources.
func (b *Bundle) ConversionWebhooks() []v1alpha1.WebhookDescription {
	return b.Webhooks(v1alpha1.ConversionWebhook)
}
