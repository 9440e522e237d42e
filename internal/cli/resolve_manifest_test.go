// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
)

// ordersDeployment is a BundleDeployment with a spec.catalog; further lines belong to it.
func ordersDeployment(name string, lines ...string) string {
	text := "apiVersion: satchel.dev/v1alpha1\nkind: BundleDeployment\nmetadata: {name: " + name + ", namespace: demo}\n" +
		"spec:\n  serviceAccountName: installer\n  catalog:\n    package: orders\n"
	for _, line := range lines {
		text += "    " + line + "\n"
	}
	return text
}

// lockOf is the lock of a bundle, of which the digest is one digit.
func lockOf(bundle, digit string) string {
	return "lock: {bundle: " + bundle + ", image: registry.example.org/orders@sha256:" + strings.Repeat(digit, 64) + "}"
}

// ordersFiles writes the catalog of the package orders and other files, goes where they are, and returns where the test was.
func ordersFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	before, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	orders, err := os.ReadFile(filepath.Join("testdata", "resolve", "orders.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	files["catalog/orders.yaml"] = string(orders)
	t.Chdir(writeFiles(t, files))
	return before
}

func TestResolveManifest(t *testing.T) {
	installed := "installed: {bundle: orders.v1.0.0, version: 1.0.0}"
	before := ordersFiles(t, map[string]string{
		"new.yaml":       ordersDeployment("new", "version: 1.x"),
		"installed.yaml": ordersDeployment("installed", installed, "channels: [stable]"),
		"locked.yaml":    ordersDeployment("locked", lockOf("orders.v1.0.0", "a")),
		"newest.yaml":    ordersDeployment("newest", lockOf("orders.v2.0.0", "c")),
		"rebuilt.yaml":   ordersDeployment("rebuilt", lockOf("orders.v2.0.0", "d")),
		"far.yaml":       ordersDeployment("far", lockOf("orders.v1.0.0", "a"), "version: 2.x"),
		"self.yaml":      ordersDeployment("self", lockOf("orders.v2.0.0", "c"), "version: 1.x", "upgradePolicy: SelfCertified", "downgrade: Allow"),
		"lost.yaml":      ordersDeployment("lost", lockOf("orders.v0.9.0", "e")),
		"known.yaml":     ordersDeployment("known", lockOf("orders.v1.0.5", "e"), "installed: {bundle: orders.v1.0.5, version: 1.0.5}"),
		"named.yaml":     ordersDeployment("named", "catalogs: [mirror]"),
		"selected.yaml":  ordersDeployment("selected", "catalogSelector: {matchLabels: {tier: upstream}}"),
		"wrong.yaml":     ordersDeployment("wrong", "chanels: [stable]"),
		"image.yaml": "apiVersion: satchel.dev/v1alpha1\nkind: BundleDeployment\nmetadata: {name: image}\n" +
			"spec:\n  serviceAccountName: installer\n  source:\n    sources:\n    - image: {reference: \"registry.example.org/orders:v1\"}\n",
		"both/a.yaml": ordersDeployment("a"), "both/b.yaml": ordersDeployment("b", "version: 1.0.0"),
	})
	const community = "--catalog=community=catalog"
	var text strings.Builder
	for _, line := range [][]string{
		{"-f", "new.yaml", community},
		{"-f", "new.yaml", community, "-o", "json"},
		{"-f", "installed.yaml", community},
		{"-f", "installed.yaml", community, "--installed", "orders.v1.1.0@1.1.0"},
		{"-f", "locked.yaml", community},
		{"-f", "locked.yaml", community, "-o", "json"},
		{"-f", "newest.yaml", community},
		{"-f", "rebuilt.yaml", community},
		{"-f", "far.yaml", community},
		{"-f", "self.yaml", community},
		{"-f", "lost.yaml", community},
		{"-f", "lost.yaml", community, "--installed", "orders.v1.0.0@1.0.0"},
		{"-f", "known.yaml", community},
		{"-f", "named.yaml", community},
		{"-f", "named.yaml", community, "--catalog=mirror=catalog"},
		{"-f", "selected.yaml", community},
		{"-f", "both", "b", community},
		{"-f", "both", community},
		{"-f", "both", "c", community},
		{"-f", "wrong.yaml", community},
		{"-f", "image.yaml", community},
		{"-f", "missing.yaml", community},
		{"-f", "new.yaml", "new", "orders", community},
		{"-f", "new.yaml", "--version", "2.x", community},
		{"deployment/new", "--channel", "stable", community},
		{"source/new", community},
	} {
		got := satchel(t, append([]string{"resolve"}, line...)...)
		fmt.Fprintf(&text, "# resolve %s\n%s\n", strings.Join(line, " "), got)
	}
	t.Chdir(before)
	golden(t, "resolve/manifests", text.String())
}

// TestResolveDeployment: upgrades of a BundleDeployment of the cluster start from what is installed, in the catalogs that it searches.
func TestResolveDeployment(t *testing.T) {
	c := newCatalogCluster(t)
	ordersFiles(t, map[string]string{"new.yaml": ordersDeployment("new")})
	c.serve("community", "catalog", func(o *v1alpha1.BundleCatalog) { o.Labels = map[string]string{"tier": "upstream"} })
	c.serve("mirror", "catalog", func(o *v1alpha1.BundleCatalog) { o.Spec.Priority = 10 })
	d := &v1alpha1.BundleDeployment{}
	d.Name = "orders"
	d.Spec.ServiceAccountName = "installer"
	d.Spec.Catalog = &v1alpha1.CatalogPackage{Package: "orders", Catalogs: []string{"community"}}
	d.Status.Catalog = &v1alpha1.CatalogPackageStatus{
		Installed: &v1alpha1.InstalledBundle{Bundle: "orders.v1.0.0", Version: "1.0.0"},
		Resolved:  &v1alpha1.ResolvedBundle{Bundle: "orders.v1.1.0", Reference: "r", Query: "q", Input: "i"},
	}
	c.Create(d)
	c.Want(c.Satchel("resolve", "deployment/orders"), kit.ExitOK, "Bundle     orders.v1.1.0", "Catalog    community")
	c.Want(c.Satchel("resolve", "deployment", "orders", "--installed", "orders.v1.1.0@1.1.0"), kit.ExitNo, "Change     orders.v1.1.0 -> orders.v2.0.0")
	c.Want(c.Satchel("resolve", "deployment/order"), kit.ExitError, `there is no BundleDeployment "order"`)
	c.Want(c.Satchel("resolve", "orders"), kit.ExitOK, "Catalog    mirror")

	selected := &v1alpha1.BundleDeployment{}
	selected.Name = "selected"
	selected.Spec.ServiceAccountName = "installer"
	selected.Spec.Catalog = &v1alpha1.CatalogPackage{Package: "orders"}
	selected.Spec.Catalog.CatalogSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "upstream"}}
	c.Create(selected)
	c.Want(c.Satchel("resolve", "deployment/selected"), kit.ExitOK, "Catalog    community")
}
