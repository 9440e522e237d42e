// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/endpoint"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/image"
	"github.com/satchel-dev/satchel/internal/fetch/image/registryauth"
	"github.com/satchel-dev/satchel/internal/fetch/verify/cosign"
	"github.com/satchel-dev/satchel/internal/publish"
	"github.com/satchel-dev/satchel/internal/tagversion"
	"github.com/satchel-dev/satchel/internal/view"
)

// RegistryHelp is the part of the help about registries.
const RegistryHelp = `Logins are those of docker login and podman login (config.json, credential helpers included). Plain HTTP is used on
loopback, if the registry has no TLS; elsewhere it needs --insecure. Errors of a registry are shown unchanged.`

// RegistryFlags adds the flags of commands that use a registry.
func RegistryFlags(cmd *cobra.Command, insecure *bool) {
	cmd.Flags().BoolVar(insecure, "insecure", false, "Use plain HTTP with the registry; on loopback this is detected.")
}

// Registry is the registry of a reference, with the user's login.
func Registry(a *kit.App, ref name.Reference, insecure bool) publish.Registry {
	var plain []string
	if host := ref.Context().RegistryStr(); insecure || IsLoopback(host) {
		plain = []string{host}
	}
	return publish.Registry{
		Client: LocalPolicy(plain).HTTPClient(fetch.DefaultLimits()), Keychain: authn.DefaultKeychain, UserAgent: "satchel/" + a.Version.Version,
	}
}

// IsLoopback tells whether a host of a reference is this machine.
func IsLoopback(host string) bool {
	server, err := endpoint.Parse(host)
	if err != nil {
		return false
	}
	address, err := netip.ParseAddr(server.Host)
	return server.Host == "localhost" || err == nil && address.IsLoopback()
}

// ImageReference reads the reference of an image.
func ImageReference(text string, insecure bool) (name.Reference, error) {
	options := []name.Option{name.WeakValidation}
	if insecure {
		options = append(options, name.Insecure)
	}
	ref, err := name.ParseReference(text, options...)
	if err != nil {
		return nil, fmt.Errorf("%q is no reference such as ghcr.io/org/bundle:v1.2.3%s", text, tagversion.Hint(text))
	}
	return ref, nil
}

// TargetTag reads the reference that something is pushed as: a tag that is written out.
func TargetTag(text string, insecure bool) (name.Tag, error) {
	ref, err := ImageReference(text, insecure)
	if err != nil {
		return name.Tag{}, err
	}
	tag, isTag := ref.(name.Tag)
	switch {
	case !isTag:
		return tag, fmt.Errorf("%s names a digest, which only the content decides: give a tag, such as %s:v1.0.0", text, ref.Context().Name())
	case !strings.HasSuffix(text, ":"+tag.TagStr()):
		return tag, fmt.Errorf("%s has no tag: give one, such as %s:v1.0.0", text, text)
	}
	return tag, nil
}

// login is the user's login for a repository, for fetching from it; nil where there is none.
func login(ctx context.Context, repository name.Repository) (registryauth.Keychain, error) {
	found, err := authn.Resolve(ctx, authn.DefaultKeychain, repository)
	if err != nil {
		return nil, fmt.Errorf("reading the login for %s: %w", repository.RegistryStr(), err)
	}
	if found == authn.Anonymous {
		return nil, nil
	}
	config, err := authn.Authorization(ctx, found)
	if err != nil {
		return nil, fmt.Errorf("reading the login for %s: %w", repository.RegistryStr(), err)
	}
	known := fetch.Login{Username: config.Username, Password: config.Password, Token: config.RegistryToken}
	if config.IdentityToken != "" {
		known = fetch.Login{Username: registryauth.IdentityToken, Password: config.IdentityToken}
	}
	own, err := endpoint.Parse(repository.RegistryStr())
	if err != nil {
		return nil, fmt.Errorf("reading the login for %s: %w", repository.RegistryStr(), err)
	}
	return registryauth.KeychainFunc(func(_ context.Context, asked, _ string) (fetch.Login, bool, error) {
		at, err := endpoint.Parse(asked)
		at = at.On("https")
		same := own.Matches(at) || own.IsDockerHub() && at.IsDockerHub()
		return known, err == nil && same && !known.Empty(), nil
	}), nil
}

// Trust adds the user's login, and the key that must have signed the image. If the login cannot be read, it continues
// without: most bundles are public.
func Trust(ctx context.Context, a *kit.App, o OpenOptions, ref name.Reference, to *image.Options) error {
	keychain, err := login(ctx, ref.Context())
	if err != nil {
		a.Note([]string{view.Inline(err.Error()) + "; continuing without a login"})
	}
	to.Keychain = keychain
	if o.Key == "" {
		return nil
	}
	verifier, err := verifierOf(o.Key)
	if err != nil {
		return err
	}
	to.Verify = []image.Verifier{verifier}
	return nil
}

// verifierOf accepts content that was signed with a public key.
func verifierOf(file string) (*cosign.Verifier, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the key %s: %w", file, kit.WithoutPath(err))
	}
	return cosign.New(cosign.Options{Keys: map[string][]byte{strings.TrimSuffix(filepath.Base(file), cosign.KeySuffix) + cosign.KeySuffix: data}})
}

// SpeaksTLS tells whether a server has TLS. For one that does not answer at all it is true, so that the following error is
// about HTTPS.
func SpeaksTLS(ctx context.Context, ref name.Reference) bool {
	client := LocalPolicy(nil).HTTPClient(fetch.DefaultLimits())
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+ref.Context().RegistryStr()+"/v2/", nil)
	if err != nil {
		return true
	}
	response, err := client.Do(request)
	if err == nil {
		return response.Body.Close() == nil
	}
	var record tls.RecordHeaderError
	return !errors.As(err, &record) && !errors.Is(err, http.ErrSchemeMismatch)
}
