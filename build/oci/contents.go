// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// Contents lists what is in an image: its digest, how it is run, and each file with its mode, size and SHA-256.
func Contents(image v1.Image) (text string, err error) {
	digest, err := image.Digest()
	if err != nil {
		return "", err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return "", err
	}
	var out strings.Builder
	fmt.Fprintf(&out, "  digest     %s\n  platform   %s/%s\n  user       %s\n  entrypoint %s\n", digest, config.OS, config.Architecture,
		config.Config.User, strings.Join(config.Config.Entrypoint, " "))
	content := mutate.Extract(image)
	defer func() { err = errors.Join(err, content.Close()) }()
	for files := tar.NewReader(content); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return out.String(), nil
		}
		if err != nil {
			return "", err
		}
		sum := sha256.New()
		if _, err := io.Copy(sum, files); err != nil {
			return "", err
		}
		fmt.Fprintf(&out, "  %04o %10d %x %s\n", header.Mode, header.Size, sum.Sum(nil), header.Name)
	}
}
