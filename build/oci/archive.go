// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// WriteArchive writes an OCI image layout as one tar file; the name of the image is an annotation in it. Several images are
// those of several architectures, under one index.
func WriteArchive(archive, name string, images ...v1.Image) (err error) {
	dir, err := os.MkdirTemp("", "satchel-image-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := add(path, name, images); err != nil {
		return err
	}
	out, err := os.Create(archive)
	if err != nil {
		return err
	}
	return errors.Join(pack(out, os.DirFS(dir)), out.Close())
}

func add(path layout.Path, name string, images []v1.Image) error {
	annotations := layout.WithAnnotations(map[string]string{"org.opencontainers.image.reference.name": name})
	if len(images) == 1 {
		return path.AppendImage(images[0], annotations)
	}
	var all []mutate.IndexAddendum
	for _, image := range images {
		config, err := image.ConfigFile()
		if err != nil {
			return err
		}
		all = append(all, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: config.OS, Architecture: config.Architecture}}})
	}
	return path.AppendIndex(mutate.AppendManifests(empty.Index, all...), annotations)
}

// pack writes the files of a folder in the order of their names, without times and owners.
func pack(out io.Writer, files fs.FS) error {
	writer := tar.NewWriter(out)
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o444, Size: int64(len(content))}
		if err := writer.WriteHeader(header); err != nil {
			return err
		}
		_, err = writer.Write(content)
		return err
	})
	return errors.Join(err, writer.Close())
}
