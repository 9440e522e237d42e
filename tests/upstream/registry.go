// SPDX-License-Identifier: Apache-2.0

// Package upstream runs what bundles come from, for tests and for the demo: a
// CNCF Distribution registry and a smart-HTTP Git server, both real and on
// loopback.
package upstream

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/inmemory" // the storage that the registry is configured with
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/sirupsen/logrus"
)

// Registry is a CNCF Distribution registry that keeps its content in memory.
type Registry struct{ server *httptest.Server }

// NewRegistry starts a registry on a free port of loopback, without TLS.
func NewRegistry(ctx context.Context) *Registry {
	logrus.SetOutput(io.Discard) // the registry logs through the global logger
	config := &configuration.Configuration{
		Storage: configuration.Storage{"inmemory": nil, "delete": {"enabled": true}},
	}
	config.Log.AccessLog.Disabled = true
	config.Log.Level = "error"
	return &Registry{server: httptest.NewServer(handlers.NewApp(ctx, config))}
}

// Host is the host and port that image references begin with.
func (r *Registry) Host() string { return strings.TrimPrefix(r.server.URL, "http://") }

// ServeHTTP answers a request, for a proxy before the registry.
func (r *Registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.server.Config.Handler.ServeHTTP(w, request)
}

// Close stops the registry.
func (r *Registry) Close() { r.server.Close() }

// Push stores an image of the given layers as repository:tag, and returns its
// digest.
func (r *Registry) Push(ctx context.Context, repositoryAndTag string, layers ...fs.FS) (string, error) {
	return r.PushLabeled(ctx, repositoryAndTag, nil, layers...)
}

// PushLabeled is Push of an image with labels.
func (r *Registry) PushLabeled(ctx context.Context, repositoryAndTag string, labels map[string]string, layers ...fs.FS) (string, error) {
	img, err := Image(layers...)
	if err == nil && labels != nil {
		img, err = mutate.Config(img, v1.Config{Labels: labels})
	}
	if err != nil {
		return "", err
	}
	ref, err := name.ParseReference(r.Host()+"/"+repositoryAndTag, name.Insecure)
	if err != nil {
		return "", fmt.Errorf("naming the image: %w", err)
	}
	if err := remote.Write(ref, img, remote.WithContext(ctx), remote.WithTransport(http.DefaultTransport)); err != nil {
		return "", fmt.Errorf("pushing %s: %w", ref, err)
	}
	digest, err := img.Digest()
	return digest.String(), err
}

// PushChart stores a package of a chart as helm push does: with its media types, the metadata of the chart as configuration,
// and a layer for the provenance file. It returns the digest.
func (r *Registry) PushChart(ctx context.Context, repositoryAndTag string, packaged []byte, metadata any) (string, error) {
	ref, err := name.ParseReference(r.Host()+"/"+repositoryAndTag, name.Insecure)
	if err != nil {
		return "", fmt.Errorf("naming the chart: %w", err)
	}
	config, err := json.Marshal(metadata)
	if err != nil {
		return "", fmt.Errorf("writing the metadata of the chart: %w", err)
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithTransport(http.DefaultTransport)}
	manifest := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Annotations: map[string]string{"org.opencontainers.image.title": ref.Context().RepositoryStr()}}
	for _, blob := range []struct {
		kind types.MediaType
		data []byte
	}{
		{"application/vnd.cncf.helm.config.v1+json", config},
		{"application/vnd.cncf.helm.chart.content.v1.tar+gzip", packaged},
		{"application/vnd.cncf.helm.chart.provenance.v1.prov", []byte("-----BEGIN PGP SIGNED MESSAGE-----\n")},
	} {
		layer := static.NewLayer(blob.data, blob.kind)
		if err := remote.WriteLayer(ref.Context(), layer, options...); err != nil {
			return "", fmt.Errorf("pushing a blob of %s: %w", ref, err)
		}
		described, err := partial.Descriptor(layer)
		if err != nil {
			return "", fmt.Errorf("describing a blob of %s: %w", ref, err)
		}
		manifest.Layers = append(manifest.Layers, *described)
	}
	manifest.Config, manifest.Layers = manifest.Layers[0], manifest.Layers[1:]
	document, err := json.Marshal(manifest)
	if err != nil {
		return "", fmt.Errorf("writing the manifest of %s: %w", ref, err)
	}
	if err := remote.Put(ref, written(document), options...); err != nil {
		return "", fmt.Errorf("pushing %s: %w", ref, err)
	}
	digest, _, err := v1.SHA256(bytes.NewReader(document))
	return digest.String(), err
}

// written is a manifest to push as it is.
type written []byte

// RawManifest returns the manifest.
func (w written) RawManifest() ([]byte, error) { return w, nil }

// MediaType of the manifest.
func (written) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// Image builds an image with the files of the given trees, a layer each.
func Image(layers ...fs.FS) (v1.Image, error) {
	img := empty.Image
	for _, files := range layers {
		content, err := Tar(files)
		if err != nil {
			return nil, err
		}
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })
		if err != nil {
			return nil, fmt.Errorf("building a layer: %w", err)
		}
		if img, err = mutate.AppendLayers(img, layer); err != nil {
			return nil, fmt.Errorf("appending a layer: %w", err)
		}
	}
	return img, nil
}

// Tar packs the regular files of a tree.
func Tar(files fs.FS) ([]byte, error) {
	var buffer bytes.Buffer
	archive := tar.NewWriter(&buffer)
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		header := &tar.Header{Name: path, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content))}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		_, err = archive.Write(content)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("packing files: %w", err)
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("packing files: %w", err)
	}
	return buffer.Bytes(), nil
}
