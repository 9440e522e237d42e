// SPDX-License-Identifier: Apache-2.0

package sourcefetch

import (
	"context"
	nethttp "net/http"
	"time"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/git/githubapp"
	"github.com/satchel-dev/satchel/internal/fetch/guard"
	"github.com/satchel-dev/satchel/internal/fetch/image"
	"github.com/satchel-dev/satchel/internal/fetch/image/registryauth"
	"github.com/satchel-dev/satchel/internal/imagepolicy"
	"github.com/satchel-dev/satchel/internal/sourcefetch/credentials"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// Options are what the adapters of all sources have in common.
type Options struct {
	// Limits bound everything that is fetched.
	Limits fetch.Limits
	// Policy says which addresses may be reached.
	Policy guard.AddressPolicy
	// CloudLogins logs in to the registries of clouds as the controller itself; nil if
	// that is not permitted.
	CloudLogins func(provider, host string) (registryauth.Keychain, error)
	// Keychain has logins to registries for which a source names none; nil in a controller.
	Keychain registryauth.Keychain
}

// Factory builds adapters. It is safe for concurrent use.
type Factory struct {
	options Options
	observe ObserveFunc
	http    *nethttp.Client   // of sources without certificates and proxy
	tokens  *githubapp.Tokens // of GitHub Apps
}

// NewFactory returns a factory with the given options. observe is called after each operation; it may be nil.
func NewFactory(o Options, observe ObserveFunc) *Factory {
	if observe == nil {
		observe = func(Operation, string, time.Duration, error) {}
	}
	return &Factory{options: o, observe: observe, http: o.Policy.HTTPClient(o.Limits), tokens: githubapp.NewTokens()}
}

// Adapters builds the adapters of one BundleSource for one reconcile.
type Adapters struct {
	*Factory

	// Only restricts what is unpacked of images; nil for everything.
	Only *image.Only

	secrets *credentials.Secrets
	account string // the ServiceAccount with pull secrets; "" for none
	// policies say how images are fetched, and others reads the Secrets of each namespace of a policy.
	policies imagepolicy.Policies
	others   map[string]*credentials.Secrets
	atEnd    []func()
}

// For returns the adapters of a BundleSource that references these Secrets, and the pull
// secrets of a ServiceAccount unless that is "". Close them when the reconcile has ended.
func (f *Factory) For(secrets *credentials.Secrets, account string) *Adapters {
	return &Adapters{Factory: f, secrets: secrets, account: account}
}

// Close ends the connections of the adapters.
func (a *Adapters) Close() {
	for _, do := range a.atEnd {
		do()
	}
}

// Fetcher builds the adapter of one source of the spec, which is measured. The policy of
// the HTTP client decides which addresses it may reach, and whether over plain HTTP. Previous
// is what the same source was resolved to before; the zero value if that is not known.
func (a *Adapters) Fetcher(ctx context.Context, source v1alpha1.Source, previous fetch.Resolved) (fetch.Fetcher, error) {
	fetcher, err := a.fetcher(ctx, source, previous)
	if err != nil {
		return nil, err
	}
	return measured{fetcher, effective.KindOf(&source), a.observe}, nil
}
