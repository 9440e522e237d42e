// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/satchel-dev/satchel/internal/cli/bundle"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/lockfile"
	"github.com/satchel-dev/satchel/internal/resolver"
)

// writeAnswer writes the bundle into the file of --write. A tag is resolved to its digest by the registry.
func (o *options) writeAnswer(ctx context.Context, a *kit.App, asked *question, answer resolver.Answer) error {
	pinned, err := o.pin(ctx, a, asked, answer)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(o.write)
	if err != nil {
		return fmt.Errorf("reading --write %s: %w", o.write, kit.WithoutPath(err))
	}
	want := lockfile.Want{Package: asked.query.Package, Bundle: answer.Bundle, Image: pinned}
	if asked.deployment != nil {
		want.Name = asked.deployment.Name
	}
	written, object, err := lockfile.Write(data, want)
	if err != nil {
		return fmt.Errorf("--write %s: %w", o.write, err)
	}
	if string(written) == string(data) {
		fmt.Fprintf(a.Streams.ErrOut, "%s: %s has %s already.\n", o.write, object, answer.Bundle)
		return nil
	}
	if err := os.WriteFile(o.write, written, 0o644); err != nil { //nolint:gosec // the file exists, and keeps its mode
		return fmt.Errorf("writing --write %s: %w", o.write, kit.WithoutPath(err))
	}
	fmt.Fprintf(a.Streams.ErrOut, "%s: %s has %s now.\n", o.write, object, answer.Bundle)
	return nil
}

// pin is the image with its digest. A tag that moved since does not change the digest of the same bundle.
func (o *options) pin(ctx context.Context, a *kit.App, asked *question, answer resolver.Answer) (string, error) {
	switch {
	case strings.Contains(answer.Image, "@"):
		return answer.Image, nil
	case asked.bundle == answer.Bundle && strings.Contains(asked.image, "@"):
		o.noteMoved(ctx, a, answer.Image, asked.image)
		return asked.image, nil
	}
	return bundle.ResolveImage(ctx, a, answer.Image, o.catalogs.Images())
}

// tagTimeout bounds the question what a tag points at now.
const tagTimeout = 10 * time.Second

// noteMoved warns if a tag points at another digest than the one that was resolved before. Nothing is said if the registry does not
// answer, since it is not needed.
func (o *options) noteMoved(ctx context.Context, a *kit.App, tag, was string) {
	ctx, cancel := context.WithTimeout(ctx, tagTimeout)
	defer cancel()
	now, err := bundle.ResolveImage(ctx, a, tag, o.catalogs.Images())
	if err == nil && !sameImage(now, was) {
		a.Note([]string{fmt.Sprintf("%s points at %s now, and not at %s: that is no upgrade, and the lock stays. If its author moved the tag on purpose, remove the lock, and resolve again", tag, now, was)})
	}
}
