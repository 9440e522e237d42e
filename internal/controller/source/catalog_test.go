// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/artifact/catalogs"
	"github.com/satchel-dev/satchel/internal/artifact/server"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

// sharedCatalogs is the namespace of shared catalogs in these tests.
const sharedCatalogs = "platform-catalogs"

const configsLabel = "operators.operatorframework.io.index.configs.v1"

// catalogOf is a catalog of packages with one bundle each, in a folder.
func catalogOf(folder string, packages ...string) fstest.MapFS {
	found := fstest.MapFS{}
	for _, name := range packages {
		found[folder+"/"+name+"/catalog.yaml"] = &fstest.MapFile{Data: fmt.Appendf(nil, `---
schema: olm.package
name: %[1]s
defaultChannel: stable
---
schema: olm.channel
package: %[1]s
name: stable
entries: [{name: %[1]s.v1.0.0}]
---
schema: olm.bundle
package: %[1]s
name: %[1]s.v1.0.0
image: registry.example.org/%[1]s:1
properties: [{type: olm.package, value: {packageName: %[1]s, version: 1.0.0}}]
`, name)}
	}
	return found
}

func layersOf(layers []fstest.MapFS) []fs.FS {
	var all []fs.FS
	for _, layer := range layers {
		all = append(all, layer)
	}
	return all
}

func (r *rig) pushCatalog(t *testing.T, repository string, layers ...fstest.MapFS) string {
	t.Helper()
	digest, err := r.registry.PushLabeled(t.Context(), repository, map[string]string{configsLabel: "/configs"}, layersOf(layers)...)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func (r *rig) catalogImage(repository string) v1alpha1.Source {
	return v1alpha1.Source{Image: &v1alpha1.ImageSource{Reference: r.registry.Host() + "/" + repository, Insecure: true}}
}

func (r *rig) createCatalog(t *testing.T, namespace, name string, source v1alpha1.Source, change func(*v1alpha1.BundleCatalog)) client.ObjectKey {
	t.Helper()
	object := &v1alpha1.BundleCatalog{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	object.Spec.Source = v1alpha1.CatalogSource{Image: source.Image, Git: source.Git, HTTP: source.HTTP, ConfigMap: source.ConfigMap}
	object.Spec.Interval.Duration = time.Hour
	if change != nil {
		change(object)
	}
	if err := r.admin.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	return client.ObjectKeyFromObject(object)
}

func (r *rig) editCatalog(t *testing.T, key client.ObjectKey, change func(*v1alpha1.BundleCatalog)) {
	t.Helper()
	var object v1alpha1.BundleCatalog
	if err := r.admin.Get(t.Context(), key, &object); err != nil {
		t.Fatal(err)
	}
	before := object.DeepCopy()
	change(&object)
	if err := r.admin.Patch(t.Context(), &object, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) untilCatalog(t *testing.T, key client.ObjectKey, what string, holds func(*v1alpha1.BundleCatalog) bool) *v1alpha1.BundleCatalog {
	t.Helper()
	var object v1alpha1.BundleCatalog
	err := wait.PollUntilContextTimeout(t.Context(), 30*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		var now v1alpha1.BundleCatalog
		if err := r.admin.Get(ctx, key, &now); err != nil {
			return false, nil //nolint:nilerr // asked again
		}
		object = now
		return now.Status.ObservedGeneration == now.Generation && holds(&now), nil
	})
	if err != nil {
		status, _ := json.MarshalIndent(object.Status, "", "  ") //nolint:errchkjson // for a message
		t.Fatalf("waited in vain: %s; last seen:\n%s", what, status)
	}
	return &object
}

func (r *rig) readyCatalog(t *testing.T, key client.ObjectKey) *v1alpha1.BundleCatalog {
	t.Helper()
	return r.untilCatalog(t, key, "Ready", func(c *v1alpha1.BundleCatalog) bool { return conditions.IsTrue(c, meta.ReadyCondition) })
}

func (r *rig) unreadyCatalog(t *testing.T, key client.ObjectKey, reason string) *v1alpha1.BundleCatalog {
	t.Helper()
	return r.untilCatalog(t, key, "not Ready: "+reason, func(c *v1alpha1.BundleCatalog) bool {
		return conditions.IsFalse(c, meta.ReadyCondition) && conditions.GetReason(c, meta.ReadyCondition) == reason
	})
}

// refreshCatalog requests a reconcile and waits until it was handled.
func (r *rig) refreshCatalog(t *testing.T, key client.ObjectKey) *v1alpha1.BundleCatalog {
	t.Helper()
	at := time.Now().Format(time.RFC3339Nano)
	r.editCatalog(t, key, func(c *v1alpha1.BundleCatalog) {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, meta.ReconcileRequestAnnotation, at)
	})
	return r.untilCatalog(t, key, "the request is handled", func(c *v1alpha1.BundleCatalog) bool { return c.Status.LastHandledReconcileAt == at })
}

// packagesOf are the lines of the list of packages that is served at a base.
func packagesOf(t *testing.T, base string) string {
	t.Helper()
	code, body := get(t, base+"/api/v1/packages")
	if code != http.StatusOK {
		return fmt.Sprintf("status %d", code)
	}
	var names []string
	for line := range strings.Lines(string(body)) {
		var entry struct{ Name string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		names = append(names, entry.Name)
	}
	return strings.Join(names, " ")
}

// C21: of a catalog image only the folder in its label, or in spec.path, is unpacked; without a label, all of it.
func TestC21CatalogImages(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	program := fstest.MapFS{"bin/opm": {Data: []byte("\x7fELF no catalog")}, "tmp/cache/digest": {Data: []byte("{{{")}}
	override := fstest.MapFS{"configs/.wh.old": {}}
	r.pushCatalog(t, "c21/labeled:v1", program, catalogOf("configs", "old", "shop"), override, catalogOf("other", "hidden"))
	r.pushCatalog(t, "c21/deep:v1", catalogOf("configs", "ignored"), catalogOf("a/b", "deep"))
	if _, err := r.registry.Push(t.Context(), "c21/bare:v1", catalogOf("x", "bare")); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ path, want string }{
		"labeled": {"", "shop"},
		"deep":    {"a/b", "deep"},
		"bare":    {"", "bare"},
	} {
		key := r.createCatalog(t, namespace, name, r.catalogImage("c21/"+name+":v1"), func(c *v1alpha1.BundleCatalog) { c.Spec.Path = tc.path })
		ready := r.readyCatalog(t, key)
		if got := packagesOf(t, ready.Status.URLs.Base); got != tc.want {
			t.Errorf("%s: serves %q, want %q", name, got, tc.want)
		}
		content := ready.Status.Content
		if content.Packages != 1 || content.Bundles != 1 || content.Bytes == 0 || !strings.HasPrefix(content.Digest, "sha256:") || content.LastUpdateTime.IsZero() {
			t.Errorf("%s: content %+v", name, content)
		}
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(r.storage), "scratch", "catalog-*")); err != nil || len(left) > 0 {
		t.Errorf("temporary files stay: %v %v", left, err)
	}
}

// C23, C24: a bad package is left out and named; a new version that cannot be read leaves the former one served.
func TestC24BrokenCatalogs(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	bad := fstest.MapFS{"configs/bad.yaml": {Data: []byte("schema: olm.channel\npackage: bad\nname: x\nentries: none\n")}}
	absent := fstest.MapFS{"configs/z.yaml": {Data: []byte("schema: olm.channel\npackage: shop\nname: fast\nentries: [{name: shop.v9}]\n")}}
	r.pushCatalog(t, "c24/app:latest", catalogOf("configs", "shop"), bad, absent)
	key := r.createCatalog(t, namespace, "app", r.catalogImage("c24/app:latest"), nil)
	ready := r.readyCatalog(t, key)
	want := []string{
		`package bad is left out: configs/bad.yaml, blob 1: olm.channel "x": the field entries has the wrong type: string`,
		"package shop: channel fast names the bundle shop.v9, which does not exist",
	}
	if got := strings.Join(ready.Status.Problems, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("problems:\n%s", got)
	}
	if got := packagesOf(t, ready.Status.URLs.Base); got != "shop" {
		t.Errorf("serves %q", got)
	}
	for name, file := range map[string]string{"syntax": "{schema: [", "too large": `{"schema":"olm.package","name":"` + strings.Repeat("x", 17<<20) + `"}`} {
		r.pushCatalog(t, "c24/app:latest", catalogOf("configs", "shop", "bakery"), fstest.MapFS{"configs/broken.json": {Data: []byte(file)}})
		r.refreshCatalog(t, key)
		reason := map[string]string{"syntax": v1alpha1.ReasonInvalidContent, "too large": v1alpha1.ReasonLimitExceeded}[name]
		broken := r.unreadyCatalog(t, key, reason)
		message := conditions.GetMessage(broken, meta.ReadyCondition)
		if !strings.Contains(message, "configs/broken.json, blob 1") || !strings.Contains(message, "stays served") || !conditions.IsTrue(broken, meta.StalledCondition) {
			t.Errorf("%s: %s", name, message)
		}
		if got := packagesOf(t, broken.Status.URLs.Base); got != "shop" || broken.Status.Content.Digest != ready.Status.Content.Digest {
			t.Errorf("%s: serves %q", name, got)
		}
	}
	r.pushCatalog(t, "c24/app:latest", catalogOf("configs", "shop", "bakery"))
	r.refreshCatalog(t, key)
	if got := packagesOf(t, r.readyCatalog(t, key).Status.URLs.Base); got != "bakery shop" {
		t.Errorf("after the repair it serves %q", got)
	}
}

// C27: a catalog that does not change costs one HEAD at each poll, and no write.
func TestC27UnchangedCatalog(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	r.pushCatalog(t, "c27/app:latest", catalogOf("configs", "shop"))
	var heads, gets atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.Method == http.MethodHead {
			heads.Add(1)
		} else {
			gets.Add(1)
		}
		r.registry.ServeHTTP(w, request)
	}))
	t.Cleanup(proxy.Close)
	source := v1alpha1.Source{Image: &v1alpha1.ImageSource{Reference: strings.TrimPrefix(proxy.URL, "http://") + "/c27/app:latest", Insecure: true}}
	key := r.createCatalog(t, namespace, "app", source, func(c *v1alpha1.BundleCatalog) { c.Spec.Interval.Duration = time.Second })
	before := r.readyCatalog(t, key)
	polled, downloads := heads.Load(), gets.Load()
	err := wait.PollUntilContextTimeout(t.Context(), 30*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		return heads.Load() >= polled+2, nil
	})
	if err != nil {
		t.Fatal("the catalog is not polled")
	}
	after := r.readyCatalog(t, key)
	if after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the object was written: %s, then %s", before.ResourceVersion, after.ResourceVersion)
	}
	if gets.Load() != downloads {
		t.Errorf("%d GET requests for an unchanged catalog", gets.Load()-downloads)
	}
}

// C28: a missing signature refuses a catalog; when the trusted key changes, the catalog is withdrawn, and the restored key gets
// it back.
func TestC28SignedCatalogs(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	alice, mallory := newSigner(t), newSigner(t)
	digest := r.pushCatalog(t, "c28/app:latest", catalogOf("configs", "shop"))
	r.secret(t, namespace, "keys", map[string]string{"a.pub": alice.public(t)})
	source := r.catalogImage("c28/app:latest")
	source.Image.Verify = &v1alpha1.ImageVerification{Provider: "cosign", SecretRef: &v1alpha1.LocalReference{Name: "keys"}}
	key := r.createCatalog(t, namespace, "app", source, nil)
	if unsigned := r.unreadyCatalog(t, key, v1alpha1.ReasonVerificationFailed); unsigned.Status.Content != nil || unsigned.Status.URLs != nil {
		t.Errorf("an unsigned catalog is served: %+v", unsigned.Status)
	}
	r.signImage(t, alice, "c28/app", digest)
	r.refreshCatalog(t, key)
	ready := r.readyCatalog(t, key)
	if !conditions.IsTrue(ready, v1alpha1.SourceVerifiedCondition) || ready.Status.Resolved[0].VerifiedBy == "" {
		t.Errorf("status: %+v", ready.Status)
	}
	base := ready.Status.URLs.Base
	r.secret(t, namespace, "keys", map[string]string{"a.pub": mallory.public(t)})
	r.untilCatalog(t, key, "it is withdrawn", func(c *v1alpha1.BundleCatalog) bool { return c.Status.Content == nil })
	if got := packagesOf(t, base); got != "status 404" {
		t.Errorf("a catalog by a key that is not trusted any more is served: %q", got)
	}
	r.untilCatalog(t, key, "the reason is told", func(c *v1alpha1.BundleCatalog) bool {
		return conditions.IsFalse(c, v1alpha1.SourceVerifiedCondition) && conditions.IsFalse(c, meta.ReadyCondition)
	})
	r.secret(t, namespace, "keys", map[string]string{"a.pub": alice.public(t)})
	r.readyCatalog(t, key)
	if got := packagesOf(t, base); got != "shop" {
		t.Errorf("with the restored key it serves %q", got)
	}
	r.label(t, namespace, v1alpha1.RequireSignaturesLabel, `"required"`)
	r.editCatalog(t, key, func(c *v1alpha1.BundleCatalog) { c.Labels = map[string]string{"a": "b"} })
	r.readyCatalog(t, key)
}

// C28: in a namespace that requires signatures, a catalog without one is withdrawn.
func TestC28NamespacesRequireSignatures(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	r.pushCatalog(t, "c28/unsigned:latest", catalogOf("configs", "shop"))
	key := r.createCatalog(t, namespace, "app", r.catalogImage("c28/unsigned:latest"), nil)
	base := r.readyCatalog(t, key).Status.URLs.Base
	r.label(t, namespace, v1alpha1.RequireSignaturesLabel, `"required"`)
	refused := r.unreadyCatalog(t, key, v1alpha1.ReasonSignatureRequired)
	if got := packagesOf(t, base); got != "status 404" || refused.Status.Content != nil {
		t.Errorf("it serves %q", got)
	}
	r.label(t, namespace, v1alpha1.RequireSignaturesLabel, "null")
	r.readyCatalog(t, key)
}

// C29, C30: equal catalogs of two namespaces are stored once; a namespace without a login gets none; a deleted catalog is removed;
// the quota of a namespace holds.
func TestC29CatalogsOfTenants(t *testing.T) {
	r := newRig(t)
	a, b := controlplane.NewNamespace(t, r.cp), controlplane.NewNamespace(t, r.cp)
	r.pushCatalog(t, "c29/app:latest", catalogOf("configs", "tenants"))
	first := r.createCatalog(t, a, "app", r.catalogImage("c29/app:latest"), nil)
	second := r.createCatalog(t, b, "app", r.catalogImage("c29/app:latest"), nil)
	one, two := r.readyCatalog(t, first), r.readyCatalog(t, second)
	if one.Status.Content.Digest != two.Status.Content.Digest || one.Status.URLs.Base == two.Status.URLs.Base {
		t.Errorf("%+v and %+v", one.Status, two.Status)
	}
	if stored := r.storedWith(t, "tenants"); stored != 1 {
		t.Errorf("equal contents are stored %d times", stored)
	}
	closed := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	t.Cleanup(closed.Close)
	source := v1alpha1.Source{Image: &v1alpha1.ImageSource{Reference: strings.TrimPrefix(closed.URL, "http://") + "/c29/app@" + one.Status.Resolved[0].Digest, Insecure: true}}
	without := r.createCatalog(t, b, "without", source, nil)
	if refused := r.unreadyCatalog(t, without, v1alpha1.ReasonUnauthorized); refused.Status.Content != nil {
		t.Errorf("a namespace without a login has the content: %+v", refused.Status)
	}
	for _, key := range []client.ObjectKey{first, second} {
		if err := r.admin.Delete(t.Context(), &v1alpha1.BundleCatalog{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}); err != nil {
			t.Fatal(err)
		}
	}
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		return r.storedWith(t, "tenants") == 0, nil
	})
	if err != nil {
		t.Error("contents of deleted catalogs stay")
	}
	large := catalogOf("configs", "large")
	large["configs/filler.json"] = &fstest.MapFile{Data: fmt.Appendf(nil, `{"schema":"x","text":%q}`, strings.Repeat("x", quota))}
	r.pushCatalog(t, "c30/large:latest", large)
	key := r.createCatalog(t, a, "large", r.catalogImage("c30/large:latest"), nil)
	if refused := r.unreadyCatalog(t, key, v1alpha1.ReasonQuotaExceeded); !strings.Contains(conditions.GetMessage(refused, meta.ReadyCondition), "BundleCatalog of the namespace") {
		t.Errorf("%+v", refused.Status)
	}
}

// storedWith counts the stored contents that mention a text.
func (r *rig) storedWith(t *testing.T, text string) (count int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(filepath.Dir(r.storage), "catalogs", "contents", "*", "all.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(content), text) {
			count++
		}
	}
	return count
}

// C31: catalogs come from ConfigMaps and Git, too, and from a path in them.
func TestC31OtherSources(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	content := string(catalogOf("x", "small")["x/small/catalog.yaml"].Data)
	r.configMap(t, namespace, "catalog", map[string]string{"catalog.yaml": content, "notes.txt": "[no catalog"})
	source := v1alpha1.Source{ConfigMap: &v1alpha1.LocalReference{Name: "catalog"}}
	key := r.createCatalog(t, namespace, "small", source, func(c *v1alpha1.BundleCatalog) { c.Spec.Path = "catalog.yaml" })
	if got := packagesOf(t, r.readyCatalog(t, key).Status.URLs.Base); got != "small" {
		t.Errorf("serves %q", got)
	}
	r.editCatalog(t, key, func(c *v1alpha1.BundleCatalog) { c.Spec.Path = "absent" })
	missing := r.unreadyCatalog(t, key, v1alpha1.ReasonInvalidContent)
	if !strings.Contains(conditions.GetMessage(missing, meta.ReadyCondition), `no folder or file "absent"`) {
		t.Errorf("%+v", missing.Status)
	}
	archive := pack(t, catalogOf("configs", "archived"))
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive) }))
	t.Cleanup(served.Close)
	key = r.createCatalog(t, namespace, "http", v1alpha1.Source{HTTP: &v1alpha1.HTTPSource{URL: served.URL + "/catalog.tar"}}, nil)
	if got := packagesOf(t, r.readyCatalog(t, key).Status.URLs.Base); got != "archived" {
		t.Errorf("an archive serves %q", got)
	}
}

// A suspended catalog stays served and is not fetched; lost contents are fetched again.
func TestSuspendedAndLostCatalogs(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	r.pushCatalog(t, "lost/app:latest", catalogOf("configs", "lostandfound"))
	key := r.createCatalog(t, namespace, "app", r.catalogImage("lost/app:latest"), nil)
	base := r.readyCatalog(t, key).Status.URLs.Base
	r.editCatalog(t, key, func(c *v1alpha1.BundleCatalog) { c.Spec.Suspend = true })
	r.pushCatalog(t, "lost/app:latest", catalogOf("configs", "newer"))
	r.refreshCatalog(t, key)
	if got := packagesOf(t, base); got != "lostandfound" {
		t.Errorf("suspended, it serves %q", got)
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(r.storage), "catalogs", "contents", "*", "all.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(content), "lostandfound") {
			continue
		}
		if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := packagesOf(t, base); got != "lostandfound" {
		code, _ := get(t, base+"/api/v1/all")
		if code != http.StatusServiceUnavailable {
			t.Errorf("damaged contents are answered with %d", code)
		}
	}
	lost := r.refreshCatalog(t, key)
	if conditions.GetReason(lost, meta.ReadyCondition) != v1alpha1.ReasonArtifactLost || lost.Status.Content != nil {
		t.Errorf("lost while suspended: %+v", lost.Status)
	}
	r.editCatalog(t, key, func(c *v1alpha1.BundleCatalog) { c.Spec.Suspend = false })
	r.readyCatalog(t, key)
	if got := packagesOf(t, base); got != "newer" {
		t.Errorf("continued, it serves %q", got)
	}
}

// C52: with tokens, a catalog is for its own namespace, and a shared one for all.
func TestC52ReadersOfCatalogs(t *testing.T) {
	r := newRig(t)
	err := r.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: sharedCatalogs}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	namespace := controlplane.NewNamespace(t, r.cp)
	r.pushCatalog(t, "c52/app:latest", catalogOf("configs", "everyone"))
	shared := r.readyCatalog(t, r.createCatalog(t, sharedCatalogs, "community", r.catalogImage("c52/app:latest"), nil))
	mine := r.readyCatalog(t, r.createCatalog(t, namespace, "community", r.catalogImage("c52/app:latest"), nil))
	if got := packagesOf(t, "http://"+r.address+"/catalogs/community"); got != "everyone" {
		t.Errorf("the shared catalog is not at the path of catalogd: %q", got)
	}
	store, err := catalogs.Open(catalogs.Options{Dir: filepath.Join(t.TempDir(), "catalogs"), Quota: newStore(t), Bytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	readers := func(_ context.Context, token string) (func(string) bool, error) {
		if token != "valid" {
			return nil, server.ErrUnauthenticated
		}
		return func(of string) bool { return of == namespace }, nil
	}
	served := httptest.NewServer(server.NewHandler(newStore(t), server.Options{Readers: readers, Catalogs: &catalogs.Handler{Store: store, Shared: sharedCatalogs}}))
	t.Cleanup(served.Close)
	pathOf := func(c *v1alpha1.BundleCatalog) string {
		return c.Status.URLs.Base[strings.Index(c.Status.URLs.Base, "/catalogs/"):] + "/api/v1/all"
	}
	for _, tc := range []struct {
		path, token string
		want        int
	}{
		{pathOf(mine), "valid", http.StatusNotFound}, // of this empty store: it was looked for
		{pathOf(shared), "valid", http.StatusNotFound},
		{"/catalogs/community/api/v1/all", "valid", http.StatusNotFound},
		{"/catalogs/another/community/api/v1/all", "valid", http.StatusForbidden},
		{pathOf(mine), "forged", http.StatusUnauthorized},
		{pathOf(shared), "", http.StatusUnauthorized},
	} {
		if got := ask(t, served.URL+tc.path, tc.token); got != tc.want {
			t.Errorf("%s with the token %q is answered with %d, want %d", tc.path, tc.token, got, tc.want)
		}
	}
}
