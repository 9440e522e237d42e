// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// TestCatalogOfSubscription: the bundle comes from catalogs, and the adoption upgrades nothing.
func TestCatalogOfSubscription(t *testing.T) {
	const (
		digest = "r.example.org/gadget@sha256:3333333333333333333333333333333333333333333333333333333333333333"
		plan   = `
---
apiVersion: operators.coreos.com/v1alpha1
kind: InstallPlan
metadata: {name: plan, namespace: demo}
status: {bundleLookups: [{identifier: gadget.v1.2.0, path: "IMAGE"}, {identifier: gadget.latest, path: "IMAGE"}]}`
		csv = `
---
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: gadget.latest, namespace: demo}
spec: {version: 1.4.0}`
	)
	installed := &v1alpha1.CatalogInstalled{Bundle: "gadget.v1.2.0", Version: "1.2.0"}
	for name, tt := range map[string]struct {
		reason  string
		fields  string // of the Subscription, after its spec.name
		beside  string
		image   string // of --image
		want    v1alpha1.CatalogPackage
		source  string
		note    string
		refusal string
	}{
		"image by digest": {
			reason: "it is what runs, whatever the catalog names later", fields: "}\nstatus: {installedCSV: gadget.v1.2.0}", beside: strings.ReplaceAll(plan, "IMAGE", digest),
			want: v1alpha1.CatalogPackage{Package: "gadget", Installed: installed, Lock: &v1alpha1.CatalogLock{Bundle: "gadget.v1.2.0", Image: digest}},
			note: "spec.catalog.lock keeps gadget.v1.2.0, which is installed: remove it to get upgrades",
		},
		"image by tag": {
			reason: "a lock needs a digest", fields: "}\nstatus: {installedCSV: gadget.v1.2.0}", beside: strings.ReplaceAll(plan, "IMAGE", "r.example.org/gadget:v1.2.0"),
			want: v1alpha1.CatalogPackage{Package: "gadget", Version: "1.2.0", Installed: installed},
			note: "spec.catalog.version keeps gadget.v1.2.0, which is installed: to get upgrades, remove it once",
		},
		"no InstallPlan": {
			reason: "the catalog names the image", fields: ", channel: stable}\nstatus: {installedCSV: gadget.v1.2.0}",
			want: v1alpha1.CatalogPackage{Package: "gadget", Version: "1.2.0", Channels: []string{"stable"}, Installed: installed},
			note: "spec.catalog.version keeps gadget.v1.2.0",
		},
		"startingCSV, nothing installed": {
			reason: "it is where OLM would begin, and nothing is installed", fields: ", startingCSV: gadget.v1.1.0}",
			want: v1alpha1.CatalogPackage{Package: "gadget", Version: "1.1.0"}, note: `spec.startingCSV "gadget.v1.1.0" is not installed`,
		},
		"startingCSV, a later one installed": {
			reason: "what is installed counts", fields: ", startingCSV: gadget.v1.1.0}\nstatus: {installedCSV: gadget.v1.2.0}",
			want: v1alpha1.CatalogPackage{Package: "gadget", Version: "1.2.0", Installed: installed}, note: "spec.catalog.version keeps gadget.v1.2.0",
		},
		"startingCSV without a version": {
			reason: "only a person knows it", fields: ", startingCSV: gadget}",
			want: v1alpha1.CatalogPackage{Package: "gadget"}, note: `spec.startingCSV "gadget" does not end in a version`,
		},
		"nothing installed": {
			reason: "it will be", fields: "}", want: v1alpha1.CatalogPackage{Package: "gadget"}, note: "nothing says that a bundle is installed",
		},
		"version of the ClusterServiceVersion": {
			reason: "its name has none", fields: "}\nstatus: {installedCSV: gadget.latest}", beside: csv,
			want: v1alpha1.CatalogPackage{Package: "gadget", Version: "1.4.0", Installed: &v1alpha1.CatalogInstalled{Bundle: "gadget.latest", Version: "1.4.0"}},
			note: "spec.catalog.version keeps gadget.latest",
		},
		"version unknown, image known": {
			reason: "upgrade edges would have no start, and the image keeps what runs", fields: "}\nstatus: {installedCSV: gadget.latest}",
			beside: strings.ReplaceAll(plan, "IMAGE", digest), source: digest, note: "spec.source keeps this image",
		},
		"version and image unknown": {
			reason: "another version than the installed one would be installed", fields: "}\nstatus: {installedCSV: gadget.latest}",
			refusal: `neither the version nor the image of "gadget.latest", which is installed, is known; add --image gadget=IMAGE`,
		},
		"image of the user": {
			reason: "the flag takes precedence", fields: "}\nstatus: {installedCSV: gadget.v1.2.0}", image: digest, source: digest, note: "spec.source keeps this image",
		},
	} {
		t.Run(name, func(t *testing.T) {
			options := Options{ServiceAccount: "installer", Images: map[string]string{}}
			if tt.image != "" {
				options.Images["gadget"] = tt.image
			}
			result, err := Migrate(read([]byte("apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {name: gadget, namespace: demo}\nspec: {name: gadget"+tt.fields+tt.beside)), options)
			if tt.refusal != "" {
				if err == nil || !strings.Contains(err.Error(), tt.refusal) {
					t.Errorf("%s: got %v", tt.reason, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tt.reason, err)
			}
			d, ok := result.Items[0].Objects[0].(*v1alpha1.BundleDeployment)
			if !ok {
				t.Fatalf("made %v", result.Items[0].Objects)
			}
			switch {
			case tt.source != "":
				if d.Spec.Catalog != nil || d.Spec.Source == nil || d.Spec.Source.Sources[0].Image.Reference != tt.source {
					t.Errorf("%s: %+v", tt.reason, d.Spec)
				}
			case d.Spec.Source != nil || d.Spec.Catalog == nil:
				t.Errorf("%s: %+v", tt.reason, d.Spec)
			default:
				if diff := cmp.Diff(tt.want, *d.Spec.Catalog); diff != "" {
					t.Errorf("%s: %s", tt.reason, diff)
				}
			}
			if notes := strings.Join(result.Items[0].Notes, "; "); !strings.Contains(notes, tt.note) {
				t.Errorf("%s: notes %s", tt.reason, notes)
			}
		})
	}
}
