// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"testing"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// TestC32ResolvesWithoutTheServer resolves a package from what was read before, while the source controller is away, by a deployment
// controller that was started since: C32.
func TestC32ResolvesWithoutTheServer(t *testing.T) {
	r := newRig(t)
	r.alone(t)
	source, server := r.sources(t, "source-away")
	cache := "--cache-path=" + t.TempDir()
	controller := r.deployments(t, "deployment-before", []string{server}, cache)
	c := r.shopping(t)
	_, v1 := c.bundle(t, "1.0.0")
	_, v11 := c.bundle(t, "1.1.0")
	c.catalog(t, "", entry{"1.0.0", v1, ""}, entry{"1.1.0", v11, `,"replaces":"shop.v1.0.0"`})
	c.install(t, func(d *v1alpha1.BundleDeployment) { d.Spec.Catalog.Version = "<1.1.0" })
	c.runs(t, "1.0.0")

	source.kill()
	controller.kill()
	r.deployments(t, "deployment-after", []string{server}, cache)
	c.corrects(t, "1.0.0")
	c.change(t, func(d *v1alpha1.BundleDeployment) { d.Spec.Catalog.Version = "" })
	c.until(t, "1.1.0 is resolved", func(d *v1alpha1.BundleDeployment) bool {
		return d.Status.Catalog.Resolved.Bundle == "shop.v1.1.0" && d.Status.Catalog.Resolved.Image == v11 && d.Status.Catalog.Installed.Version == "1.0.0"
	})
}
