// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"

	"github.com/satchel-dev/satchel/internal/cli/kit"
)

const digestOne = "registry.example.org/shop@sha256:1111111111111111111111111111111111111111111111111111111111111111"

// TestResolveWrites resolves a BundleDeployment of a file, and writes its lock (C64).
func TestResolveWrites(t *testing.T) {
	catalog := `{"schema":"olm.package","name":"shop"}
{"schema":"olm.channel","package":"shop","name":"stable","entries":[{"name":"shop.v1.0.0"},{"name":"shop.v1.1.0","replaces":"shop.v1.0.0"},{"name":"shop.v1.2.0","replaces":"shop.v1.1.0"}]}
`
	for version, digit := range map[string]string{"1.0.0": "1", "1.1.0": "2", "1.2.0": "3"} {
		catalog += `{"schema":"olm.bundle","package":"shop","name":"shop.v` + version + `","image":"registry.example.org/shop@sha256:` + strings.Repeat(digit, 64) +
			`","properties":[{"type":"olm.package","value":{"packageName":"shop","version":"` + version + `"}}]}` + "\n"
	}
	const deployment = `apiVersion: satchel.dev/v1alpha1
kind: BundleDeployment
metadata: {name: shop, namespace: demo}
spec:
  serviceAccountName: installer
  catalog:
    package: shop # bought
    version: 1.0.0
`
	const source = "apiVersion: satchel.dev/v1alpha1\nkind: BundleSource\nmetadata: {name: shop}\nspec:\n  sources:\n  - image: {reference: registry.example.org/shop:v1} # of the rollout\n"
	t.Chdir(writeFiles(t, map[string]string{"catalog.json": catalog, "shop.yaml": deployment, "source.yaml": source, "none.yaml": source}))
	const from = "--catalog=community=catalog.json"
	want := func(line []string, code int, parts ...string) {
		t.Helper()
		got := satchel(t, append([]string{"resolve"}, line...)...)
		if got.Code != code {
			t.Fatalf("resolve %q: exit %d, want %d: %s", line, got.Code, code, got)
		}
		for _, part := range parts {
			if !strings.Contains(got.Out+got.Err, part) {
				t.Errorf("resolve %q lacks %q: %s", line, part, got)
			}
		}
	}
	want([]string{"-f", "shop.yaml", from}, kit.ExitOK, "Bundle     shop.v1.0.0")
	want([]string{"-f", "shop.yaml", "--write", "shop.yaml", from}, kit.ExitOK, "shop.yaml: BundleDeployment shop has shop.v1.0.0 now")
	text, err := os.ReadFile("shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	locked := strings.Replace(deployment, "# bought\n", "# bought\n    lock:\n      bundle: shop.v1.0.0\n      image: "+digestOne+"\n", 1)
	if string(text) != locked {
		t.Errorf("got:\n%s\nwant:\n%s", text, locked)
	}
	want([]string{"-f", "shop.yaml", "--write", "shop.yaml", from}, kit.ExitOK, "has shop.v1.0.0 already")

	// Upgrades start from the lock: 1.2.0 replaces 1.1.0 only.
	if err := os.WriteFile("shop.yaml", []byte(strings.Replace(locked, "version: 1.0.0", "version: 1.x", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	want([]string{"-f", "shop.yaml", "shop", from}, kit.ExitNo, "shop.v1.0.0 -> shop.v1.1.0")
	want([]string{"-f", "shop.yaml", "--installed", "shop.v1.1.0@1.1.0", from, "-o", "json"}, kit.ExitNo, `"bundle": "shop.v1.2.0"`)
	want([]string{"-f", "shop.yaml", "--write", "shop.yaml", from}, kit.ExitOK, "has shop.v1.1.0 now")
	want([]string{"shop", "--version", "1.2.0", "--write", "source.yaml", from}, kit.ExitOK, "BundleSource shop has shop.v1.2.0 now")
	text, err = os.ReadFile("source.yaml")
	if err != nil || !strings.Contains(string(text), "{reference: registry.example.org/shop@sha256:"+strings.Repeat("3", 64)+"} # of the rollout\n") {
		t.Errorf("%v\n%s", err, text)
	}

	want([]string{"-f", "none.yaml", from}, kit.ExitError, "no BundleDeployment is in it")
	want([]string{"-f", "shop.yaml", "--write", "none.yaml", from}, kit.ExitError)
}

// TestResolveWritesDigestOfTag: the registry says which digest a tag of a catalog has (C64). A tag that moves later changes no lock
// of the same bundle, and is a warning (C46).
func TestResolveWritesDigestOfTag(t *testing.T) {
	served := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(served.Close)
	repository := strings.TrimPrefix(served.URL, "http://") + "/shop"
	push := func() string {
		image, err := random.Image(16, 1)
		if err == nil {
			err = crane.Push(image, repository+":v1.0.0")
		}
		if err != nil {
			t.Fatal(err)
		}
		digest, err := image.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return digest.String()
	}
	digest := push()
	t.Chdir(writeFiles(t, map[string]string{
		"catalog.json": `{"schema":"olm.bundle","package":"shop","name":"shop.v1.0.0","image":"` + repository + `:v1.0.0","properties":[{"type":"olm.package","value":{"packageName":"shop","version":"1.0.0"}}]}`,
		"shop.yaml":    "apiVersion: satchel.dev/v1alpha1\nkind: BundleDeployment\nmetadata: {name: shop}\nspec: {serviceAccountName: installer, catalog: {package: shop}}\n",
	}))
	write := func(warning string) string {
		t.Helper()
		got := satchel(t, "resolve", "-f", "shop.yaml", "--write", "shop.yaml", "--catalog=community=catalog.json", "--insecure")
		text, err := os.ReadFile("shop.yaml")
		if err != nil || got.Code != kit.ExitOK {
			t.Fatalf("%v: %s", err, got)
		}
		if (warning == "") == strings.Contains(got.Err, "points at") || !strings.Contains(got.Err, warning) {
			t.Errorf("want the warning %q: %s", warning, got)
		}
		return string(text)
	}
	if text := write(""); !strings.Contains(text, "lock: {bundle: shop.v1.0.0, image: \""+repository+"@"+digest+"\"}") {
		t.Errorf("the digest of the tag, %s, is not in: %s", digest, text)
	}
	write("")
	moved := push()
	text := write(repository + ":v1.0.0 points at " + repository + "@" + moved + " now, and not at " + repository + "@" + digest)
	if moved == digest || !strings.Contains(text, digest) {
		t.Errorf("the tag moved to %s, and the lock with it: %s", moved, text)
	}
	served.Close()
	if text := write(""); !strings.Contains(text, digest) {
		t.Errorf("without the registry, the lock is %s", text)
	}
}
