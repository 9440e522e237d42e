// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"bytes"
	"crypto/x509"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// compile builds a small program, statically unless it uses cgo's resolver on purpose.
func compile(t *testing.T, dir string) string {
	t.Helper()
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "program")
	command := exec.Command("go", "build", "-o", binary, source)
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return binary
}

func TestImage(t *testing.T) {
	dir := t.TempDir()
	binary := compile(t, dir)
	image, err := Build(binary, "v1", runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != user || strings.Join(config.Config.Entrypoint, " ") != "/program" || config.OS != "linux" {
		t.Errorf("the configuration is wrong: %+v", config)
	}
	again, err := Build(binary, "v1", runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := digest(t, image), digest(t, again); a != b {
		t.Errorf("the same binary gave %s and %s", a, b)
	}
	listed, err := Contents(image)
	if err != nil || !strings.Contains(listed, "entrypoint /program\n") || !strings.Contains(listed, " program\n") {
		t.Errorf("%v: what is in the image is not listed:\n%s", err, listed)
	}
	content, err := io.ReadAll(mutate.Extract(image))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"program", certificates, "etc/passwd"} {
		if !bytes.Contains(content, []byte(want)) {
			t.Errorf("the image misses %s", want)
		}
	}
}

func digest(t *testing.T, image v1.Image) string {
	t.Helper()
	d, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d.String()
}

// TestArchiveLoads unpacks an archive and reads the image from the layout in it.
func TestArchiveLoads(t *testing.T) {
	dir := t.TempDir()
	image, err := Build(compile(t, dir), "v1", runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(dir, "image.tar")
	if err := WriteArchive(archive, "program:v1", image); err != nil {
		t.Fatal(err)
	}
	unpacked := filepath.Join(dir, "layout")
	if err := os.Mkdir(unpacked, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("tar", "-xf", archive, "-C", unpacked).CombinedOutput(); err != nil {
		t.Fatalf("unpacking: %v: %s", err, out)
	}
	index, err := layout.ImageIndexFromPath(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Errorf("the archive is not valid: %v", err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != 1 || manifest.Manifests[0].Digest.String() != digest(t, image) ||
		manifest.Manifests[0].Annotations["org.opencontainers.image.reference.name"] != "program:v1" {
		t.Errorf("the archive does not name the image: %+v", manifest.Manifests)
	}
}

func TestDynamicBinaryIsRefused(t *testing.T) {
	shell, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		t.Skipf("no shell to look at: %v", err)
	}
	if err := checkStatic(shell); err == nil {
		t.Skipf("%s is linked statically on this machine", shell)
	} else if !strings.Contains(err.Error(), "CGO_ENABLED=0") {
		t.Errorf("the message does not say what to do: %v", err)
	}
	if err := checkStatic("oci.go"); err == nil || !strings.Contains(err.Error(), "not a Linux binary") {
		t.Errorf("a text file was taken for a binary: %v", err)
	}
}

func TestRootsAreCertificates(t *testing.T) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(roots()) {
		t.Error("the root certificates cannot be read")
	}
	if n := bytes.Count(roots(), []byte("BEGIN CERTIFICATE")); n < 50 {
		t.Errorf("only %d root certificates", n)
	}
}
