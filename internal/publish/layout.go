// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/fetch"
)

// WriteLayout writes an image as an OCI layout in a reproducible tar archive. An existing file is replaced once all is
// written.
func WriteLayout(ctx context.Context, file string, image v1.Image) (err error) {
	dir, err := os.MkdirTemp("", "satchel-")
	if err != nil {
		return fmt.Errorf("creating a temporary folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path, err := layout.Write(dir, empty.Index)
	if err == nil {
		err = path.AppendImage(image)
	}
	if err != nil {
		return fmt.Errorf("writing the OCI layout: %w", err)
	}
	out, err := os.CreateTemp(filepath.Dir(file), ".satchel-*")
	if err != nil {
		return fmt.Errorf("writing the OCI layout: %w", err)
	}
	err = artifact.WriteCanonical(ctx, out, os.DirFS(dir))
	if err == nil {
		err = out.Chmod(0o644)
	}
	if err = errors.Join(err, out.Close()); err == nil {
		err = os.Rename(out.Name(), file)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing the OCI layout %s: %w", file, err), os.Remove(out.Name()))
	}
	return nil
}

// Stored is an image that was read from an OCI layout.
type Stored struct {
	Image v1.Image
	// Digest of its manifest, and of the tree that its layers make: the one in the revision of an artifact.
	Digest, Content v1.Hash
	dir             string
}

// Close removes what was unpacked.
func (s *Stored) Close() error {
	if s.dir == "" {
		return nil
	}
	return os.RemoveAll(s.dir)
}

// layoutFile marks the folder of an OCI layout.
const layoutFile = "oci-layout"

// IsLayout tells whether a path is an OCI layout: a folder with the file oci-layout, or a tar archive by its name.
func IsLayout(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	if !info.IsDir() {
		return strings.HasSuffix(path, ".tar")
	}
	_, err = os.Stat(filepath.Join(path, layoutFile))
	return err == nil
}

// OpenLayout reads the one image of an OCI layout, a folder or a tar archive, and checks that the source controller
// would accept it: each layer is unpacked within the limits. Close it.
func OpenLayout(ctx context.Context, path string, limits fetch.Limits) (s *Stored, err error) {
	s = &Stored{}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("reading the OCI layout %s: %w", path, err), s.Close())
			s = nil
		}
	}()
	if s.dir, err = os.MkdirTemp("", "satchel-"); err != nil {
		return s, err
	}
	folder := path
	if info, statErr := os.Stat(path); statErr == nil && !info.IsDir() {
		if folder, err = s.unpack(ctx, path, limits); err != nil {
			return s, err
		}
	}
	if s.Image, err = only(folder); err != nil {
		return s, err
	}
	if s.Digest, err = s.Image.Digest(); err != nil {
		return s, err
	}
	return s, s.check(ctx, limits)
}

// unpack unpacks the archive of a layout, and returns the folder.
func (s *Stored) unpack(ctx context.Context, path string, limits fetch.Limits) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close() //nolint:errcheck // only read from
	folder := filepath.Join(s.dir, "layout")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return "", err
	}
	limits.FileBytes = limits.DownloadBytes // a file of a layout is a whole layer
	tree, err := fetch.NewTree(folder, limits)
	if err != nil {
		return "", err
	}
	return folder, errors.Join(tree.Untar(ctx, file), tree.Close())
}

// only returns the image of a layout that holds just one.
func only(folder string) (v1.Image, error) {
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return nil, fetch.Errorf(fetch.InvalidContent, "it is no OCI layout: %w", err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, fetch.Errorf(fetch.InvalidContent, "its index cannot be read: %w", err)
	}
	if len(manifest.Manifests) != 1 || !manifest.Manifests[0].MediaType.IsImage() {
		return nil, fetch.Errorf(fetch.InvalidContent, "it holds %d manifests, and one image is pushed: write that into a layout of its own", len(manifest.Manifests))
	}
	return index.Image(manifest.Manifests[0].Digest)
}

// check unpacks the layers as the source controller would.
func (s *Stored) check(ctx context.Context, limits fetch.Limits) (err error) {
	layers, err := s.Image.Layers()
	if err != nil {
		return fetch.Errorf(fetch.InvalidContent, "%w", err)
	}
	if len(layers) == 0 {
		return fetch.Errorf(fetch.InvalidContent, "the image has no layers")
	}
	if len(layers) > limits.Layers {
		return fetch.Errorf(fetch.LimitExceeded, "the image has %d layers, more than %d", len(layers), limits.Layers)
	}
	folder := filepath.Join(s.dir, "tree")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	tree, err := fetch.NewTree(folder, limits)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tree.Close(), os.RemoveAll(folder)) }()
	for number, layer := range layers {
		if err := unpackLayer(ctx, tree, layer); err != nil {
			return fetch.Describe(err, "layer %d of %d", number+1, len(layers))
		}
	}
	content := &summed{to: io.Discard, hash: sha256.New()}
	if err := artifact.WriteCanonical(ctx, content, tree.FS()); err != nil {
		return err
	}
	s.Content = content.digest()
	return nil
}

// unpackLayer unpacks a layer within the limits of the tree, and checks its size and digest.
func unpackLayer(ctx context.Context, tree *fetch.Tree, layer v1.Layer) error {
	mediaType, err := layer.MediaType()
	if err != nil {
		return err
	}
	packed, err := compression(mediaType)
	if err != nil {
		return err
	}
	stated, err := layer.Digest()
	if err != nil {
		return err
	}
	digest, err := fetch.ParseDigest(stated.String())
	if err != nil {
		return err
	}
	size, err := layer.Size()
	if err != nil {
		return err
	}
	body, err := layer.Compressed()
	if err != nil {
		return fetch.Errorf(fetch.InvalidContent, "%w", err)
	}
	return errors.Join(tree.UntarLayer(ctx, digest.Verify(tree.Metered(body), size), packed), body.Close())
}

func compression(mediaType types.MediaType) (fetch.Compression, error) {
	kind := string(mediaType)
	for _, known := range []struct {
		suffix string
		packed fetch.Compression
	}{{"tar+gzip", fetch.Gzip}, {"tar.gzip", fetch.Gzip}, {"tar+zstd", fetch.Zstd}, {"tar.zstd", fetch.Zstd}, {".tar", fetch.Uncompressed}} {
		if strings.HasSuffix(kind, known.suffix) {
			return known.packed, nil
		}
	}
	return "", fetch.Errorf(fetch.InvalidContent, "it has the media type %s, which is no tar archive (plain, gzip or zstd)", fetch.Quote(kind))
}
