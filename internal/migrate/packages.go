// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// nameLabel is the label with the name of a ClusterCatalog, which OLM v1 sets.
const nameLabel = "olm.operatorframework.io/metadata.name"

// follow notes the spec.catalog with which upgrades come from catalogs. It replaces spec.source after the installed objects
// are adopted, because it needs a BundleCatalog that is ready, and the image in spec.source does not.
func (r *reading) follow(c v1alpha1.CatalogPackage) {
	if c.Package == "" {
		return
	}
	text, _ := json.Marshal(c) //nolint:errchkjson // it consists of types that can always be encoded
	r.note("spec.source keeps the installed version; to get upgrades from catalogs, write this in place of spec.source once the objects are adopted: catalog: %s", text)
}

// subscribed is the spec.catalog of a Subscription.
func (r *reading) subscribed(packageName, installed, channel, source string) v1alpha1.CatalogPackage {
	c := v1alpha1.CatalogPackage{Package: packageName, Installed: installedBundle(installed, "")}
	if channel != "" {
		c.Channels = []string{channel}
	}
	if source != "" {
		c.Catalogs = []string{source}
	}
	return c
}

// installedBundle is where upgrades start; nil if it is not known. The names of bundles end in their versions by convention.
func installedBundle(name, version string) *v1alpha1.CatalogInstalled {
	if version == "" {
		_, version, _ = strings.Cut(name, ".v")
	}
	if name == "" || version == "" {
		return nil
	}
	return &v1alpha1.CatalogInstalled{Bundle: name, Version: version}
}

// selected reads which catalogs a ClusterExtension chooses from.
func (r *reading) selected(c *v1alpha1.CatalogPackage, catalog fields) {
	var selector metav1.LabelSelector
	if !catalog.decode("selector", &selector) {
		return
	}
	if name, found := selector.MatchLabels[nameLabel]; found && len(selector.MatchLabels) == 1 && len(selector.MatchExpressions) == 0 {
		c.Catalogs = []string{name}
		return
	}
	if slices.Contains(slices.Collect(maps.Keys(selector.MatchLabels)), nameLabel) {
		r.note("BundleCatalogs do not have the label %s: name them in catalogs, or give them the label", nameLabel)
	}
	c.CatalogSelector = &selector
}

// upgrades reads how a ClusterExtension is upgraded.
func (r *reading) upgrades(c *v1alpha1.CatalogPackage, catalog fields) {
	switch policy := catalog.text("upgradeConstraintPolicy"); policy {
	case "", "CatalogProvided":
	case "SelfCertified":
		c.UpgradePolicy = v1alpha1.UpgradeSelfCertified
		c.Downgrade = v1alpha1.DowngradeAllow
	default:
		r.note("%s %s is unknown, and has no effect", catalog.at("upgradeConstraintPolicy"), quoted(policy))
	}
}
