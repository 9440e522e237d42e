// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// Kind is what a bundle is published as.
type Kind string

const (
	// Image is a container image from scratch, as RukPak and OLM want bundles: its root holds the files, and its labels
	// are the annotations of a registry+v1 bundle.
	Image Kind = "image"
	// Artifact is an OCI artifact of the media types that Flux's OCIRepository knows.
	Artifact Kind = "artifact"
)

// Media types of an Artifact.
const (
	artifactConfigType types.MediaType = "application/vnd.cncf.flux.config.v1+json"
	artifactLayerType  types.MediaType = "application/vnd.cncf.flux.content.v1.tar+gzip"
)

// createdAnnotation is when the content was made (OCI image specification, annotations).
const createdAnnotation = "org.opencontainers.image.created"

// Options say what is made of a packed folder.
type Options struct {
	Kind Kind
	// Annotations of the manifest.
	Annotations map[string]string
	// Created is when the bundle was made; with the zero time the digest depends only on the content.
	Created time.Time
}

// Image makes an image or artifact of the layer.
func (p *Packed) Image(o Options) (v1.Image, error) {
	of, layerType := empty.Image, types.OCILayer
	image := mutate.MediaType(of, types.OCIManifestSchema1)
	if o.Kind == Artifact {
		layerType = artifactLayerType
	}
	image, err := mutate.Append(image, mutate.Addendum{Layer: &layer{packed: p, mediaType: layerType}})
	if err != nil {
		return nil, fmt.Errorf("making the image: %w", err)
	}
	if image, err = p.configured(image, o); err != nil {
		return nil, err
	}
	annotations := maps.Clone(o.Annotations)
	if !o.Created.IsZero() {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[createdAnnotation] = o.Created.UTC().Format(time.RFC3339)
	}
	if len(annotations) == 0 {
		return image, nil
	}
	annotated, ok := mutate.Annotations(image, annotations).(v1.Image)
	if !ok {
		return nil, fmt.Errorf("annotating the image: it is none any more")
	}
	return annotated, nil
}

// configured gives the image its configuration.
func (p *Packed) configured(image v1.Image, o Options) (v1.Image, error) {
	file, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("making the image: %w", err)
	}
	file = file.DeepCopy()
	file.History, file.Created = nil, v1.Time{Time: o.Created.UTC()}
	if o.Kind == Image {
		file.OS, file.Architecture = "linux", "amd64"
		if file.Config.Labels, err = labels(p); err != nil {
			return nil, err
		}
	}
	if image, err = mutate.ConfigFile(image, file); err != nil {
		return nil, fmt.Errorf("making the image: %w", err)
	}
	if o.Kind == Artifact {
		return mutate.ConfigMediaType(image, artifactConfigType), nil
	}
	return mutate.ConfigMediaType(image, types.OCIConfigJSON), nil
}

// annotationsFile holds the labels of the image of a registry+v1 bundle.
const annotationsFile = "metadata/annotations.yaml"

// labels are the annotations of the bundle; none without the file.
func labels(p *Packed) (map[string]string, error) {
	if _, err := fs.Stat(p.FS(), annotationsFile); err != nil {
		return nil, nil //nolint:nilerr // a bundle of another format
	}
	data, problem := manifest.NewReader(p.FS(), convert.DefaultLimits()).ReadFile(annotationsFile, "P2")
	if problem != nil {
		return nil, fmt.Errorf("reading the labels of the image: %s", problem)
	}
	var content struct {
		Annotations map[string]string `json:"annotations"`
	}
	if err := yaml.Unmarshal(data, &content); err != nil {
		return nil, fmt.Errorf("reading the labels of the image: %s: it is no mapping of strings: correct the file", annotationsFile)
	}
	return content.Annotations, nil
}

// layer is the packed folder as go-containerregistry wants layers.
type layer struct {
	packed    *Packed
	mediaType types.MediaType
}

// Digest implements v1.Layer.
func (l *layer) Digest() (v1.Hash, error) { return l.packed.Digest, nil }

// DiffID implements v1.Layer.
func (l *layer) DiffID() (v1.Hash, error) { return l.packed.Content, nil }

// Size implements v1.Layer.
func (l *layer) Size() (int64, error) { return l.packed.Size, nil }

// MediaType implements v1.Layer.
func (l *layer) MediaType() (types.MediaType, error) { return l.mediaType, nil }

// Compressed implements v1.Layer.
func (l *layer) Compressed() (io.ReadCloser, error) { return os.Open(l.packed.layerFile()) }

// Uncompressed implements v1.Layer.
func (l *layer) Uncompressed() (io.ReadCloser, error) {
	return nil, fmt.Errorf("the layer is kept compressed")
}
