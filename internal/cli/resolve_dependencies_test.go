// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/tests/clirig"
)

// platformFiles goes to a folder with the catalog platform.yaml, and returns where the test was.
func platformFiles(t *testing.T) string {
	t.Helper()
	before, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	platform, err := os.ReadFile(filepath.Join("testdata", "resolve", "platform.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(writeFiles(t, map[string]string{"platform/catalog.yaml": string(platform), "web.yaml": `apiVersion: satchel.dev/v1alpha1
kind: BundleDeployment
metadata: {name: web, namespace: demo}
spec:
  serviceAccountName: web-installer
  interval: 5m
  dependsOn: [{name: network}, {name: cache}]
  approval: {mode: Manual}
  catalog: {package: portal, version: ">=1", channels: [stable], lock: {bundle: portal.v1.0.0, image: "registry.example.org/portal@sha256:` + strings.Repeat("1", 64) + `"}}
`}))
	return before
}

func TestResolveWithDependencies(t *testing.T) {
	before := platformFiles(t)
	const platform = "--catalog=platform=platform"
	var text strings.Builder
	for _, line := range [][]string{
		{"portal", platform},
		{"portal", platform, "-o", "json"},
		{"portal", platform, "-o", "yaml", "--channel", "stable", "--service-account", "portal-installer"},
		{"database", platform},
		{"portal", platform, "--version", "1.x"},
		{"portal", platform, "--version", "3.x"},
		{"portall", platform},
		{"portal", platform, "--write", "x.yaml"},
		{"portal", platform, "--service-account", "x"},
		{"-f", "x.yaml", platform},
		{"-f", "web.yaml", platform},
		{"-f", "web.yaml", platform, "-o", "yaml"},
		{"-f", "web.yaml", platform, "-o", "yaml", "--service-account", "other"},
		{"-f", "web.yaml", platform, "--version", "1.x"},
	} {
		got := satchel(t, append([]string{"resolve", "--with-dependencies"}, line...)...)
		if slices.Contains(line, "yaml") && got.Code == kit.ExitOK && clirig.Admitted(t, got.Out) == 0 {
			t.Errorf("%q prints no object: %s", line, got)
		}
		fmt.Fprintf(&text, "# resolve --with-dependencies %s\n%s\n", strings.Join(line, " "), got)
	}
	t.Chdir(before)
	golden(t, "resolve/dependencies", text.String())
}

// TestResolveWithDependenciesOfCluster: the answer about a catalog of the cluster is that about its files, less what the cluster
// has.
func TestResolveWithDependenciesOfCluster(t *testing.T) {
	c := newCatalogCluster(t)
	platformFiles(t)
	c.serve("platform", "platform")
	files := satchel(t, "resolve", "portal", "--with-dependencies", "-o", "json", "--catalog=platform=platform")
	served := c.Satchel("resolve", "portal", "--with-dependencies", "-o", "json")
	if served.Out != files.Out || served.Code != 0 {
		t.Fatalf("of the cluster: %s\nof the files: %s", served, files)
	}
	c.Create(aDeployment(func(d *v1alpha1.BundleDeployment) {
		d.Name = "store"
		d.Status.Healthy.Package = &v1alpha1.PackageStatus{Name: "database", Version: "1.2.0"}
	}))
	served = c.Satchel("resolve", "portal", "--with-dependencies", "-o", "yaml")
	for _, want := range []string{"- name: store", "BundleDeployment store has installed version 1.2.0", "name: cache"} {
		if !strings.Contains(served.Out+served.Err, want) {
			t.Errorf("%q is missing in: %s", want, served)
		}
	}
	if strings.Contains(served.Out, "package: database") {
		t.Errorf("what is installed is installed again: %s", served)
	}
	// A BundleDeployment of the package itself is no dependency of its own.
	c.Create(aDeployment(func(d *v1alpha1.BundleDeployment) {
		d.Name = "web"
		d.Spec.Source, d.Spec.SourceRef = nil, nil
		d.Spec.Catalog = &v1alpha1.CatalogPackage{Package: "portal"}
		d.Status.Healthy.Package = &v1alpha1.PackageStatus{Name: "portal", Version: "1.0.0"}
		d.Status.Catalog = &v1alpha1.CatalogPackageStatus{
			Installed: &v1alpha1.InstalledBundle{Bundle: "portal.v1.0.0", Version: "1.0.0"}, Resolved: &v1alpha1.ResolvedBundle{Bundle: "portal.v1.0.0"},
		}
	}))
	served = c.Satchel("resolve", "deployment/web", "--with-dependencies", "-o", "yaml")
	for _, want := range []string{"name: web\n", "- name: store\n", "- name: cache\n", "version: 2.0.0\n"} {
		if !strings.Contains(served.Out, want) || served.Code != 1 {
			t.Errorf("%q is missing for the deployment: %s", want, served)
		}
	}
	got := c.Satchel("resolve", "portal", "--with-dependencies", "--version", "1.x")
	if got.Code != 2 || !strings.Contains(got.Err, "upgrade the BundleDeployment store first") {
		t.Errorf("another version is installed: %s", got)
	}
}
