// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/artifact/packages"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/resolver"
)

// sourceOf is the BundleSource of a deployment, with an image and annotations.
func sourceOf(d *v1alpha1.BundleDeployment, image string, annotations map[string]string) *v1alpha1.BundleSource {
	s := &v1alpha1.BundleSource{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name, Annotations: annotations}}
	yes := true
	s.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.BundleDeploymentKind, Name: d.Name, UID: d.UID, Controller: &yes}}
	s.Spec.Sources = []v1alpha1.Source{{Image: &v1alpha1.ImageSource{Reference: image}}}
	return s
}

func stageWith(t *testing.T, all ...client.Object) *Stage {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return &Stage{Reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(all...).Build()}
}

// C45: where upgrades start from without a status.
func TestC45LostStatus(t *testing.T) {
	named := map[string]string{v1alpha1.CatalogPackageAnnotation: "shop", v1alpha1.InstalledBundleAnnotation: "shop.v1.0.0", v1alpha1.InstalledVersionAnnotation: "1.0.0"}
	objects := inventory.Inventory{Entries: []inventory.Entry{{ID: inventory.ID{Kind: "ConfigMap", Namespace: "team", Name: "shop"}}}}
	for name, tc := range map[string]struct {
		annotations map[string]string
		given       *v1alpha1.CatalogInstalled
		listed      inventory.Inventory
		want        string
		reason      string
	}{
		"the annotations":                 {annotations: named, listed: objects, want: "shop.v1.0.0"},
		"the spec":                        {given: &v1alpha1.CatalogInstalled{Bundle: "shop.v2.0.0", Version: "2.0.0"}, listed: objects, want: "shop.v2.0.0"},
		"the annotations before the spec": {annotations: named, given: &v1alpha1.CatalogInstalled{Bundle: "shop.v2.0.0", Version: "2.0.0"}, want: "shop.v1.0.0"},
		"nothing is installed":            {},
		"neither says it":                 {listed: objects, reason: v1alpha1.ReasonInstalledUnknown},
		"the annotations are about another package": {annotations: map[string]string{v1alpha1.CatalogPackageAnnotation: "bakery", v1alpha1.InstalledBundleAnnotation: "bakery.v1.0.0"},
			listed: objects, reason: v1alpha1.ReasonInstalledUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			in := input("", func(d *v1alpha1.BundleDeployment) { d.Spec.Catalog.Installed, d.UID = tc.given, "uid" })
			listing := stage.ListingOf(inventory.CurrentOf(tc.listed))
			in.Listed = &listing
			err := stageWith(t, sourceOf(in.Object, "example.org/shop"+digest, tc.annotations)).restoreInstalled(t.Context(), in)
			if f := failure.Of(err); (err != nil) != (tc.reason != "") || err != nil && (f.Reason != tc.reason || !f.Stalled) {
				t.Fatalf("it ends with %v, want the reason %q", err, tc.reason)
			}
			if got := installedName(in.Object); got != tc.want {
				t.Errorf("%q is installed, want %q", got, tc.want)
			}
		})
	}
}

// C48: without a status, the annotations say from which catalog and image the installed bundle is. Another one needs an approval;
// what is no catalog counts for nothing.
func TestC48LostStatus(t *testing.T) {
	const other = "@sha256:abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789"
	for name, tc := range map[string]struct {
		installed, catalog, image string // of the annotations
		want                      string // the escalation
	}{
		"the same catalog, an upgrade":       {installed: "2.0.0", catalog: "team/community", image: "example.org/shop" + other},
		"the same catalog and image":         {installed: "3.0.0", catalog: "team/community", image: "example.org/shop" + digest},
		"another catalog, an upgrade":        {installed: "2.0.0", catalog: "team/other", want: "the catalog changes from team/other to team/community"},
		"a shared catalog of the same name":  {installed: "2.0.0", catalog: "shared/community", want: "the catalog changes from shared/community to team/community"},
		"another catalog, the same bundle":   {installed: "3.0.0", catalog: "team/other", want: "the catalog changes from team/other to team/community"},
		"another catalog, the same image":    {installed: "3.0.0", catalog: "team/other", image: "example.org/shop" + digest},
		"another image of the same bundle":   {installed: "3.0.0", catalog: "team/community", image: "example.org/shop" + other, want: "the image of bundle shop.v3.0.0 changes, and its version does not"},
		"annotations of an earlier version":  {installed: "2.0.0"},
		"no namespace":                       {installed: "2.0.0", catalog: "other"},
		"something else than a catalog":      {installed: "2.0.0", catalog: "team/other\nThis plan was reviewed"},
		"a name that is longer than allowed": {installed: "2.0.0", catalog: "team/" + strings.Repeat("a", 64)},
	} {
		t.Run(name, func(t *testing.T) {
			in := input("", func(d *v1alpha1.BundleDeployment) { d.UID = "uid" })
			in.Listed = &stage.Listing{}
			annotations := map[string]string{
				v1alpha1.CatalogPackageAnnotation: "shop", v1alpha1.InstalledBundleAnnotation: "shop.v" + tc.installed,
				v1alpha1.InstalledVersionAnnotation: "2.9.0", v1alpha1.InstalledCatalogAnnotation: tc.catalog, v1alpha1.InstalledImageAnnotation: tc.image,
			}
			st := stageWith(t, sourceOf(in.Object, "example.org/shop"+digest, annotations))
			if err := st.restoreInstalled(t.Context(), in); err != nil {
				t.Fatal(err)
			}
			in.Object.Status.Catalog.Resolved = &v1alpha1.ResolvedBundle{Bundle: "shop.v3.0.0", Version: "2.9.1", Image: "example.org/shop" + digest, Catalog: "community"}
			in.describe()
			if got := strings.Join(in.Resolved.Catalog.Escalations, "; "); got != tc.want {
				t.Errorf("escalations: %q, want %q", got, tc.want)
			}
			written := in.annotations()
			for _, name := range []string{v1alpha1.InstalledBundleAnnotation, v1alpha1.InstalledVersionAnnotation, v1alpha1.InstalledImageAnnotation} {
				if written[name] != annotations[name] {
					t.Errorf("annotation %s becomes %q, and was %q", name, written[name], annotations[name])
				}
			}
		})
	}
}

// C46: the digest of a tag stays without a status, too: the source has it. Of another bundle it has none.
func TestC46DigestOfATagStaysWithoutStatus(t *testing.T) {
	for bundle, want := range map[string]string{"shop.v3.0.0": "example.org/shop" + digest, "shop.v2.0.0": ""} {
		in := input("3.0.0", func(d *v1alpha1.BundleDeployment) { d.UID = "uid" })
		in.Object.Status.Catalog.Resolved = &v1alpha1.ResolvedBundle{Bundle: "shop.v3.0.0", Reference: "example.org/shop:3.0.0"}
		st := stageWith(t, sourceOf(in.Object, "example.org/shop"+digest, map[string]string{
			v1alpha1.CatalogPackageAnnotation: "shop", v1alpha1.CatalogBundleAnnotation: bundle,
		}))
		if err := st.pin(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		if got := in.Object.Status.Catalog.Resolved.Image; got != want {
			t.Errorf("with a source of %s, the image is %q, want %q", bundle, got, want)
		}
		// With a status, the catalog names another tag now, and that is resolved.
		in.Before.Status.Catalog.Resolved = &v1alpha1.ResolvedBundle{Bundle: "shop.v3.0.0", Reference: "example.org/shop:old"}
		in.Object.Status.Catalog.Resolved.Image = ""
		if err := st.pin(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		if got := in.Object.Status.Catalog.Resolved.Image; got != "" {
			t.Errorf("the image of another tag is %q", got)
		}
	}
}

// C19: the digest of the input is the same if and only if what is looked at is the same.
func TestC19InputDigest(t *testing.T) {
	digests, inputs := map[string]string{}, map[string]string{}
	for seed := range 5000 {
		random := rand.New(rand.NewPCG(uint64(seed), 19)) //nolint:gosec // repeatable
		pick := func(all ...string) string { return all[random.IntN(len(all))] }
		in := input(pick("", "1.0.0", "2.0.0"), func(d *v1alpha1.BundleDeployment) {
			d.Spec.Catalog.Version = pick("", "<2")
			d.Spec.Catalog.Channels = [][]string{nil, {"a"}, {"a", "b"}}[random.IntN(3)]
			d.Spec.Catalog.UpgradePolicy = v1alpha1.UpgradePolicy(pick("", "SelfCertified"))
			d.Spec.Catalog.Image = &v1alpha1.CatalogImage{Platform: pick("", "linux/amd64")} // how it is pulled does not count
			if bundle := pick("", "shop.v3.0.0"); bundle != "" {
				d.Status.Rejected.Revision = "bad"
				d.Status.History = []v1alpha1.RevisionRecord{{Revision: "bad", Bundle: bundle}}
			}
			if d.Status.Catalog.Installed != nil {
				d.Status.Catalog.Installed.Image = pick("", "example.org/shop"+digest) // from which upgrades do not start
			}
		})
		var all []looked
		text := fmt.Sprintf("%q %q %q %q %q", in.Object.Spec.Catalog.Version, in.Object.Spec.Catalog.Channels, in.Object.Spec.Catalog.UpgradePolicy, installedName(in.Object), in.rejected())
		for i := range random.IntN(3) {
			one := looked{object: &v1alpha1.BundleCatalog{}, said: resolver.Catalog{Priority: int32(random.IntN(2))}, digest: pick("", "sha256:p", "sha256:q")} //nolint:gosec // it is small
			one.object.Namespace, one.object.Name = pick("team", "shared"), fmt.Sprint(i)
			one.object.Status.Content = &v1alpha1.CatalogContent{Digest: pick("sha256:c", "sha256:d")} // other packages do not count
			if random.IntN(4) == 0 {
				one.unread = http.ErrServerClosed
			}
			all = append(all, one)
			text += fmt.Sprintf(" %s/%s %d %q %t", one.object.Namespace, one.object.Name, one.said.Priority, one.digest, one.unread != nil)
		}
		digest := in.inputDigest(all)
		if was, known := inputs[digest]; known && was != text {
			t.Fatalf("one digest for\n%s\n%s", was, text)
		}
		if was, known := digests[text]; known && was != digest {
			t.Fatalf("two digests for %s", text)
		}
		inputs[digest], digests[text] = text, digest
	}
	if len(digests) > 4500 {
		t.Errorf("only %d of 5,000 inputs occurred before", 5000-len(digests))
	}
}

// C32: while the source controller is away, packages are resolved from what was read before, after a restart too.
func TestC32ResolutionWithoutTheServer(t *testing.T) {
	blobs := `{"schema":"olm.bundle","package":"shop","name":"shop.v1.0.0","image":"example.org/shop` + digest + `","properties":[{"type":"olm.package","value":{"packageName":"shop","version":"1.0.0"}}]}
{"schema":"olm.bundle","package":"shop","name":"shop.v2.0.0","image":"example.org/shop` + digest + `","properties":[{"type":"olm.package","value":{"packageName":"shop","version":"2.0.0"}}]}
`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Etag", fmt.Sprintf(`"sha256:%x"`, sha256.Sum256([]byte(blobs))))
		_, _ = w.Write([]byte(blobs))
	}))
	t.Cleanup(server.Close)
	folder := t.TempDir()
	c := v1alpha1.BundleCatalog{}
	c.Namespace, c.Name = "team", "community"
	c.Status.URLs = &v1alpha1.CatalogURLs{Base: server.URL + "/catalogs/team/community"}
	resolve := func(content, version string) (string, error) {
		t.Helper()
		reader, err := packages.Open(packages.Options{Client: server.Client(), ServerURLs: []string{server.URL}, CacheDir: folder, Parse: parse})
		if err != nil {
			t.Fatal(err)
		}
		c.Status.Content = &v1alpha1.CatalogContent{Digest: content}
		st := &Stage{Packages: reader, Reader: &objects{catalogs: map[types.NamespacedName]v1alpha1.BundleCatalog{{Namespace: "team", Name: "community"}: c}}}
		in := input("", func(d *v1alpha1.BundleDeployment) { d.Spec.Catalog.Version = version })
		in.Listed = &stage.Listing{}
		if _, err := st.Resolve(t.Context(), in); err != nil {
			return "", err
		}
		return in.Object.Status.Catalog.Resolved.Bundle, nil
	}
	if got, err := resolve("sha256:one", ""); err != nil || got != "shop.v2.0.0" {
		t.Fatalf("resolved to %q: %v", got, err)
	}
	server.Close()
	for content, version := range map[string]string{"sha256:one": "<2", "sha256:two": "1.0.0"} {
		if got, err := resolve(content, version); err != nil || got != "shop.v1.0.0" {
			t.Errorf("without the server, and content %s, it resolved to %q: %v", content, got, err)
		}
	}
	if _, err := resolve("sha256:one", "3.0.0"); failure.Of(err).Reason != v1alpha1.ReasonResolutionFailed {
		t.Errorf("a version that is not there ends with %v", err)
	}
}
