// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/manifests"
	"github.com/satchel-dev/satchel/internal/fetch/image"
	"github.com/satchel-dev/satchel/internal/imagepolicy"
	"github.com/satchel-dev/satchel/internal/view"
)

// decide returns what the BundleImagePolicies of --image-policy say about an image. They count as those of the namespace of the
// image.
func decide(ctx context.Context, ref name.Reference, o OpenOptions) (imagepolicy.Decision, error) {
	policies, err := manifests.ImagePolicies(ctx, o.ImagePolicies)
	if err != nil || len(policies) == 0 {
		return imagepolicy.Decision{}, err
	}
	full, err := image.FullName(ref.String(), o.Insecure)
	if err != nil {
		return imagepolicy.Decision{}, err
	}
	decision := imagepolicy.Policies{Local: policies}.Decide(full)
	if denied := decision.Denied; denied != nil {
		return decision, fmt.Errorf("BundleImagePolicy %s refuses images with the prefix %q: use an image that it permits, or change the policy", denied.Policy, denied.Prefix)
	}
	return decision, nil
}

// mirror adds the mirrors of a decision. Logins are the user's: the Secrets of a policy are in the cluster.
func mirror(ctx context.Context, a *kit.App, ref name.Reference, o OpenOptions, decision imagepolicy.Decision, to *image.Options) error {
	to.MirrorsOnly = decision.MirrorsOnly
	for _, rule := range decision.Rules {
		for _, place := range rule.Mirrors {
			repository, err := name.NewRepository(place, name.WeakValidation)
			if err != nil {
				return fmt.Errorf("BundleImagePolicy %s: the mirror %q cannot be read: %w", rule.Policy, place, err)
			}
			keychain, err := login(ctx, repository)
			if err != nil {
				a.Note([]string{view.Inline(err.Error()) + "; continuing without a login"})
			}
			plain := rule.Insecure || speaksPlainHTTP(ctx, repository.Tag("latest"))
			to.Mirrors = append(to.Mirrors, image.Mirror{
				Repository: place, Tags: rule.Tags, Insecure: plain, Keychain: keychain, Client: clientFor(repository, plain),
			})
		}
	}
	if decision.DemandsSignature() && o.Key == "" {
		a.Note([]string{fmt.Sprintf("a BundleImagePolicy demands a signature of %s, which is not checked here: the keys are in the cluster", ref.Context().Name())})
	}
	return nil
}

// speaksPlainHTTP tells whether a registry on this machine has no TLS.
func speaksPlainHTTP(ctx context.Context, ref name.Reference) bool {
	return IsLoopback(ref.Context().RegistryStr()) && !SpeaksTLS(ctx, ref)
}

// ResolveImage returns the repository in the name of an image with the digest that it has now.
func ResolveImage(ctx context.Context, a *kit.App, what string, o OpenOptions) (string, error) {
	ref, err := ImageReference(what, o.Insecure)
	if err != nil {
		return "", err
	}
	fetcher, err := fetcherOf(ctx, a, ref, o, nil)
	if err != nil {
		return "", &DownloadError{What: what, Ref: ref, Err: err}
	}
	resolved, err := fetcher.Resolve(ctx)
	if err != nil {
		return "", &DownloadError{What: what, Ref: ref, Err: err}
	}
	return ref.Context().Name() + "@" + resolved.Digest, nil
}
