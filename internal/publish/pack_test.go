// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/publish"
)

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

func tree(pairs ...string) fstest.MapFS {
	files := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		files[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1]), Mode: 0o644}
	}
	return files
}

func packed(t testing.TB, files fstest.MapFS) *publish.Packed {
	t.Helper()
	p, err := publish.Pack(t.Context(), files, fetch.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func digestOf(t testing.TB, image v1.Image, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

// TestReproducible lists what a digest depends on, and what it does not. The digest of the first case is pinned: it may only
// change with the compressor, and its content never.
func TestReproducible(t *testing.T) {
	base := func() fstest.MapFS {
		return tree("manifests/a.yaml", configMap, "manifests/b/c.yaml", "x", "README.md", "y")
	}
	changed := func(change func(fstest.MapFS)) fstest.MapFS {
		files := base()
		change(files)
		return files
	}
	first := packed(t, base())
	image, err := first.Image(publish.Options{Kind: publish.Artifact})
	digest := digestOf(t, image, err)
	const content = "sha256:a6fb83959332b9e5d6c3b252b128b69c18338cbd76c2d1edf46f7bb75fe28f16"
	if first.Content.String() != content {
		t.Errorf("the content of the same files is %s, and has been %s", first.Content, content)
	}
	for name, c := range map[string]struct {
		reason string
		files  fstest.MapFS
		o      publish.Options
		same   bool
	}{
		"again":          {"nothing changed", base(), publish.Options{Kind: publish.Artifact}, true},
		"times":          {"when files were written", changed(func(f fstest.MapFS) { f["README.md"].ModTime = time.Now() }), publish.Options{Kind: publish.Artifact}, true},
		"modes":          {"who may read and run them", changed(func(f fstest.MapFS) { f["README.md"].Mode = 0o755; f["manifests/a.yaml"].Mode = 0o400 }), publish.Options{Kind: publish.Artifact}, true},
		"empty folder":   {"which holds nothing", changed(func(f fstest.MapFS) { f["empty"] = &fstest.MapFile{Mode: os.ModeDir | 0o755} }), publish.Options{Kind: publish.Artifact}, true},
		"no annotations": {"none is none", base(), publish.Options{Kind: publish.Artifact, Annotations: map[string]string{}}, true},
		"a byte":         {"the content", changed(func(f fstest.MapFS) { f["README.md"].Data = []byte("z") }), publish.Options{Kind: publish.Artifact}, false},
		"a name":         {"names are content", changed(func(f fstest.MapFS) { f["README"] = f["README.md"]; delete(f, "README.md") }), publish.Options{Kind: publish.Artifact}, false},
		"another kind":   {"an image is no artifact", base(), publish.Options{Kind: publish.Image}, false},
		"an annotation":  {"annotations count", base(), publish.Options{Kind: publish.Artifact, Annotations: map[string]string{"a": "b"}}, false},
		"a stated time":  {"and so does a time that is stated", base(), publish.Options{Kind: publish.Artifact, Created: time.Unix(1, 0)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			image, err := packed(t, c.files).Image(c.o)
			if got := digestOf(t, image, err); (got == digest) != c.same {
				t.Errorf("%s: %s, and first %s", c.reason, got, digest)
			}
		})
	}
}

// TestImages checks the manifests and labels of the two kinds.
func TestImages(t *testing.T) {
	annotations := "annotations:\n  operators.operatorframework.io.bundle.mediatype.v1: registry+v1\n  operators.operatorframework.io.bundle.package.v1: shop\n"
	p := packed(t, tree("manifests/a.yaml", configMap, "metadata/annotations.yaml", annotations))
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for kind, want := range map[publish.Kind]string{
		publish.Image:    "application/vnd.oci.image.manifest.v1+json application/vnd.oci.image.config.v1+json application/vnd.oci.image.layer.v1.tar+gzip linux/amd64 shop",
		publish.Artifact: "application/vnd.oci.image.manifest.v1+json application/vnd.cncf.flux.config.v1+json application/vnd.cncf.flux.content.v1.tar+gzip / ",
	} {
		image, err := p.Image(publish.Options{Kind: kind, Created: created, Annotations: map[string]string{"k": "v"}})
		if err != nil {
			t.Fatal(err)
		}
		m, err := image.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		file, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprintf("%s %s %s %s/%s %s", m.MediaType, m.Config.MediaType, m.Layers[0].MediaType, file.OS, file.Architecture, file.Config.Labels["operators.operatorframework.io.bundle.package.v1"])
		if got != want || len(m.Layers) != 1 || file.RootFS.DiffIDs[0] != p.Content {
			t.Errorf("%s: got  %s\nwant %s", kind, got, want)
		}
		if m.Annotations["k"] != "v" || m.Annotations["org.opencontainers.image.created"] != "2026-01-02T03:04:05Z" || !file.Created.Equal(created) {
			t.Errorf("%s: %v, created %v", kind, m.Annotations, file.Created)
		}
	}
}

// TestRefused: content that the source controller would refuse is refused before it is sent, with the same message.
func TestRefused(t *testing.T) {
	small := fetch.DefaultLimits()
	small.FileBytes, small.Entries, small.Depth, small.ExtractedBytes, small.DownloadBytes = 100, 5, 3, 250, 1<<20
	tiny := small
	tiny.DownloadBytes = 10
	for name, c := range map[string]struct {
		files  fstest.MapFS
		limits fetch.Limits
		reason fetch.Reason
		want   string
	}{
		"empty":         {tree(), small, fetch.InvalidContent, "no files"},
		"a large file":  {tree("a", strings.Repeat("x", 101)), small, fetch.LimitExceeded, `file "a": it has more than 100 bytes, the limit for one file`},
		"too much":      {tree("a", strings.Repeat("x", 90), "b", strings.Repeat("x", 90), "c", strings.Repeat("x", 90)), small, fetch.LimitExceeded, "the source has more than 250 bytes unpacked"},
		"many":          {tree("a", "", "b", "", "c", "", "d", "", "e", "", "f", ""), small, fetch.LimitExceeded, "the source has more than 5 files, folders and links"},
		"deep":          {tree("a/b/c/d", ""), small, fetch.LimitExceeded, "more than 3"},
		"a backslash":   {tree(`a\b`, ""), small, fetch.InvalidContent, "backslash"},
		"a dash":        {tree("-a", ""), small, fetch.InvalidContent, "begins with a dash"},
		"hidden":        {tree("a\u202eb", ""), small, fetch.InvalidContent, "invisible"},
		"a link":        {fstest.MapFS{"a": {Data: []byte("b"), Mode: os.ModeSymlink}}, small, fetch.InvalidContent, "neither a regular file nor a folder"},
		"a large layer": {tree("a", "b"), tiny, fetch.LimitExceeded, "the layers have more than 10 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			temporary := t.TempDir()
			t.Setenv("TMPDIR", temporary)
			_, err := publish.Pack(t.Context(), c.files, c.limits)
			if err == nil || fetch.ReasonOf(err) != c.reason || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v (%s)", err, fetch.ReasonOf(err))
			}
			if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
				t.Errorf("%v is left, %v", left, err)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := publish.Pack(ctx, tree("a", "b"), small); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted one: %v", err)
	}
	if _, err := packed(t, tree("metadata/annotations.yaml", "annotations: [1]")).Image(publish.Options{Kind: publish.Image}); err == nil || !strings.Contains(err.Error(), "metadata/annotations.yaml") {
		t.Errorf("labels of a broken file: %v", err)
	}
}

// TestLayout writes an OCI layout, reads it again, and refuses what a cluster would refuse.
func TestLayout(t *testing.T) {
	p := packed(t, tree("manifests/a.yaml", configMap))
	image, err := p.Image(publish.Options{Kind: publish.Image})
	want := digestOf(t, image, err)
	dir := t.TempDir()
	file, again := filepath.Join(dir, "a.tar"), filepath.Join(dir, "b.tar")
	for _, to := range []string{file, again} {
		if err := publish.WriteLayout(t.Context(), to, image); err != nil {
			t.Fatal(err)
		}
	}
	one, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if two, err := os.ReadFile(again); err != nil || string(one) != string(two) {
		t.Errorf("two archives of one image differ: %v", err)
	}
	if !publish.IsLayout(file) || publish.IsLayout(dir) || publish.IsLayout(filepath.Join(dir, "none.tar")) {
		t.Error("layouts are not told from other things")
	}
	stored, err := publish.OpenLayout(t.Context(), file, fetch.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	defer stored.Close()
	if stored.Digest.String() != want || stored.Content != p.Content {
		t.Errorf("read %s of %s, want %s of %s", stored.Digest, stored.Content, want, p.Content)
	}
	few := fetch.DefaultLimits()
	few.FileBytes = 10
	if _, err := publish.OpenLayout(t.Context(), file, few); fetch.ReasonOf(err) != fetch.LimitExceeded {
		t.Errorf("above the limit: %v", err)
	}
	for name, content := range map[string]string{"cut": string(one[:len(one)/2]), "no layout": "", "no tar": strings.Repeat("x", 4096)} {
		broken := filepath.Join(t.TempDir(), "x.tar")
		if err := os.WriteFile(broken, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := publish.OpenLayout(t.Context(), broken, fetch.DefaultLimits()); fetch.ReasonOf(err) != fetch.InvalidContent || !strings.Contains(err.Error(), broken) {
			t.Errorf("%s: %v", name, err)
		}
	}
	damaged := strings.Replace(string(one), "\x1f\x8b", "\x1f\x8c", 1)
	broken := filepath.Join(t.TempDir(), "x.tar")
	if err := os.WriteFile(broken, []byte(damaged), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := publish.OpenLayout(t.Context(), broken, fetch.DefaultLimits()); err == nil {
		t.Error("a damaged layer is taken")
	}
}
