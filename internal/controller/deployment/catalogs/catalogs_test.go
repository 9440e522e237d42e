// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"slices"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/resolver"
)

const digest = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// shop is a catalog with versions 1.0.0 to 3.0.0, each replacing the one before.
func shop(name string) looked {
	p := &catalog.Package{Name: "shop", Channels: []catalog.Channel{{Name: "stable", Entries: []catalog.Entry{
		{Name: "shop.v1.0.0"}, {Name: "shop.v2.0.0", Replaces: "shop.v1.0.0"}, {Name: "shop.v3.0.0", Replaces: "shop.v2.0.0"},
	}}}}
	for _, version := range []string{"1.0.0", "2.0.0", "3.0.0"} {
		p.Bundles = append(p.Bundles, catalog.Bundle{Name: "shop.v" + version, Image: "example.org/shop:" + version, Version: version})
	}
	c := &v1alpha1.BundleCatalog{}
	c.Name, c.Namespace = name, "team"
	c.Status.Content = &v1alpha1.CatalogContent{Digest: "sha256:c"}
	return looked{object: c, said: resolver.Catalog{Name: name, Package: p}, digest: "sha256:p"}
}

// input is that of a deployment with a version installed; "" for none.
func input(installed string, change func(*v1alpha1.BundleDeployment)) *Input {
	d := &v1alpha1.BundleDeployment{}
	d.Name, d.Namespace = "shop", "team"
	d.Spec.Catalog = &v1alpha1.CatalogPackage{Package: "shop"}
	d.Status.Catalog = &v1alpha1.CatalogPackageStatus{}
	if installed != "" {
		d.Status.Catalog.Installed = &v1alpha1.InstalledBundle{Bundle: "shop.v" + installed, Version: installed, Catalog: "team/community"}
	}
	if change != nil {
		change(d)
	}
	return &Input{Subject: &stage.Subject{Object: d, Before: d.DeepCopy()}, Resolved: &stage.Resolved{Catalog: &stage.Catalog{}}}
}

func TestChoose(t *testing.T) {
	for name, tc := range map[string]struct {
		installed string
		change    func(*v1alpha1.BundleDeployment)
		want      string // the bundle
		reason    string // of the failure
		stalled   bool
	}{
		"C34: the newest":        {want: "shop.v3.0.0"},
		"C35: of the range":      {change: func(d *v1alpha1.BundleDeployment) { d.Spec.Catalog.Version = "<3" }, want: "shop.v2.0.0"},
		"C36: a pin":             {change: func(d *v1alpha1.BundleDeployment) { d.Spec.Catalog.Version = "1.0.0" }, want: "shop.v1.0.0"},
		"C39: one hop":           {installed: "1.0.0", want: "shop.v2.0.0"},
		"it stays at the newest": {installed: "3.0.0", want: "shop.v3.0.0"},
		"C43: not there":         {change: func(d *v1alpha1.BundleDeployment) { d.Spec.Catalog.Version = "9.9.9" }, reason: v1alpha1.ReasonResolutionFailed},
		"no range":               {change: func(d *v1alpha1.BundleDeployment) { d.Spec.Catalog.Version = "new" }, reason: v1alpha1.ReasonInvalidRange, stalled: true},
		"C47: no downgrade": {installed: "3.0.0", change: func(d *v1alpha1.BundleDeployment) {
			d.Spec.Catalog.Version, d.Spec.Catalog.UpgradePolicy = "1.0.0", v1alpha1.UpgradeSelfCertified
		}, reason: v1alpha1.ReasonResolutionFailed},
		"C47: a permitted downgrade": {installed: "3.0.0", change: func(d *v1alpha1.BundleDeployment) {
			d.Spec.Catalog.Version, d.Spec.Catalog.UpgradePolicy, d.Spec.Catalog.Downgrade = "1.0.0", v1alpha1.UpgradeSelfCertified, v1alpha1.DowngradeAllow
		}, want: "shop.v1.0.0"},
		"C44: a lock": {installed: "1.0.0", change: func(d *v1alpha1.BundleDeployment) {
			d.Spec.Catalog.Lock = &v1alpha1.CatalogLock{Bundle: "shop.v2.0.0", Image: "example.org/shop" + digest}
		}, want: "shop.v2.0.0"},
		"C44: a lock without an edge": {installed: "1.0.0", change: func(d *v1alpha1.BundleDeployment) {
			d.Spec.Catalog.Lock = &v1alpha1.CatalogLock{Bundle: "shop.v3.0.0", Image: "example.org/shop" + digest}
		}, reason: v1alpha1.ReasonResolutionFailed},
		"C56: a lock of another repository": {change: func(d *v1alpha1.BundleDeployment) {
			d.Spec.Catalog.Lock = &v1alpha1.CatalogLock{Bundle: "shop.v3.0.0", Image: "example.org/bakery" + digest}
		}, reason: v1alpha1.ReasonLockMismatch, stalled: true},
		"C41: a rejected bundle stays where nothing else fits": {installed: "1.0.0", change: rejects("2.0.0"), want: "shop.v2.0.0"},
		"C40: what replaces a rejected bundle stays chosen while it is fetched": {installed: "1.0.0", change: func(d *v1alpha1.BundleDeployment) {
			rejects("2.0.0")(d)
			d.Spec.Catalog.UpgradePolicy = v1alpha1.UpgradeSelfCertified
			d.Status.Catalog.Resolved = &v1alpha1.ResolvedBundle{Bundle: "shop.v3.0.0", Reference: "example.org/shop:3.0.0"}
		}, want: "shop.v3.0.0"},
		"C41: a rejected bundle is no candidate": {installed: "1.0.0", change: func(d *v1alpha1.BundleDeployment) {
			rejects("3.0.0")(d)
			d.Spec.Catalog.UpgradePolicy = v1alpha1.UpgradeSelfCertified
		}, want: "shop.v2.0.0"},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(tc.installed, tc.change)
			err := new(Stage).choose(in, []looked{shop("community")})
			if tc.reason != "" {
				if f := failure.Of(err); err == nil || f.Reason != tc.reason || f.Stalled != tc.stalled {
					t.Fatalf("it failed with %v, want the reason %s, stalled %t", err, tc.reason, tc.stalled)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := in.Object.Status.Catalog.Resolved.Bundle; got != tc.want {
				t.Errorf("%s is chosen, want %s", got, tc.want)
			}
		})
	}
}

// rejects is a deployment that resolved to a version, which was rolled back.
func rejects(version string) func(*v1alpha1.BundleDeployment) {
	return func(d *v1alpha1.BundleDeployment) {
		d.Status.Catalog.Resolved = &v1alpha1.ResolvedBundle{Bundle: "shop.v" + version, Reference: "example.org/shop:" + version}
		d.Status.Rejected.Revision = "bad"
		d.Status.History = []v1alpha1.RevisionRecord{{Revision: "bad", Bundle: "shop.v" + version}}
	}
}

// C46: the digest of a tag stays as long as the catalog names the same tag.
func TestDigestOfATagStays(t *testing.T) {
	in := input("3.0.0", func(d *v1alpha1.BundleDeployment) {
		d.Status.Catalog.Resolved = &v1alpha1.ResolvedBundle{Bundle: "shop.v3.0.0", Reference: "example.org/shop:3.0.0", Image: "example.org/shop" + digest}
	})
	if err := new(Stage).choose(in, []looked{shop("community")}); err != nil {
		t.Fatal(err)
	}
	if got := in.Object.Status.Catalog.Resolved.Image; got != "example.org/shop"+digest {
		t.Errorf("the image is %q", got)
	}
	in.Object.Status.Catalog.Resolved.Reference = "example.org/shop:other"
	if err := new(Stage).choose(in, []looked{shop("community")}); err != nil {
		t.Fatal(err)
	}
	if got := in.Object.Status.Catalog.Resolved.Image; got != "" {
		t.Errorf("the image of another tag is %q", got)
	}
}

// A lock is installed while no catalog can be read.
func TestLockWithoutACatalog(t *testing.T) {
	in := input("1.0.0", func(d *v1alpha1.BundleDeployment) {
		d.Spec.Catalog.Lock = &v1alpha1.CatalogLock{Bundle: "shop.v2.0.0", Image: "example.org/shop" + digest}
	})
	if err := new(Stage).choose(in, nil); err != nil {
		t.Fatal(err)
	}
	if got := in.Object.Status.Catalog.Resolved.Image; got != "example.org/shop"+digest {
		t.Errorf("the image is %q", got)
	}
}

// C48: what of a move needs an approval.
func TestEscalations(t *testing.T) {
	for name, tc := range map[string]struct {
		installed, catalog string
		change             func(*v1alpha1.BundleDeployment)
		want               []string
	}{
		"a first installation": {catalog: "community"},
		"a major version":      {installed: "1.0.0", catalog: "community", want: []string{"the major version changes from 1 to 2"}},
		"another catalog":      {installed: "1.0.0", catalog: "other", want: []string{"the catalog changes from team/community to team/other", "the major version changes from 1 to 2"}},
		"nothing moves":        {installed: "3.0.0", catalog: "community"},
		"C46: another image of the installed bundle": {installed: "3.0.0", catalog: "community", change: func(d *v1alpha1.BundleDeployment) {
			d.Status.Catalog.Installed.Image = "example.org/shop" + digest
			d.Status.Catalog.Resolved = &v1alpha1.ResolvedBundle{
				Bundle: "shop.v3.0.0", Reference: "example.org/shop:3.0.0", Image: "example.org/shop@sha256:" + strings.Repeat("f", 64),
			}
		}, want: []string{"the image of bundle shop.v3.0.0 changes, and its version does not"}},
		"C46: a mirror of the installed bundle": {installed: "3.0.0", catalog: "community", change: func(d *v1alpha1.BundleDeployment) {
			d.Status.Catalog.Installed.Image = "mirror.example.org/shop" + digest
			d.Status.Catalog.Resolved = &v1alpha1.ResolvedBundle{Bundle: "shop.v3.0.0", Reference: "example.org/shop:3.0.0", Image: "example.org/shop" + digest}
		}},
		"a deprecated installation": {catalog: "community", change: func(d *v1alpha1.BundleDeployment) {
			d.Status.Catalog.Deprecations = []v1alpha1.CatalogDeprecation{{Scope: "Package"}}
		}, want: []string{"the catalog calls package deprecated"}},
		"SelfCertified": {installed: "2.0.0", catalog: "community", change: func(d *v1alpha1.BundleDeployment) { d.Spec.Catalog.UpgradePolicy = v1alpha1.UpgradeSelfCertified },
			want: []string{"the major version changes from 2 to 3", "upgradePolicy SelfCertified does not follow the upgrade edges of the catalog"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(tc.installed, nil)
			if tc.change != nil {
				tc.change(in.Object)
			}
			was := in.Object.Status.Catalog.Deprecations
			if err := new(Stage).choose(in, []looked{shop(tc.catalog)}); err != nil {
				t.Fatal(err)
			}
			in.Object.Status.Catalog.Deprecations = was
			in.describe()
			if got := in.Resolved.Catalog.Escalations; !slices.Equal(got, tc.want) {
				t.Errorf("escalations %q, want %q", got, tc.want)
			}
			if head := in.Resolved.Catalog.Head; !strings.Contains(head, "channel stable, catalog team/"+tc.catalog+"@sha256:c") {
				t.Errorf("the head is %q", head)
			}
		})
	}
}

// C39, C40: the next upgrade waits until the last one is healthy or has failed.
func TestUnderWay(t *testing.T) {
	for outcome, want := range map[v1alpha1.Outcome]bool{"": true, v1alpha1.OutcomeHealthy: false, v1alpha1.OutcomeFailed: false, v1alpha1.OutcomeRolledBack: false} {
		d := &v1alpha1.BundleDeployment{Status: v1alpha1.BundleDeploymentStatus{
			Catalog: &v1alpha1.CatalogPackageStatus{Installed: &v1alpha1.InstalledBundle{Bundle: "shop.v2.0.0", Revision: "two"}},
			History: []v1alpha1.RevisionRecord{{Revision: "two", Outcome: outcome}, {Revision: "one"}},
		}}
		if got := UnderWay(d); got != want {
			t.Errorf("outcome %q: under way is %t", outcome, got)
		}
		d.Status.Healthy.Revision = "two"
		if UnderWay(d) {
			t.Errorf("outcome %q: a healthy bundle is under way", outcome)
		}
		d.Status.Healthy.Revision, d.Status.Internal.Artifact = "one", &v1alpha1.KeptArtifact{}
		d.Spec.Remediation = &v1alpha1.RemediationOptions{Strategy: v1alpha1.RemediationRollback}
		if got := UnderWay(d); got != (want || outcome == v1alpha1.OutcomeFailed) {
			t.Errorf("outcome %q, to be rolled back: under way is %t", outcome, got)
		}
	}
}
