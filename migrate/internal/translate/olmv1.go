// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"fmt"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// migrateExtension makes a BundleDeployment of a ClusterExtension, in its present and in its first shape.
func migrateExtension(in *input, r *reading) {
	install := firstOf(r.spec.text("namespace"), r.spec.text("installNamespace"))
	account := r.spec.sub("serviceAccount").text("name")
	if account != "" {
		r.note("the ServiceAccount %s is kept; the rbac command prints the permissions that Satchel needs", account)
	}
	d := r.deployment(install, account)
	d.Spec.Format = v1alpha1.FormatRegistryV1
	installed, image := in.extensionImage(r)
	r.preflight(d)
	r.extensionConfig(d)
	registry(d).CertificateProvider = "cert-manager"
	r.note("certificates of webhooks come from cert-manager, as OLM v1 has them by default; on OpenShift choose service-ca; self-signed needs nothing")
	r.install(d, r.catalog(), installed, image)
	if r.spec.has("progressDeadlineMinutes") {
		r.spec.take("progressDeadlineMinutes")
		r.note("spec.progressDeadlineMinutes has no direct counterpart: spec.health.timeout says when a revision that is not healthy is reported as failed")
	}
	r.finish(d)
}

// extensionImage finds the bundle that is installed and its image. The image is empty if it is not known: catalogs name it, too.
func (in *input) extensionImage(r *reading) (installed, image string) {
	bundle := r.status.sub("install").sub("bundle")
	if len(bundle.left) == 0 {
		bundle = r.status.sub("installedBundle")
	}
	name, version := bundle.text("name"), bundle.text("version")
	r.installed = installedBundle(name, version)
	if in.image(r.Manifest) != "" {
		return name, ""
	}
	for _, found := range []struct{ image, from string }{
		{r.status.text("installedBundleResource"), "status.installedBundleResource"},
		{in.revisionImage(r, name), "its revision"},
		{r.conditionImage(), "the condition Installed"},
		{r.status.text("resolvedBundleResource"), "status.resolvedBundleResource"},
	} {
		if found.image != "" {
			r.note("the image is that which is installed, %s, from %s", firstOf(name, version, "without a name"), found.from)
			return name, found.image
		}
	}
	return name, ""
}

// bundleReference is where OLM v1 keeps the image of a revision.
const bundleReference = "olm.operatorframework.io/bundle-reference"

// revises tells whether a revision is that of a ClusterExtension.
func revises(revision, extension manifest.Manifest) bool {
	if kindOf(extension.Object) != olmV1Group+"/ClusterExtension" {
		return false
	}
	for _, owner := range revision.Object.GetOwnerReferences() {
		if owner.Kind == "ClusterExtension" && owner.Name == extension.Object.GetName() {
			return true
		}
	}
	return revision.Object.GetLabels()["olm.operatorframework.io/owner-name"] == extension.Object.GetName()
}

// revisionImage is the image of the revision of the bundle that is installed.
func (in *input) revisionImage(r *reading, bundle string) string {
	for _, m := range in.revisions {
		if !revises(m, r.Manifest) {
			continue
		}
		for _, marks := range []map[string]string{m.Object.GetAnnotations(), m.Object.GetLabels()} {
			of := marks["olm.operatorframework.io/bundle-name"]
			if image := marks[bundleReference]; image != "" && (bundle == "" || of == "" || of == bundle) {
				return image
			}
		}
	}
	return ""
}

// conditionImage is the image that the condition Installed names.
func (r *reading) conditionImage() string {
	for _, condition := range r.status.list("conditions") {
		if condition.text("type") == "Installed" && condition.text("status") == "True" {
			return imageIn(condition.text("message"))
		}
	}
	return ""
}

// preflight reads how changes of CRDs are judged, in both shapes.
func (r *reading) preflight(d *v1alpha1.BundleDeployment) {
	r.crdSafety(d, r.spec.sub("install").sub("preflight").sub("crdUpgradeSafety"), r.spec.sub("preflight").sub("crdUpgradeSafety"))
}

// crdSafety reads whether upgrades of CRDs are judged, in the places where it may be said.
func (r *reading) crdSafety(d *v1alpha1.BundleDeployment, places ...fields) {
	off := false
	for _, safety := range places {
		off = safety.flag("disabled") || off
		switch enforcement, at := safety.text("enforcement"), safety.at("enforcement"); enforcement {
		case "", "Strict":
		case "None":
			off = true
		default:
			r.refuse(ruleValue, fmt.Sprintf("%s is %s, not None or Strict", at, quoted(enforcement)), "correct it")
		}
		if policy := safety.text("policy"); policy == "Disabled" {
			off = true
		} else if policy != "" && policy != "Enabled" {
			r.note("%s %s is unknown, and has no effect", safety.at("policy"), quoted(policy))
		}
	}
	if off {
		d.Spec.Apply.CRDs = &v1alpha1.CRDOptions{UpgradeSafety: v1alpha1.EnforcementNone}
	}
}

// extensionConfig reads the configuration of the bundle.
func (r *reading) extensionConfig(d *v1alpha1.BundleDeployment) {
	config := r.spec.sub("config")
	if kind := config.text("configType"); kind != "" && kind != "Inline" {
		r.refuse(ruleValue, fmt.Sprintf("%s is %s, and only Inline is known", config.at("configType"), quoted(kind)), "write the configuration inline")
	}
	inline := config.sub("inline")
	if one := inline.text("watchNamespace"); one != "" {
		registry(d).WatchNamespaces = []string{one}
	}
	if deployment := inline.sub("deploymentConfig"); len(deployment.left) > 0 {
		registry(d).DeploymentConfig = r.deploymentConfig(deployment)
	}
	if several := r.spec.texts("watchNamespaces"); len(several) > 0 { // of the first shape
		registry(d).WatchNamespaces = several
	}
}

// catalog is the spec.catalog with the settings that led to the installed version.
func (r *reading) catalog() v1alpha1.CatalogPackage {
	source := r.spec.sub("source")
	if kind := source.text("sourceType"); kind != "" && kind != "Catalog" {
		r.note("%s %s is unknown, and has no effect", source.at("sourceType"), quoted(kind))
	}
	catalog := source.sub("catalog")
	if r.spec.has("packageName") { // the first shape
		catalog = fields{of: r, path: "spec", left: r.spec.left}
	}
	name, version := catalog.text("packageName"), catalog.text("version")
	channels := catalog.texts("channels")
	if one := catalog.text("channel"); one != "" {
		channels = append(channels, one)
	}
	c := v1alpha1.CatalogPackage{Package: name, Version: version, Channels: channels, Installed: r.installed}
	r.upgrades(&c, catalog)
	r.selected(&c, catalog)
	return c
}
