// SPDX-License-Identifier: Apache-2.0

package sourcefetch

import (
	"context"
	"crypto/sha256"
	"fmt"
	nethttp "net/http"
	"slices"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/guard"
	"github.com/satchel-dev/satchel/internal/fetch/image"
	"github.com/satchel-dev/satchel/internal/fetch/image/registryauth"
	"github.com/satchel-dev/satchel/internal/imagepolicy"
	"github.com/satchel-dev/satchel/internal/sourcefetch/credentials"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// Under has the images fetched under these policies. Their Secrets are read with the permissions for those of the source, in
// the namespace of each policy.
func (a *Adapters) Under(policies imagepolicy.Policies) { a.policies = policies }

// decide returns how the policies want an image to be fetched.
func (a *Adapters) decide(spec *v1alpha1.ImageSource) (imagepolicy.Decision, error) {
	name, err := image.FullName(spec.Reference, spec.Insecure)
	if err != nil {
		return imagepolicy.Decision{}, err
	}
	return a.policies.Decide(name), nil
}

// Denied says which policy refuses a source; nil if it may be fetched.
func (a *Adapters) Denied(source v1alpha1.Source) error {
	if source.Image == nil {
		return nil
	}
	decision, err := a.decide(source.Image)
	if err != nil || decision.Denied == nil {
		return err
	}
	return denied(source.Image.Reference, decision.Denied)
}

func denied(ref string, by *imagepolicy.Rule) error {
	return fetch.Errorf(fetch.Refused, "image %s is denied by BundleImagePolicy %s/%s, prefix %q: use an image that the policy permits, or ask its author",
		fetch.Quote(ref), by.Namespace, by.Policy, by.Prefix)
}

// secretsOf reads the Secrets of a rule.
func (a *Adapters) secretsOf(r imagepolicy.Rule) *credentials.Secrets {
	if a.others == nil {
		a.others = map[string]*credentials.Secrets{a.secrets.Namespace: a.secrets}
	}
	if a.others[r.Namespace] == nil {
		a.others[r.Namespace] = a.secrets.In(r.Namespace)
	}
	return a.others[r.Namespace]
}

func (a *Adapters) imageFetcher(ctx context.Context, spec *v1alpha1.ImageSource) (fetch.Fetcher, error) {
	host, err := image.Host(spec.Reference, spec.Insecure)
	if err != nil {
		return nil, err
	}
	decision, err := a.decide(spec)
	if err != nil {
		return nil, err
	}
	if decision.Denied != nil {
		return nil, denied(spec.Reference, decision.Denied)
	}
	o := image.Options{
		Ref: spec.Reference, SemVer: spec.Version, Platform: spec.Platform, Insecure: spec.Insecure, Limits: a.options.Limits, Only: a.Only,
		MirrorsOnly: decision.MirrorsOnly,
	}
	logins, err := a.logins(ctx, spec, decision)
	if err != nil {
		return nil, err
	}
	if o.Keychain, err = a.keychain(spec, host, logins); err != nil {
		return nil, err
	}
	if o.Client, err = a.registryClient(ctx, spec, host, decision); err != nil {
		return nil, err
	}
	if o.Mirrors, err = a.mirrors(ctx, decision, a.mirrorKeychain(logins)); err != nil {
		return nil, err
	}
	if o.Verify, err = a.verifiers(ctx, spec, decision, o.Client); err != nil {
		return nil, err
	}
	for i, v := range o.Verify {
		o.Verify[i] = measuredImages{v, a.observe}
	}
	return image.New(o)
}

// logins are the keychains for the registry of an image and its mirrors, the first one to prefer: of the image's own Secret, of
// the policies, and of the pull secrets of the source's ServiceAccount.
func (a *Adapters) logins(ctx context.Context, spec *v1alpha1.ImageSource, decision imagepolicy.Decision) ([]registryauth.Keychain, error) {
	var found []registryauth.Keychain
	if spec.SecretRef != nil {
		own, err := loginsIn(ctx, a.secrets, spec.SecretRef.Name)
		if err != nil {
			return nil, err
		}
		found = append(found, own)
	}
	for _, rule := range slices.Backward(decision.Rules) {
		if rule.SecretRef == nil || !rule.Login {
			continue
		}
		all, err := loginsIn(ctx, a.secretsOf(rule), rule.SecretRef.Name)
		if err != nil {
			return nil, err
		}
		found = append(found, within(rule, all))
	}
	if a.account == "" {
		return found, nil
	}
	pulling, err := a.secrets.PullSecrets(ctx, a.account)
	if err != nil {
		return nil, err
	}
	for _, secret := range pulling {
		next, err := credentials.DockerConfig(secret)
		if err != nil {
			return nil, err
		}
		found = append(found, next)
	}
	return found, nil
}

func loginsIn(ctx context.Context, secrets *credentials.Secrets, name string) (registryauth.Keychain, error) {
	secret, err := secrets.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	return credentials.DockerConfig(secret)
}

// within is a keychain with the logins that a rule permits: its Secret may have others.
func within(rule imagepolicy.Rule, all registryauth.Keychain) registryauth.Keychain {
	return registryauth.KeychainFunc(func(ctx context.Context, host, repository string) (fetch.Login, bool, error) {
		if !rule.Permits(host, repository) {
			return fetch.Login{}, false, nil
		}
		return all.Login(ctx, host, repository)
	})
}

// keychain finds the login to the registry of an image: one of the given ones, or the controller's own in a cloud.
func (a *Adapters) keychain(spec *v1alpha1.ImageSource, host string, logins []registryauth.Keychain) (registryauth.Keychain, error) {
	found := slices.Clone(logins)
	if inCloud(spec) {
		next, err := a.cloudKeychain(spec, host)
		if err != nil {
			return nil, err
		}
		found = append(found, next)
	}
	return a.mirrorKeychain(found), nil
}

// mirrorKeychain finds the login to a mirror: one of the given ones, never the controller's own.
func (a *Adapters) mirrorKeychain(logins []registryauth.Keychain) registryauth.Keychain {
	found := slices.Clone(logins)
	if a.options.Keychain != nil {
		found = append(found, a.options.Keychain)
	}
	if len(found) == 0 {
		return nil
	}
	return registryauth.Keychains(found...)
}

// cloudKeychain logs in as the controller itself, if that is permitted, and to the
// cloud only. A tenant's proxy cannot read the login: it is requested without the
// proxy, and sent to the registry over TLS with the system's CAs only.
func (a *Adapters) cloudKeychain(spec *v1alpha1.ImageSource, host string) (registryauth.Keychain, error) {
	if spec.CertSecretRef != nil || spec.Insecure {
		return nil, fetch.Errorf(fetch.Refused, "a cloud's login goes to that cloud only: remove certSecretRef and insecure, or the provider")
	}
	if a.options.CloudLogins == nil {
		return nil, fetch.Errorf(fetch.Refused, "provider %s would log in as the source controller itself, which its flag --cloud-logins does not permit: use a Secret, or ask the administrator of Satchel", spec.Provider)
	}
	return a.options.CloudLogins(spec.Provider, host)
}

// genericProvider is the provider without a cloud login.
const genericProvider = "generic"

func inCloud(spec *v1alpha1.ImageSource) bool {
	return spec.Provider != "" && spec.Provider != genericProvider
}

// registryClient returns the client for the registry of an image. Its own Secrets take precedence over those of local policies,
// and these over those of shared ones. A cloud's login is sent to servers with the system's CAs only.
func (a *Adapters) registryClient(ctx context.Context, spec *v1alpha1.ImageSource, host string, decision imagepolicy.Decision) (*nethttp.Client, error) {
	access, err := credentials.Access(ctx, a.secrets, host, spec.CertSecretRef, spec.ProxySecretRef)
	if err != nil {
		return nil, err
	}
	certificates, proxy := spec.CertSecretRef != nil || inCloud(spec), spec.ProxySecretRef != nil
	for _, rule := range slices.Backward(decision.Rules) {
		found, err := a.access(ctx, rule, host)
		if err != nil {
			return nil, err
		}
		if !certificates && rule.CertSecretRef != nil {
			access.Roots, access.Server, access.Certificate = found.Roots, found.Server, found.Certificate
			certificates = true
		}
		if !proxy && rule.ProxySecretRef != nil {
			access.Proxy = found.Proxy
			proxy = true
		}
	}
	return a.clientWith(access), nil
}

// access reads the certificates and the proxy of a rule. The client certificate is a login.
func (a *Adapters) access(ctx context.Context, rule imagepolicy.Rule, host string) (guard.Access, error) {
	access, err := credentials.Access(ctx, a.secretsOf(rule), host, rule.CertSecretRef, rule.ProxySecretRef)
	if !rule.Login {
		access.Server, access.Certificate = "", nil
	}
	return access, err
}

// clientWith returns the client of a source: the shared one, or its own if the source has certificates or a proxy.
func (a *Adapters) clientWith(access guard.Access) *nethttp.Client {
	if access.Roots == nil && access.Certificate == nil && access.Proxy == nil {
		return a.http
	}
	own := a.options.Policy.Client(a.options.Limits, access)
	a.atEnd = append(a.atEnd, own.CloseIdleConnections)
	return own
}

// mirrors are those of the rules, each of them once.
func (a *Adapters) mirrors(ctx context.Context, decision imagepolicy.Decision, keychain registryauth.Keychain) ([]image.Mirror, error) {
	var all []image.Mirror
	for _, rule := range decision.Rules {
		for _, place := range rule.Mirrors {
			if slices.ContainsFunc(all, func(m image.Mirror) bool { return m.Repository == place }) {
				continue
			}
			host, err := image.Host(place, rule.Insecure)
			if err != nil {
				return nil, fetch.Describe(err, "mirror of BundleImagePolicy %s/%s", rule.Namespace, rule.Policy)
			}
			access, err := a.access(ctx, rule, host)
			if err != nil {
				return nil, err
			}
			all = append(all, image.Mirror{Repository: place, Tags: rule.Tags, Insecure: rule.Insecure, Keychain: keychain, Client: a.clientWith(access)})
		}
	}
	return all, nil
}

// verifiers are those that a source and the policies demand: each of them has to accept an image.
func (a *Adapters) verifiers(ctx context.Context, spec *v1alpha1.ImageSource, decision imagepolicy.Decision, client *nethttp.Client) ([]image.Verifier, error) {
	var all []image.Verifier
	own, err := credentials.ImageVerifier(ctx, a.secrets, spec.Verify, client)
	if err != nil {
		return nil, err
	}
	if own != nil {
		all = append(all, own)
	}
	for _, rule := range decision.Rules {
		if rule.Verify == nil {
			continue
		}
		next, err := credentials.ImageVerifier(ctx, a.secretsOf(rule), rule.Verify, client)
		if err != nil {
			return nil, fetch.Describe(err, "verify of BundleImagePolicy %s/%s, prefix %q", rule.Namespace, rule.Policy, rule.Prefix)
		}
		all = append(all, next)
	}
	return all, nil
}

// Demand is a signature that policies demand of a source.
type Demand struct {
	// Policy is the namespace and name of the policy.
	Policy string
	// Verify says which signatures are accepted, by Secrets that are read with Secrets.
	Verify  *v1alpha1.ImageVerification
	Secrets *credentials.Secrets
}

// Demands are the signatures that policies demand of a source, beside its own spec.
func (a *Adapters) Demands(source v1alpha1.Source) []Demand {
	if source.Image == nil {
		return nil
	}
	decision, err := a.decide(source.Image)
	if err != nil {
		return nil // the fetch fails for the same reason
	}
	var all []Demand
	for _, rule := range decision.Rules {
		if rule.Verify != nil {
			all = append(all, Demand{rule.Namespace + "/" + rule.Policy, rule.Verify, a.secretsOf(rule)})
		}
	}
	return all
}

// Transport identifies what says which server is the right one for a source, as credentials.Secrets.Transport does, and
// beside that the mirrors that are asked for tags and the Secrets of policies.
func (a *Adapters) Transport(source v1alpha1.Source) string {
	own := a.secrets.Transport(source)
	if source.Image == nil || effective.Identified(&source) {
		return own
	}
	decision, err := a.decide(source.Image)
	if err != nil || decision.DemandsSignature() {
		return ""
	}
	hash, found := sha256.New(), false
	fmt.Fprintln(hash, own)
	for _, rule := range decision.Rules {
		through := a.secretsOf(rule).TransportBy(rule.CertSecretRef, rule.ProxySecretRef)
		if through == "" && !rule.Tags {
			continue
		}
		found = true
		fmt.Fprintln(hash, through, rule.Tags, rule.Insecure, rule.Mirrors)
	}
	if !found {
		return own
	}
	return fmt.Sprintf("sha256:%x", hash.Sum(nil))
}
