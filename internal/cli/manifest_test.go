// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/tests/upstream"
)

// manifestOf is a file with a BundleDeployment that has a source and a prefix for names.
func manifestOf(t *testing.T, namespace, source string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "deployment.yaml")
	text := "apiVersion: satchel.dev/v1alpha1\nkind: BundleDeployment\nmetadata: {name: web, namespace: " + namespace + "}\n" +
		"spec:\n  serviceAccountName: installer\n  processors: [{names: {prefix: eu-}}]\n  source: {sources: [" + source + "]}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestManifestSources reads the bundle of a manifest from a real registry, a Git server and a web server, without a cluster.
func TestManifestSources(t *testing.T) {
	registry := upstream.NewRegistry(t.Context())
	t.Cleanup(registry.Close)
	git, err := upstream.NewGit()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = git.Close() })
	files := fstest.MapFS{"a.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {color: blue}\n")}}
	digest, err := registry.Push(t.Context(), "bundles/web:v1", files)
	if err != nil {
		t.Fatal(err)
	}
	commit, err := git.Commit("first", files)
	if err != nil {
		t.Fatal(err)
	}
	archive, err := upstream.Tar(files)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive) }))
	t.Cleanup(web.Close)
	for name, c := range map[string]struct{ source, origin string }{
		"image": {`{image: {reference: "` + registry.Host() + `/bundles/web:v1", insecure: true}}`, digest},
		"login": {`{image: {reference: "` + registry.Host() + `/bundles/web:v1", insecure: true, secretRef: {name: not-committed}}}`, digest},
		"git":   {`{git: {url: "` + git.URL() + `", ref: {branch: main}}}`, commit},
		"http":  {`{http: {url: "` + web.URL + `/web.tar"}}`, "the archive"},
	} {
		file := manifestOf(t, "shop", c.source)
		got := satchel(t, "render", "-f", file)
		if got.Code != kit.ExitOK || !strings.Contains(got.Out, "name: eu-settings\n  namespace: shop") || !strings.Contains(got.Err, c.origin) {
			t.Errorf("%s: render %s", name, got)
		}
		for command, want := range map[string]string{"validate": "Valid", "inspect": "1 × ConfigMap", "rbac": "name: installer\n  namespace: shop"} {
			if got := satchel(t, command, "-f", file); got.Code != kit.ExitOK || !strings.Contains(got.Out, want) {
				t.Errorf("%s: %s %s", name, command, got)
			}
		}
	}
	if got := satchel(t, "render", registry.Host()+"/bundles/web:v1", "--install-namespace", "shop"); got.Code != kit.ExitOK || !strings.Contains(got.Out, "name: settings") {
		t.Errorf("plain HTTP on loopback is not detected: %s", got)
	}
	for name, c := range map[string]struct{ source, want string }{
		"upload":     {`{upload: {digest: "sha256:` + strings.Repeat("a", 64) + `"}}`, "the source is an upload, which only the cluster has: give the folder in its place"},
		"a key":      {`{git: {url: "https://example.org/x.git", secretRef: {name: key}}}`, "refers to the Secret key, which is not in"},
		"not served": {`{http: {url: "http://127.0.0.1:1/x.tar"}}`, "fetching the archive http://127.0.0.1:1/x.tar: "},
	} {
		if got := satchel(t, "render", "-f", manifestOf(t, "shop", c.source)); got.Code != kit.ExitError || !strings.Contains(got.Err, c.want) || strings.Contains(got.Err, "the cluster") && name != "upload" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestPlanOfManifest plans a manifest before it is applied, and a changed one.
func TestPlanOfManifest(t *testing.T) {
	c := newPlayedCluster(t)
	registry := upstream.NewRegistry(t.Context())
	t.Cleanup(registry.Close)
	files := fstest.MapFS{"a.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: added}\n")}}
	if _, err := registry.Push(t.Context(), "bundles/web:v1", files); err != nil {
		t.Fatal(err)
	}
	file := manifestOf(t, c.Namespace, `{image: {reference: "`+registry.Host()+`/bundles/web:v1", insecure: true}}`)
	c.Want(c.Satchel("plan", "-f", file), kit.ExitNo, "BundleDeployment "+c.Namespace+"/web: 1 to create", "+ create  ConfigMap "+c.Namespace+"/eu-added",
		"BundleDeployment "+c.Namespace+"/web does not exist yet", "the source was fetched from here")
	c.Want(c.Satchel("plan", "-f", file, "-o", "diff"), kit.ExitNo, "+++ planned/ConfigMap "+c.Namespace+"/eu-added")
	c.Want(c.Satchel("plan", "other", "-f", file), kit.ExitError, `no BundleDeployment "other" is in it: it has web`)

	// The deployment of the cluster, with another spec and the same source: its artifact is used.
	c.publish(webVersion1)
	c.install()
	var live v1alpha1.BundleDeployment
	c.read(&live, "podinfo")
	changed := filepath.Join(t.TempDir(), "podinfo.yaml")
	text := "apiVersion: satchel.dev/v1alpha1\nkind: BundleDeployment\nmetadata: {name: podinfo, namespace: " + c.Namespace + "}\nspec:\n" +
		"  serviceAccountName: installer\n  path: " + live.Spec.Path + "\n  sourceRef: {kind: BundleSource, name: podinfo}\n" +
		"  processors: [{patch: {target: {kind: ConfigMap, name: settings}, patch: 'data: {color: violet}'}}]\n"
	if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Want(c.Satchel("plan", "-f", changed, "--fields"), kit.ExitNo, "1 to update", `-> "violet"`)
	c.Want(c.Satchel("plan", "podinfo"), kit.ExitOK)
}
