// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

var commitTime = time.Unix(1_700_000_000, 0).UTC()

func TestPrepare(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "old"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ version, targets, epoch, out, want string }{
		"good":       {"v1.2.3", "linux/amd64,darwin/arm64", "1700000000", filepath.Join(t.TempDir(), "dist"), ""},
		"no version": {"", "linux/amd64", "1700000000", "", "give -version"},
		"a path":     {"feature/x", "linux/amd64", "1700000000", "", "names no release"},
		"no time":    {"v1", "linux/amd64", "", "", "SOURCE_DATE_EPOCH"},
		"no target":  {"v1", "linux", "1700000000", "", "is not a system and an architecture"},
		"leftovers":  {"v1", "linux/amd64", "1700000000", full, "is not empty"},
	} {
		r := release{version: tc.version, out: tc.out}
		err := r.prepare(tc.targets, tc.epoch)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPackIsReproducible(t *testing.T) {
	files := []file{{"a/x", 0o755, []byte("x")}, {"a/b", 0o644, []byte("b")}}
	first, err := pack(files, commitTime)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(files)
	second, err := pack(files, commitTime)
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("the order of the files shows: %v", err)
	}
	other, err := pack(files, commitTime.Add(time.Hour))
	if err != nil || bytes.Equal(first, other) {
		t.Errorf("the time of the commit is not in it: %v", err)
	}
}

func TestCompanions(t *testing.T) {
	t.Chdir("../..")
	files, err := companions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, f := range files {
		found[f.name] = len(f.content)
	}
	for _, name := range []string{"LICENSE", "README.md", "completions/satchel.bash", "completions/_satchel", "completions/satchel.fish", "completions/satchel.ps1",
		"man/man1/satchel.1", "man/man1/satchel-install.1", "completions/kubectl-satchel_migrate.bash", "man/man1/kubectl-satchel-migrate-adopt.1"} {
		if found[name] < 100 {
			t.Errorf("%s has %d bytes", name, found[name])
		}
	}
}

// TestMaterials reads the bill of this very test.
func TestMaterials(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	first, err := materials([]string{program}, "v1.2.3", "linux_amd64", commitTime)
	if err != nil {
		t.Fatal(err)
	}
	second, err := materials([]string{program}, "v1.2.3", "linux_amd64", commitTime)
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("the second time differs: %v", err)
	}
	var b billOfMaterials
	if err := json.Unmarshal(first, &b); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{b.Metadata.Component.Ref: true}
	for _, c := range b.Components {
		if c.Name == "" || c.Version == "" || known[c.Ref] || c.Type == "library" && !strings.HasPrefix(c.URL, "pkg:golang/") {
			t.Errorf("a component is incomplete, or there twice: %+v", c)
		}
		known[c.Ref] = true
	}
	for _, d := range b.Dependencies {
		for _, ref := range append(d.DependsOn, d.Ref) {
			if !known[ref] {
				t.Errorf("%s is no component", ref)
			}
		}
	}
	if len(b.Components) < 20 || len(b.Dependencies) != 2 || len(b.SerialNumber) != len("urn:uuid:")+36 || b.SpecVersion != "1.6" {
		t.Errorf("%d components, %d dependencies, serial number %s", len(b.Components), len(b.Dependencies), b.SerialNumber)
	}
	if !bytes.Contains(first, []byte(`"pkg:golang/github.com/google/go-containerregistry@v`)) {
		t.Error("a module of go.mod is missing")
	}
	if _, err := materials([]string{"pack.go"}, "v1", "linux_amd64", commitTime); err == nil {
		t.Error("a text was taken for a program")
	}
}

// TestLibrariesOf: the bill has what is in the program, also where go.mod replaces a module.
func TestLibrariesOf(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26.3 X:x", Deps: []*debug.Module{
		{Path: "example.org/a", Version: "v1.0.0", Sum: "h1:a"},
		{Path: "example.org/b", Version: "v1.0.0", Replace: &debug.Module{Path: "example.org/c", Version: "v2.0.0", Sum: "h1:c"}},
		{Path: "example.org/core", Version: "v0.0.0-00010101000000-000000000000", Replace: &debug.Module{Path: "../", Version: "(devel)"}},
	}}
	var got []string
	for _, c := range librariesOf(info, "v1.2.3") {
		got = append(got, c.URL)
	}
	want := []string{"pkg:golang/std@1.26.3", "pkg:golang/example.org/a@v1.0.0", "pkg:golang/example.org/c@v2.0.0", "pkg:golang/example.org/core@v1.2.3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// small builds programs that do nothing in the place of the controllers.
func small(t *testing.T, r release) {
	t.Helper()
	source := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, target := range r.targets {
		for _, name := range programs {
			command := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", filepath.Join(r.folder(target), name), source)
			command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+target.system, "GOARCH="+target.arch)
			if out, err := command.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
	}
}

// TestPublish makes all but the programs, twice.
func TestPublish(t *testing.T) {
	work := t.TempDir()
	first := published(t, work, filepath.Join(t.TempDir(), "one"))
	second := published(t, work, filepath.Join(t.TempDir(), "two"))
	want := []string{
		"bundle-deployment-controller_v1.2.3_linux.tar", "bundle-deployment-controller_v1.2.3_linux_amd64.tar", "bundle-deployment-controller_v1.2.3_linux_arm64.tar",
		"bundle-rollout-controller_v1.2.3_linux.tar", "bundle-rollout-controller_v1.2.3_linux_amd64.tar", "bundle-rollout-controller_v1.2.3_linux_arm64.tar",
		"bundle-source-controller_v1.2.3_linux.tar", "bundle-source-controller_v1.2.3_linux_amd64.tar", "bundle-source-controller_v1.2.3_linux_arm64.tar",
		"checksums.txt", "images.txt", "install.yaml", "satchel-1.2.3.tgz",
	}
	var got []string
	for name := range first {
		got = append(got, name)
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for name, content := range first {
		if !bytes.Equal(content, second[name]) {
			t.Errorf("%s is another one the second time", name)
		}
		if line := fmt.Sprintf("%x  %s\n", sha256.Sum256(content), name); name != "checksums.txt" && !strings.Contains(string(first["checksums.txt"]), line) {
			t.Errorf("the checksum of %s is missing or wrong", name)
		}
	}
	for _, text := range []string{"entrypoint /bundle-source-controller\n", "user       65532:65532\n", " etc/passwd\n", " etc/ssl/certs/ca-certificates.crt\n", "platform   linux/arm64\n"} {
		if !strings.Contains(string(first["images.txt"]), text) {
			t.Errorf("images.txt misses %q:\n%s", text, first["images.txt"])
		}
	}
	if !strings.Contains(string(first["install.yaml"]), "image: example.org/a/bundle-source-controller:v1.2.3\n") {
		t.Error("install.yaml names other images")
	}
}

func published(t *testing.T, work, out string) map[string][]byte {
	t.Helper()
	r := release{version: "v1.2.3", registry: "example.org/a", out: out}
	if err := r.prepare("linux/amd64,linux/arm64", fmt.Sprint(commitTime.Unix())); err != nil {
		t.Fatal(err)
	}
	r.work = work
	small(t, r)
	for _, step := range []func() error{r.images, r.manifests, r.chart, r.checksums} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	wantIndex(t, filepath.Join(out, "bundle-source-controller_v1.2.3_linux.tar"))
	return filesIn(t, out)
}

// wantIndex unpacks an archive and wants one image of both architectures in it.
func wantIndex(t *testing.T, archive string) {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "tar", "-xf", archive, "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("unpacking: %v: %s", err, out)
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	top, err := index.IndexManifest()
	if err != nil || len(top.Manifests) != 1 {
		t.Fatalf("the archive names %d images: %v", len(top.Manifests), err)
	}
	image, err := index.ImageIndex(top.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := image.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, m := range manifest.Manifests {
		platforms = append(platforms, m.Platform.String())
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, platforms); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func filesIn(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if found[entry.Name()], err = os.ReadFile(filepath.Join(dir, entry.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// TestTwoReleases builds the commit twice, in clones in different folders, the second time with an empty build cache.
func TestTwoReleases(t *testing.T) {
	if os.Getenv("SATCHEL_FULL") == "" {
		t.Skip("building a release twice takes many minutes and is for the release suite: SATCHEL_FULL=1")
	}
	targets := "linux/amd64"
	if chosen := os.Getenv("SATCHEL_RELEASE_TARGETS"); chosen != "" {
		targets = chosen
	}
	clone := func(cache string) map[string][]byte {
		dir := filepath.Join(t.TempDir(), "satchel")
		began := time.Now()
		for _, args := range [][]string{{"git", "clone", "--quiet", "../..", dir}, {"go", "run", "./build/release", "-version", "v1.2.3", "-targets", targets, "-out", "dist"}} {
			command := exec.CommandContext(t.Context(), args[0], args[1:]...)
			command.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=1700000000")
			if args[0] == "go" {
				command.Dir = dir
			}
			if cache != "" {
				command.Env = append(command.Env, "GOCACHE="+cache)
			}
			if out, err := command.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v: %s", args, err, out)
			}
		}
		t.Logf("%s: %s", targets, time.Since(began).Round(time.Second))
		return filesIn(t, filepath.Join(dir, "dist"))
	}
	first, second := clone(""), clone(t.TempDir())
	if len(first) < 5 || len(first) != len(second) {
		t.Errorf("there are %d files, and %d", len(first), len(second))
	}
	for name, content := range first {
		if !bytes.Equal(content, second[name]) {
			t.Errorf("%s is another one the second time", name)
		}
		t.Logf("%x %9d %s", sha256.Sum256(content), len(content), name)
	}
}
