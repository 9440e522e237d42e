// SPDX-License-Identifier: Apache-2.0

package sourcefetch

import (
	"context"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/http"
	"github.com/satchel-dev/satchel/internal/fetch/image"
	"github.com/satchel-dev/satchel/internal/sourcefetch/credentials"
)

// KeptVerifier returns the signer of a digest, by a kept signature.
type KeptVerifier func(ctx context.Context, digest, signature string) (by string, err error)

// KeptVerifier returns the function that verifies a signature of a source by its current trust settings, without the
// upstream.
func (a *Adapters) KeptVerifier(ctx context.Context, source v1alpha1.Source) (KeptVerifier, error) {
	switch {
	case source.Image != nil:
		return a.keptImageVerifier(ctx, source.Image)
	case source.Git != nil:
		v, err := credentials.GitVerification(ctx, a.secrets, source.Git.Verify)
		if err != nil {
			return nil, err
		}
		return func(_ context.Context, digest, signature string) (string, error) {
			return v.VerifyKept(digest, signature)
		}, nil
	case source.HTTP != nil:
		v, err := credentials.ArchiveVerifier(ctx, a.secrets, source.HTTP.Verify)
		return func(ctx context.Context, digest, signature string) (string, error) {
			return http.VerifyKept(ctx, v, digest, signature)
		}, err
	}
	return nil, fetch.Errorf(fetch.Refused, "a source of this kind has no signature")
}

func (a *Adapters) keptImageVerifier(ctx context.Context, spec *v1alpha1.ImageSource) (KeptVerifier, error) {
	decision, err := a.decide(spec)
	if err != nil {
		return nil, err
	}
	verifiers, err := a.verifiers(ctx, spec, decision, a.http)
	return func(ctx context.Context, digest, signature string) (string, error) {
		return image.VerifyKept(ctx, verifiers, digest, signature)
	}, err
}
