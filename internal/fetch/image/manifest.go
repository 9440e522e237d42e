// SPDX-License-Identifier: Apache-2.0

package image

import (
	"encoding/json"
	"mime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// document is a manifest or an index.
type document struct {
	MediaType types.MediaType  `json:"mediaType"`
	Manifests []v1.Descriptor  `json:"manifests"`
	Layers    []v1.Descriptor  `json:"layers"`
	Config    *json.RawMessage `json:"config"`
}

func (d document) isIndex() bool { return d.MediaType.IsIndex() }

// accepted are the media types asked for, newest first.
var accepted = []string{
	string(types.OCIImageIndex), string(types.OCIManifestSchema1),
	string(types.DockerManifestList), string(types.DockerManifestSchema2),
}

// essence is a content type without its parameters.
func essence(contentType string) string {
	if parsed, _, err := mime.ParseMediaType(contentType); err == nil {
		return parsed
	}
	return ""
}

// parseDocument reads a manifest or index. The type that the document states is the one that counts, since only that
// is covered by the digest; the server's word is taken where there is none. A document that could be read as both
// kinds is refused (CVE-2021-41190), and so is one of which the server says that it is of the other kind: readers that
// believe the server would see something else than we do.
func parseDocument(data []byte, contentType string) (document, error) {
	var d document
	if err := checkDocument(data); err != nil {
		return d, fetch.Describe(err, "the manifest")
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return d, fetch.Errorf(fetch.InvalidContent, "the manifest is malformed: %w", err)
	}
	served := types.MediaType(essence(contentType))
	if d.MediaType == "" {
		d.MediaType = served
	}
	switch {
	case !d.MediaType.IsIndex() && !d.MediaType.IsImage():
		return d, fetch.Errorf(fetch.InvalidContent, "the manifest's media type %s is not supported: "+
			"push an OCI or Docker (schema 2) image", fetch.Quote(string(d.MediaType)))
	case d.Manifests != nil && !d.isIndex(), (d.Layers != nil || d.Config != nil) && d.isIndex():
		return d, fetch.Errorf(fetch.InvalidContent, "the manifest can be read as an image and as an index")
	case served.IsIndex() && !d.isIndex(), served.IsImage() && d.isIndex():
		return d, fetch.Errorf(fetch.InvalidContent, "the registry says that the manifest is of the type %s, and the manifest says %s: push it again",
			fetch.Quote(string(served)), fetch.Quote(string(d.MediaType)))
	}
	return d, nil
}

// checkLayers refuses what can be seen to be wrong before anything is downloaded.
func checkLayers(layers []v1.Descriptor, l fetch.Limits) error {
	if len(layers) == 0 {
		return fetch.Errorf(fetch.InvalidContent, "the image has no layers")
	}
	if len(layers) > l.Layers {
		return fetch.Errorf(fetch.LimitExceeded, "the image has %d layers, more than %d", len(layers), l.Layers)
	}
	total := int64(0)
	for _, layer := range layers {
		if _, err := compression(layer); err != nil {
			return err
		}
		if layer.Size < 0 || layer.Size > l.DownloadBytes-total {
			return fetch.Errorf(fetch.LimitExceeded, "the layers have more than %d bytes", l.DownloadBytes)
		}
		total += layer.Size
	}
	return nil
}

// helmProvenance is the media type of the signature that helm push adds as a layer beside that of the chart. It is no archive.
const helmProvenance types.MediaType = "application/vnd.cncf.helm.chart.provenance.v1.prov"

// compression tells how a layer is packed. Docker's and OCI's layer types are accepted, and those of artifacts that
// say in the same way that they are tar archives. Layers that live elsewhere than in the registry are refused.
func compression(layer v1.Descriptor) (fetch.Compression, error) {
	kind := string(layer.MediaType)
	if len(layer.URLs) > 0 || !layer.MediaType.IsDistributable() {
		return "", fetch.Errorf(fetch.InvalidContent, "the layer %s lies outside the registry (%s), which is refused",
			layer.Digest, fetch.Quote(kind))
	}
	for _, known := range suffixes {
		if strings.HasSuffix(kind, known.suffix) {
			return known.packed, nil
		}
	}
	return "", fetch.Errorf(fetch.InvalidContent,
		"the layer %s has the media type %s, which is no tar archive (plain, gzip or zstd)", layer.Digest, fetch.Quote(kind))
}

// suffixes are the ends of media types and what they mean.
var suffixes = []struct {
	suffix string
	packed fetch.Compression
}{
	{".tar+gzip", fetch.Gzip},
	{".tar.gzip", fetch.Gzip},
	{".tar+zstd", fetch.Zstd},
	{".tar.zstd", fetch.Zstd},
	{".tar", fetch.Uncompressed},
}
