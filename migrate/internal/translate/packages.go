// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// nameLabel is the label with the name of a ClusterCatalog, which OLM v1 sets.
const nameLabel = "olm.operatorframework.io/metadata.name"

// install says where the bundle comes from: from catalogs, as spec.catalog. The adoption upgrades nothing: what is installed is
// fixed by its digest, or by its version. An image that the user gave for the object, and one of which the bundle is not
// known, become spec.source.
func (r *reading) install(d *v1alpha1.BundleDeployment, c v1alpha1.CatalogPackage, installed, image string) {
	given := r.in.image(r.Manifest)
	switch {
	case given != "" || image != "" && c.Installed == nil:
		d.Spec.Source = pinned(firstOf(given, image))
		r.follow(c)
		return
	case c.Package == "":
		r.refuse(ruleMissing, "it names no package", "correct it, or add --image "+r.Object.GetName()+"=IMAGE")
		return
	case c.Installed == nil && installed != "":
		r.refuse(ruleMissing, "neither the version nor the image of "+quoted(installed)+", which is installed, is known",
			"add --image "+r.Object.GetName()+"=IMAGE, or what the installer wrote about it: an InstallPlan, a ClusterServiceVersion or a revision")
		return
	case c.Installed == nil:
		r.note("nothing says that a bundle is installed: the newest one that spec.catalog permits will be")
	case digestPattern.MatchString(image):
		c.Lock = &v1alpha1.CatalogLock{Bundle: c.Installed.Bundle, Image: image}
		r.note("spec.catalog.lock keeps %s, which is installed: remove it to get upgrades, once the objects are adopted", c.Installed.Bundle)
	default:
		r.note("spec.catalog.version keeps %s, which is installed: to get upgrades, %s once the objects are adopted",
			c.Installed.Bundle, change(c.Version))
		c.Version = c.Installed.Version
	}
	d.Spec.Catalog = &c
}

// change says what to do with the version of a package to get upgrades.
func change(wanted string) string {
	if wanted == "" {
		return "remove it"
	}
	return "set it to " + quoted(wanted)
}

// digestPattern is that of spec.catalog.lock.image in the CRD.
var digestPattern = regexp.MustCompile(`^[][A-Za-z0-9._:/-]+@sha256:[0-9a-f]{64}$`)

// follow notes the spec.catalog with which upgrades come from catalogs. It can replace spec.source after the installed objects
// are adopted.
func (r *reading) follow(c v1alpha1.CatalogPackage) {
	if c.Package == "" {
		return
	}
	text, _ := json.Marshal(c) //nolint:errchkjson // it consists of types that can always be encoded
	r.note("spec.source keeps this image; to get upgrades from catalogs, write this in place of spec.source once the objects are adopted: catalog: %s", text)
}

// subscribed is the spec.catalog of a Subscription.
func (r *reading) subscribed(packageName, channel, source string) v1alpha1.CatalogPackage {
	c := v1alpha1.CatalogPackage{Package: packageName}
	if channel != "" {
		c.Channels = []string{channel}
	}
	if source != "" {
		c.Catalogs = []string{source}
	}
	return c
}

// start reads startingCSV of a Subscription. It counts only until something is installed.
func (r *reading) start(c *v1alpha1.CatalogPackage, installed, starting string) {
	if starting == "" || installed != "" {
		return
	}
	first := installedBundle(starting, "")
	if first == nil {
		r.note("spec.startingCSV %s does not end in a version: set spec.catalog.version to the version to begin with", quoted(starting))
		return
	}
	c.Version = first.Version
	r.note("spec.startingCSV %s is not installed: spec.catalog.version installs it; remove the version to get upgrades", quoted(starting))
}

// installedBundle is where upgrades start; nil if it is not known. The names of bundles end in their versions by convention.
func installedBundle(name, version string) *v1alpha1.CatalogInstalled {
	if version == "" {
		_, version, _ = strings.Cut(name, ".v")
	}
	if _, err := semver.Parse(version); err != nil || name == "" {
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
