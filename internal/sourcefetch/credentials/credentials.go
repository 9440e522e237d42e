// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"crypto/tls"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/git"
	"github.com/satchel-dev/satchel/internal/fetch/git/githubapp"
	"github.com/satchel-dev/satchel/internal/fetch/git/sshremote"
	"github.com/satchel-dev/satchel/internal/fetch/guard"
	"github.com/satchel-dev/satchel/internal/fetch/image/dockerconfig"
	"github.com/satchel-dev/satchel/internal/fetch/image/registryauth"
)

// The keys of Secrets are the same as for Flux's sources.
const (
	keyUsername    = "username"
	keyPassword    = "password"
	keyBearerToken = "bearerToken"
	keyCA          = "ca.crt"
	keyCertificate = corev1.TLSCertKey
	keyPrivateKey  = corev1.TLSPrivateKeyKey
	keyAddress     = "address"

	keyIdentity   = "identity"
	keyKnownHosts = "known_hosts"

	keyAppID           = "githubAppID"
	keyAppInstallation = "githubAppInstallationID"
	keyAppOwner        = "githubAppInstallationOwner"
	keyAppKey          = "githubAppPrivateKey"
	keyAppURL          = "githubAppBaseURL"
)

// malformed describes the problem of a Secret without its contents.
func malformed(secret *corev1.Secret, format string, args ...any) error {
	return fetch.Describe(fetch.Errorf(fetch.Refused, format, args...), "secret %s/%s", secret.Namespace, secret.Name)
}

// text is an entry without trailing newlines.
func text(secret *corev1.Secret, key string) string {
	return strings.TrimRight(string(secret.Data[key]), "\r\n")
}

// Login reads the login of a source.
func Login(ctx context.Context, s *Secrets, ref *v1alpha1.LocalReference) (fetch.Login, error) {
	if ref == nil {
		return fetch.Login{}, nil
	}
	secret, err := s.Get(ctx, ref.Name)
	if err != nil {
		return fetch.Login{}, err
	}
	found := loginOf(secret)
	if found.Empty() {
		return fetch.Login{}, malformed(secret, "it has no login: set %s and %s, or %s", keyUsername, keyPassword, keyBearerToken)
	}
	return found, checkLogin(secret, found)
}

func loginOf(secret *corev1.Secret) fetch.Login {
	return fetch.Login{Username: text(secret, keyUsername), Password: text(secret, keyPassword), Token: text(secret, keyBearerToken)}
}

// checkLogin refuses ambiguous logins.
func checkLogin(secret *corev1.Secret, l fetch.Login) error {
	switch {
	case l.Token != "" && (l.Username != "" || l.Password != ""):
		return malformed(secret, "it has both %s and a password: remove one", keyBearerToken)
	case strings.Contains(l.Username, ":"):
		return malformed(secret, "its %s has a colon, which no server can tell from the password", keyUsername)
	case strings.ContainsFunc(l.Username+l.Password+l.Token, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return malformed(secret, "its login has a control character, such as a line break within")
	}
	return nil
}

// Access reads certificates and the proxy of a source. The client certificate is for
// the server, a host with the port of the URL.
func Access(ctx context.Context, s *Secrets, server string, certificates, proxy *v1alpha1.LocalReference) (guard.Access, error) {
	var a guard.Access
	if certificates != nil {
		secret, err := s.Get(ctx, certificates.Name)
		if err != nil {
			return a, err
		}
		if !HasCertificates(secret) {
			return a, malformed(secret, "it has no certificates: set %s, or %s and %s, or all three", keyCA, keyCertificate, keyPrivateKey)
		}
		if err := addCertificates(&a, secret, server); err != nil {
			return a, err
		}
	}
	if proxy == nil {
		return a, nil
	}
	secret, err := s.Get(ctx, proxy.Name)
	if err == nil {
		a.Proxy, err = proxyOf(secret)
	}
	return a, err
}

// HasCertificates tells whether a Secret has certificates for TLS.
func HasCertificates(secret *corev1.Secret) bool {
	return len(secret.Data[keyCA]) > 0 || len(secret.Data[keyCertificate]) > 0 || len(secret.Data[keyPrivateKey]) > 0
}

func addCertificates(a *guard.Access, secret *corev1.Secret, server string) error {
	if authorities := secret.Data[keyCA]; len(authorities) > 0 {
		roots, ok := guard.SystemRoots(authorities)
		if !ok {
			return malformed(secret, "its %s has no PEM certificate", keyCA)
		}
		a.Roots = roots
	}
	certificate, key := secret.Data[keyCertificate], secret.Data[keyPrivateKey]
	switch {
	case len(certificate) == 0 && len(key) == 0:
		return nil
	case len(certificate) == 0 || len(key) == 0:
		return malformed(secret, "it needs both %s and %s, and has one", keyCertificate, keyPrivateKey)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return malformed(secret, "its %s and %s are no pair of a PEM certificate and its key", keyCertificate, keyPrivateKey)
	}
	a.Server, a.Certificate = server, &pair
	return nil
}

// proxyOf reads the address of a proxy. Errors do not show it: it may hold a password.
func proxyOf(secret *corev1.Secret) (*url.URL, error) {
	address, err := url.Parse(text(secret, keyAddress))
	switch {
	case err != nil || address.Hostname() == "":
		return nil, malformed(secret, "its %s is no URL: set it to http://host:port", keyAddress)
	case address.Scheme != "http" && address.Scheme != "https":
		return nil, malformed(secret, "the scheme of its %s is neither http nor https", keyAddress)
	case address.User != nil:
		return nil, malformed(secret, "its %s has a login in it: set %s and %s instead", keyAddress, keyUsername, keyPassword)
	case address.Path != "" && address.Path != "/", address.RawQuery != "", address.Fragment != "":
		return nil, malformed(secret, "its %s has a path or query: set it to http://host:port", keyAddress)
	}
	l := fetch.Login{Username: text(secret, keyUsername), Password: text(secret, keyPassword)}
	if l.Empty() {
		return address, nil
	}
	address.User = url.UserPassword(l.Username, l.Password)
	return address, checkLogin(secret, l)
}

// DockerConfig reads a Secret with logins to registries.
func DockerConfig(secret *corev1.Secret) (registryauth.Keychain, error) {
	for _, key := range []string{corev1.DockerConfigJsonKey, corev1.DockerConfigKey} {
		if data, found := secret.Data[key]; found {
			logins, err := dockerconfig.Parse(data)
			return logins, fetch.Describe(err, "secret %s/%s, %s", secret.Namespace, secret.Name, key)
		}
	}
	return nil, malformed(secret, "it has no %s: create it with kubectl create secret docker-registry", corev1.DockerConfigJsonKey)
}

// githubProvider logs in to repositories as a GitHub App.
const githubProvider = "github"

// GitCredentials reads the login to a repository.
func GitCredentials(secret *corev1.Secret, spec *v1alpha1.GitSource, o *git.Options) error {
	switch {
	case strings.HasPrefix(spec.URL, "ssh:"):
		if len(secret.Data[keyIdentity]) == 0 || len(secret.Data[keyKnownHosts]) == 0 {
			return malformed(secret, "it needs %s, a private key, and %s, the keys of the server, for an ssh:// repository", keyIdentity, keyKnownHosts)
		}
		o.SSH = &sshremote.Options{Identity: secret.Data[keyIdentity], Passphrase: []byte(text(secret, keyPassword)), KnownHosts: secret.Data[keyKnownHosts]}
		return nil
	case spec.Provider == githubProvider:
		return gitHubApp(secret, o)
	}
	o.Login = loginOf(secret)
	if o.Login.Empty() && !HasCertificates(secret) {
		return malformed(secret, "it has neither login nor certificates: set %s and %s, or %s", keyUsername, keyPassword, keyBearerToken)
	}
	return checkLogin(secret, o.Login)
}

func gitHubApp(secret *corev1.Secret, o *git.Options) error {
	o.App = &githubapp.Options{
		ID: text(secret, keyAppID), InstallationID: text(secret, keyAppInstallation), Owner: text(secret, keyAppOwner),
		PrivateKey: secret.Data[keyAppKey], BaseURL: text(secret, keyAppURL),
	}
	switch {
	case o.App.ID == "" || len(o.App.PrivateKey) == 0:
		return malformed(secret, "it needs %s and %s for a GitHub App", keyAppID, keyAppKey)
	case (o.App.InstallationID == "") == (o.App.Owner == ""):
		return malformed(secret, "it needs either %s or %s for a GitHub App", keyAppInstallation, keyAppOwner)
	}
	return nil
}
