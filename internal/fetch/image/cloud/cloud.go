// SPDX-License-Identifier: Apache-2.0

// Package cloud logs in to the registries of AWS, Azure and Google Cloud with the identity that this process has there.
//
// That identity is the controller's, not a tenant's: a user who may write a source that uses it can read what the
// controller may. So nothing here is used unless the administrator enables it. The requests go to the cloud's
// own services, its metadata service among them, and not through the clients of fetch. A login is given out only for
// hosts that belong to the cloud, and must not be used together with certificate authorities or a plain-HTTP setting
// that come from a tenant: with a proxy the tenant could listen. A proxy alone sees TLS only.
package cloud

import (
	"context"
	"regexp"
	"sync"
	"time"

	"github.com/fluxcd/pkg/auth"
	"github.com/fluxcd/pkg/auth/aws"
	"github.com/fluxcd/pkg/auth/azure"
	"github.com/fluxcd/pkg/auth/gcp"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/image/registryauth"
)

// provider is a cloud, and the hosts that are its registries. The patterns of fluxcd/pkg/auth are no guard: that of AWS
// also takes hosts that merely begin like one of Amazon's.
type provider struct {
	hosts *regexp.Regexp
	auth  auth.ArtifactRegistryCredentialsProvider
}

var providers = map[string]provider{
	aws.ProviderName: {regexp.MustCompile(`^(public\.ecr\.aws|[0-9]{12}\.dkr[.-]ecr(-fips)?\.[a-z0-9-]+\.` +
		`(amazonaws\.com(\.cn)?|amazonaws\.eu|on\.aws|sc2s\.sgov\.gov|c2s\.ic\.gov|cloud\.adc-e\.uk|csp\.hci\.ic\.gov))$`),
		aws.Provider{}},
	azure.ProviderName: {regexp.MustCompile(`^[a-z0-9]+([.-][a-z0-9-]+)*\.azurecr\.(io|cn|de|us)$`), azure.Provider{}},
	gcp.ProviderName: {regexp.MustCompile(`^(([a-z0-9-]+\.)*gcr\.io|[a-z0-9-]+-docker\.pkg\.dev|docker\.s3nsregistry\.fr)$`),
		gcp.Provider{}},
}

const (
	// maxAge bounds how long a login is used again, however long it would be good for.
	maxAge = 15 * time.Minute
	// timeout bounds one login.
	timeout = 20 * time.Second
	// maxKept bounds the logins that are kept.
	maxKept = 1000
)

// Logins are the logins of this process. They are kept for a while and shared.
type Logins struct {
	providers map[string]provider
	now       func() time.Time

	mutex sync.Mutex
	kept  map[string]kept
}

// kept is a login, and until when it may be used.
type kept struct {
	login fetch.Login
	until time.Time
}

// New returns the logins of this process. No request is made yet.
func New() *Logins {
	return &Logins{providers: providers, now: time.Now, kept: map[string]kept{}}
}

// Keychain returns the keychain with the login for one registry, a host as it stands in references. The provider is
// aws, azure or gcp, and the host must be one of its registries.
func (l *Logins) Keychain(provider, host string) (registryauth.Keychain, error) {
	if err := l.check(provider, host); err != nil {
		return nil, err
	}
	return registryauth.KeychainFunc(func(ctx context.Context, asked, _ string) (fetch.Login, bool, error) {
		if asked != host {
			return fetch.Login{}, false, nil
		}
		login, err := l.login(ctx, provider, host)
		return login, err == nil, err
	}), nil
}

func (l *Logins) check(provider, host string) error {
	known, found := l.providers[provider]
	if !found {
		return fetch.Errorf(fetch.Refused, "the provider %s is not known: use aws, azure, gcp or generic", fetch.Quote(provider))
	}
	if !known.hosts.MatchString(host) {
		return fetch.Errorf(fetch.Refused, "%s is no registry of the provider %s: use generic, and a pull secret",
			fetch.Quote(host), provider)
	}
	return nil
}

// login returns the login that is kept, or a new one.
func (l *Logins) login(ctx context.Context, provider, host string) (fetch.Login, error) {
	key := provider + " " + host
	l.mutex.Lock()
	known, found := l.kept[key]
	l.mutex.Unlock()
	if found && l.now().Before(known.until) {
		return known.login, nil
	}
	login, until, err := l.ask(ctx, provider, host)
	if err != nil {
		return fetch.Login{}, err
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if len(l.kept) >= maxKept {
		clear(l.kept)
	}
	l.kept[key] = kept{login: login, until: until}
	return login, nil
}

// ask logs in. The failures of the clouds' libraries are long and show what was answered, so that only a bounded part
// is passed on.
func (l *Logins) ask(ctx context.Context, provider, host string) (fetch.Login, time.Time, error) {
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	found, err := auth.GetArtifactRegistryCredentials(bounded, l.providers[provider].auth, host)
	if err != nil {
		if ctx.Err() != nil {
			return fetch.Login{}, time.Time{}, fetch.NetworkError(ctx.Err())
		}
		return fetch.Login{}, time.Time{}, fetch.Errorf(fetch.Unauthorized,
			"the controller has no login for %s from %s, as which it runs: %s", host, provider, fetch.Quote(err.Error()))
	}
	config, err := found.Authorization()
	if err != nil {
		return fetch.Login{}, time.Time{}, fetch.Errorf(fetch.Unauthorized, "the login from %s cannot be read", provider)
	}
	now := l.now()
	until := now.Add(min(found.ExpiresAt.Sub(now)*8/10, maxAge))
	return fetch.Login{Username: config.Username, Password: config.Password}, until, nil
}
