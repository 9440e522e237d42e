// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"path"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// Only restricts what is unpacked of an image to one folder or file.
type Only struct {
	// Path is that folder. Without it, it is the value of Label.
	Path string
	// Label is a label of the image. Without it, too, everything is unpacked.
	Label string
	// Found is set by Fetch: what was unpacked, "." for everything.
	Found string
}

// maxConfig bounds the configuration of an image, which has its labels.
const maxConfig = 4 << 20

// restrict returns the tree that unpacks what is wanted of an image.
func (f *Fetcher) restrict(ctx context.Context, p place, image document, tree *fetch.Tree) (*fetch.Tree, error) {
	if f.only == nil {
		return tree, nil
	}
	wanted := f.only.Path
	if wanted == "" {
		labels, err := f.labels(ctx, p, image)
		if err != nil {
			return nil, err
		}
		wanted = labels[f.only.Label]
	}
	f.only.Found = path.Clean(path.Join("/", wanted))[1:]
	if f.only.Found == "" {
		f.only.Found = "."
		return tree, nil
	}
	return tree.Only(f.only.Found)
}

// labels reads the labels of an image at a place. An artifact that is no container image has none.
func (*Fetcher) labels(ctx context.Context, p place, image document) (map[string]string, error) {
	if image.Config == nil {
		return nil, nil
	}
	var config v1.Descriptor
	if err := json.Unmarshal(*image.Config, &config); err != nil {
		return nil, fetch.Errorf(fetch.InvalidContent, "the manifest names no configuration: %w", err)
	}
	if !config.MediaType.IsConfig() {
		return nil, nil
	}
	digest, err := fetch.ParseDigest(config.Digest.String())
	if err != nil {
		return nil, err
	}
	if config.Size < 0 || config.Size > maxConfig {
		return nil, fetch.Errorf(fetch.LimitExceeded, "the configuration of the image has more than %d bytes", maxConfig)
	}
	body, err := p.blob(ctx, digest, config.Size)
	if err != nil {
		return nil, fetch.Describe(err, "the configuration of the image")
	}
	content, err := io.ReadAll(digest.Verify(body, config.Size))
	if err = errors.Join(err, body.Close()); err != nil {
		return nil, fetch.Describe(err, "the configuration of the image")
	}
	var parsed struct {
		Config struct{ Labels map[string]string } `json:"config"`
	}
	if err := json.Unmarshal(content, &parsed); err != nil {
		return nil, fetch.Errorf(fetch.InvalidContent, "the configuration of the image is malformed: %w", err)
	}
	return parsed.Config.Labels, nil
}
