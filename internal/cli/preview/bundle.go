// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"errors"
	"fmt"

	"github.com/satchel-dev/satchel/internal/cli/bundle"
)

// bundle opens what is previewed: a folder, an image, a revision of the history, or else the current artifact of the source.
func (p *Previewer) bundle(ctx context.Context) (b *bundle.Bundle, err error) {
	switch {
	case p.options.Path != "":
		return bundle.OpenFolderBundle(p.options.Path)
	case p.options.image != "":
		return bundle.OpenImageBundle(ctx, p.app, p.options.image, p.options.OpenOptions)
	}
	if b, err := p.fromHere(ctx); b != nil || err != nil {
		return b, err
	}
	published, err := bundle.PublishedFor(ctx, p.cluster, p.User, p.Deployment)
	if err != nil {
		return nil, insteadOfArtifact(err)
	}
	if p.options.revision != "" {
		if published, err = published.At(p.Deployment, p.options.revision); err != nil {
			return nil, err
		}
	}
	p.note("%s", published.Note)
	p.Out.Revision, p.Out.Artifact = published.Artifact.Revision, published.Artifact.Digest
	if b, err = bundle.OpenArtifact(ctx, p.app, p.Config, published.Owner, published.Artifact); err != nil {
		return nil, fmt.Errorf("%w\nwithout the artifact, a folder or an image can be previewed in its place: --path DIR, --image REF", err)
	}
	return b, nil
}

// insteadOfArtifact says what can be previewed where the source published nothing yet.
func insteadOfArtifact(err error) error {
	var missing *bundle.NotPublishedError
	if errors.As(err, &missing) {
		return fmt.Errorf("%w; a folder or an image can be previewed in its place: --path DIR, --image REF", err)
	}
	return err
}
