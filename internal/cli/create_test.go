// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
)

// TestCreateExport prints manifests, which are golden files, and which -f of other commands accepts.
func TestCreateExport(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	values := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(values, []byte("replicas: 2\nimage: {tag: v1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"image":      {"deployment", "web", "--image", "ghcr.io/org/web:v1.2.3", "--secret", "login", "--label", "team=shop"},
		"loopback":   {"deployment", "web", "--image", "localhost:5000/web", "--version", "1.x", "--approval", "Manual"},
		"git":        {"deployment", "web", "--git", "https://example.org/web.git", "--tag", "v1", "--path", "deploy", "--format", "kustomize", "--depends-on", "db", "--interval", "1h"},
		"chart":      {"deployment", "web", "--helm-repository", "https://charts.example.org", "--chart", "web", "--version", "1.x", "--values", values, "--set", "image.tag=v2", "--values-from", "Secret/keys", "--release-name", "shop"},
		"operator":   {"deployment", "op", "--image", "quay.io/org/op:v1", "--format", "registry+v1", "--watch-namespace", "shop", "--install-namespace", "operators", "--create-namespace"},
		"flux":       {"deployment", "web", "--source", "GitRepository/fleet", "--service-account", "robot"},
		"bundle":     {"deployment", "web", "--source", "web", "-n", "shop"},
		"source":     {"source", "web", "--http", "https://example.org/web.tar.gz", "--digest", "sha256:" + strings.Repeat("a", 64), "--source-interval", "1h", "--ignore", "*.md"},
		"config-map": {"source", "web", "--config-map", "files"},
	} {
		got := satchel(t, append(append([]string{"create"}, args...), "--export")...)
		if got.Code != kit.ExitOK || got.Err != "" {
			t.Errorf("%s: %s", name, got)
		}
		golden(t, "create/"+name, got.Out)
	}
}

// TestCreateRefuses names the flag or the field, and what to do.
func TestCreateRefuses(t *testing.T) {
	for want, args := range map[string][]string{
		"create deployment needs one name, got none":                                                          {"deployment"},
		"give one of --image, --git, --http, --helm-repository and --config-map, got 0":                       {"source", "web"},
		"--helm-repository and --config-map, got 2":                                                           {"source", "web", "--image", "a", "--git", "https://b"},
		"--branch has no effect on a source of --image":                                                       {"source", "web", "--image", "a", "--branch", "main"},
		"--helm-repository needs --chart":                                                                     {"source", "web", "--helm-repository", "https://a"},
		"--source names an existing source, and --image a new one":                                            {"deployment", "web", "--source", "a", "--image", "b"},
		`--source "HelmChart/a" is of no kind that can be installed from`:                                     {"deployment", "web", "--source", "HelmChart/a"},
		`--values-from "keys" is none of Secret/NAME and ConfigMap/NAME`:                                      {"deployment", "web", "--image", "a", "--values-from", "keys"},
		"BundleSource web would not be valid:\n  - spec.sources[0].git.url: ":                                 {"source", "web", "--git", "ftp://example.org/x"},
		"BundleDeployment web would not be valid:\n  - spec.path: ":                                           {"deployment", "web", "--image", "a", "--path", "../x"},
		"an interval is a time such as 10m, and not negative":                                                 {"source", "web", "--image", "a", "--source-interval", "-1h"},
		"--label is key=value":                                                                                {"source", "web", "--image", "a", "--label", "x"},
		`--image "a b" is no reference such as ghcr.io/org/bundle:v1.2.3`:                                     {"source", "web", "--image", "a b"},
		"BundleDeployment web would not be valid:\n  - spec.source.sources[0].image: version chooses the tag": {"deployment", "web", "--image", "a:v1", "--version", "1.x"},
	} {
		got := satchel(t, append(append([]string{"create"}, args...), "--export")...)
		if got.Code != kit.ExitError || !strings.Contains(got.Err, want) {
			t.Errorf("want %q, got %s", want, got)
		}
	}
}

// TestCreateNothing names the kinds.
func TestCreateNothing(t *testing.T) {
	if got := satchel(t, "create", "nothing", "web"); got.Code != kit.ExitError || !strings.Contains(got.Err, "write create deployment NAME or create source NAME") {
		t.Error(got)
	}
}

// TestCreate creates the objects on the cluster.
func TestCreate(t *testing.T) {
	c := newTestCluster(t)
	c.Want(c.Satchel("create", "source", "web", "--image", "ghcr.io/org/web:v1"), kit.ExitOK, "BundleSource "+c.Namespace+"/web: created\n")
	c.Want(c.Satchel("create", "deployment", "web", "--source", "web"), kit.ExitOK, "BundleDeployment "+c.Namespace+"/web: created\n")
	var d v1alpha1.BundleDeployment
	if c.read(&d, "web"); d.Spec.SourceRef == nil || d.Spec.SourceRef.Name != "web" || d.Spec.ServiceAccountName != "installer" {
		t.Errorf("created %+v", d.Spec)
	}
	c.Want(c.Satchel("create", "deployment", "web", "--source", "web"), kit.ExitError, "BundleDeployment "+c.Namespace+"/web exists already: change its manifest")
	c.Want(c.Satchel("create", "source", "two", "--image", "a", "--as", "unprivileged"), kit.ExitError, "you may not create bundlesources")
}
