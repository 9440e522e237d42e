// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is an unprivileged user without an entry anywhere else.
const user = "65532:65532"

// certificates is where Go looks for root certificates first.
const certificates = "etc/ssl/certs/ca-certificates.crt"

// Build makes the image of one static binary, for an architecture.
func Build(binary, version, arch string) (v1.Image, error) {
	if err := checkStatic(binary); err != nil {
		return nil, err
	}
	program, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	name := filepath.Base(binary)
	base, err := layer(file{certificates, 0o444, roots()}, file{"etc/passwd", 0o444, []byte("satchel:x:65532:65532::/:/none\n")})
	if err != nil {
		return nil, err
	}
	top, err := layer(file{name, 0o555, program})
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(mutate.MediaType(mutate.ConfigMediaType(empty.Image, types.OCIConfigJSON), types.OCIManifestSchema1), base, top)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config.OS, config.Architecture = "linux", arch
	config.Config = v1.Config{
		User: user, Entrypoint: []string{"/" + name}, WorkingDir: "/",
		Labels: map[string]string{
			"org.opencontainers.image.title":    name,
			"org.opencontainers.image.version":  version,
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return mutate.ConfigFile(image, config)
}

// checkStatic refuses a binary that needs a loader, which an image from scratch does not have.
func checkStatic(binary string) error {
	parsed, err := elf.Open(binary)
	if err != nil {
		return fmt.Errorf("%s is not a Linux binary (build it with GOOS=linux): %w", binary, err)
	}
	defer func() { _ = parsed.Close() }()
	for _, segment := range parsed.Progs {
		if segment.Type == elf.PT_INTERP {
			return fmt.Errorf("%s is linked dynamically: build it with CGO_ENABLED=0, as `make build` does", binary)
		}
	}
	return nil
}

// roots returns the root certificates as PEM, without those that are trusted under conditions, which PEM
// cannot express.
func roots() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes everything
		}
	}
	return out.Bytes()
}

// file is a file of a layer.
type file struct {
	name    string
	mode    int64
	content []byte
}

// layer packs files with neither times nor owners, so that equal files make equal layers.
func layer(files ...file) (v1.Layer, error) {
	var out bytes.Buffer
	writer := tar.NewWriter(&out)
	for _, f := range files {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.content)), Format: tar.FormatPAX}
		if err := writer.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.name, err)
		}
		if _, err := writer.Write(f.content); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.name, err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	content := out.Bytes()
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}, tarball.WithMediaType(types.OCILayer))
}
