// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/manifests"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/ignore"
	"github.com/satchel-dev/satchel/internal/fetch/image/registryauth"
	"github.com/satchel-dev/satchel/internal/fetch/links"
	"github.com/satchel-dev/satchel/internal/sourcefetch"
	"github.com/satchel-dev/satchel/internal/sourcefetch/credentials"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/internal/view"
)

// MissingSecrets are the Secrets that a source needs and that are not there, sorted. The logins to registries are not among
// them: without them the user's own login is used.
func MissingSecrets(source *v1alpha1.BundleSourceSpec, there func(name string) bool) []string {
	spec := withoutLogins(source, there)
	return slices.DeleteFunc(effective.SecretNames(spec), there)
}

// withoutLogins is a source with images that refer to no login that is not there.
func withoutLogins(source *v1alpha1.BundleSourceSpec, there func(name string) bool) *v1alpha1.BundleSourceSpec {
	spec := source.DeepCopy()
	for i := range spec.Sources {
		if from := spec.Sources[i].Image; from != nil && from.SecretRef != nil && !there(from.SecretRef.Name) {
			from.SecretRef = nil
		}
	}
	return spec
}

// OpenSource fetches a source as the source controller does, with its limits and its verification, into a temporary folder,
// which close removes. Its Secrets and ConfigMaps are read from the given ones; a registry for which they have no login gets
// the user's own, as with docker pull. policies are files with BundleImagePolicies, by which images are fetched.
func OpenSource(ctx context.Context, a *kit.App, source *v1alpha1.BundleSourceSpec, secrets *credentials.Secrets, policies []string) (b *Bundle, err error) {
	spec := withoutLogins(source, func(name string) bool {
		found, err := secrets.Find(ctx, name)
		return err != nil || found != nil // an error is reported when the Secret is used
	})
	if err := ignore.Check(spec.Ignore); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, effective.SourceTimeout(spec))
	defer cancel()
	under, err := manifests.PoliciesOf(ctx, a, policies, secrets)
	if err != nil {
		return nil, err
	}
	limits := fetch.DefaultLimits()
	adapters := sourcefetch.NewFactory(sourcefetch.Options{
		Limits: limits, Policy: LocalPolicy(append(plainHosts(spec), manifests.PlainMirrors(under)...)), Keychain: registryauth.KeychainFunc(ownLogin),
	}, nil).For(secrets, "")
	defer adapters.Close()
	adapters.Under(under)
	parts, words, err := resolveParts(ctx, a, adapters, spec)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "satchel-")
	if err != nil {
		return nil, fmt.Errorf("creating a temporary folder: %w", err)
	}
	tree, err := fetch.NewTree(dir, limits)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	remove := func() error { return errors.Join(tree.Close(), os.RemoveAll(dir)) }
	if _, err := fetch.Compose(ctx, parts, tree); err != nil {
		return nil, errors.Join(&FetchError{What: strings.Join(words, ", "), Err: err}, remove())
	}
	files, err := ignore.FS(tree.FS(), spec.Ignore)
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	return &Bundle{Files: files, From: strings.Join(words, ", "), Close: remove, Notes: links.Notes(files)}, nil
}

// resolveParts resolves each source, and says in words what it is.
func resolveParts(ctx context.Context, a *kit.App, adapters *sourcefetch.Adapters, spec *v1alpha1.BundleSourceSpec) (parts []fetch.Part, words []string, err error) {
	for i := range spec.Sources {
		source := spec.Sources[i]
		if source.Upload != nil {
			return nil, nil, errors.New("the source is an upload, which only the cluster has: give the folder in its place")
		}
		what := describeSource(&source)
		fmt.Fprintf(a.Streams.ErrOut, "Fetching %s.\n", view.Inline(what))
		part := fetch.Part{Destination: source.Destination}
		if part.Fetcher, err = adapters.Fetcher(ctx, source, fetch.Resolved{}); err == nil {
			part.Resolved, err = part.Fetcher.Resolve(ctx)
		}
		if err != nil {
			return nil, nil, &FetchError{What: what, Err: err}
		}
		if digest := part.Resolved.Digest; digest != "" && !strings.Contains(what, digest) {
			what += ", which is " + digest
		}
		parts, words = append(parts, part), append(words, what)
	}
	return parts, words, nil
}

// describeSource is what a source names, in words.
func describeSource(source *v1alpha1.Source) string {
	switch {
	case source.Image != nil:
		return "the image " + source.Image.Reference
	case source.Git != nil:
		return "the Git repository " + withoutUser(source.Git.URL)
	case source.HTTP != nil:
		return "the archive " + withoutUser(source.HTTP.URL)
	case source.Helm != nil:
		return "the chart " + source.Helm.Chart + " of " + withoutUser(source.Helm.URL)
	case source.ConfigMap != nil:
		return "the ConfigMap " + source.ConfigMap.Name
	}
	return "the source"
}

// withoutUser is a URL without a login in it.
func withoutUser(address string) string {
	if parsed, err := url.Parse(address); err == nil {
		return parsed.Redacted()
	}
	return address
}

// plainHosts are the hosts that the source itself says are spoken to over plain HTTP. On the user's own machine, the user
// decides that.
func plainHosts(spec *v1alpha1.BundleSourceSpec) []string {
	var hosts []string
	add := func(address string) {
		if parsed, err := url.Parse(address); err == nil && parsed.Scheme == "http" {
			hosts = append(hosts, parsed.Host)
		}
	}
	for i := range spec.Sources {
		switch source := &spec.Sources[i]; {
		case source.Image != nil && source.Image.Insecure:
			if ref, err := name.ParseReference(source.Image.Reference, name.WeakValidation); err == nil {
				hosts = append(hosts, ref.Context().RegistryStr())
			}
		case source.Git != nil:
			add(source.Git.URL)
		case source.HTTP != nil:
			add(source.HTTP.URL)
		case source.Helm != nil:
			add(source.Helm.URL)
		}
	}
	return hosts
}

// ownLogin is the user's login for a repository.
func ownLogin(ctx context.Context, host, repository string) (fetch.Login, bool, error) {
	parsed, err := name.NewRepository(host + "/" + repository)
	if err != nil || repository == "" {
		return fetch.Login{}, false, nil //nolint:nilerr // no login is known for what is no repository
	}
	keychain, err := login(ctx, parsed)
	if err != nil || keychain == nil {
		return fetch.Login{}, false, err
	}
	return keychain.Login(ctx, parsed.RegistryStr(), repository)
}
