// SPDX-License-Identifier: Apache-2.0

// Package registryauth logs in to one repository of a registry: which login goes to whom, and what is sent with a request.
package registryauth

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/satchel-dev/satchel/internal/endpoint"
	"github.com/satchel-dev/satchel/internal/fetch"
)

// Session is who asks one repository, and what that gained so far. Its methods may be called concurrently. The login goes
//
//   - as user name and password to the registry itself, when it asks for those;
//   - as user name and password, or as identity token, to the token server that the registry names, if that is the same
//     host and port or lies below the same registrable public domain, as auth.docker.io and registry-1.docker.io do.
//     A token server elsewhere gets what the keychain has for its own host; when that is nothing, the fetch fails;
//   - as registry token to the registry, at once.
//
// It goes over plain HTTP only when the source is insecure and the host is listed, and it follows no redirect: those of
// token servers are not followed, and those of the registry lose it in the guard of the client. A challenge counts only
// when the registry itself answered, not a server to which it redirected. Only the scope to pull from this repository is
// requested, even if the challenge names more.
//
// A bad registry gets a password all the same, by asking for it. This keeps it from those who can write a header.
type Session struct {
	repository name.Repository
	registry   url.URL
	client     *http.Client
	keychain   Keychain

	mutex sync.Mutex
	begun bool
	login fetch.Login
	value string // of the header Authorization; "" for anonymous requests
}

// NewSession returns a session with the registry of a repository, which is spoken to by a scheme, http or https. It asks nothing
// yet. Without a keychain it stays anonymous.
func NewSession(repository name.Repository, scheme string, client *http.Client, keychain Keychain) *Session {
	registry := url.URL{Scheme: scheme, Host: repository.RegistryStr()}
	return &Session{repository: repository, registry: registry, client: client, keychain: keychain}
}

// Login returns the login in use, empty for anonymous requests; false before the keychain was asked for one.
func (s *Session) Login() (login fetch.Login, asked bool) {
	login, _, asked = s.state()
	return login, asked
}

// state returns what is known so far.
func (s *Session) state() (login fetch.Login, value string, begun bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.login, s.value, s.begun
}

// begin remembers the login, and keep what it gained.
func (s *Session) begin(login fetch.Login, value string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.login = login
	s.value = value
	s.begun = true
}

func (s *Session) keep(value string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.value = value
}

// Authorization returns the value of the header Authorization for a request to the registry, "" for none. With a login the registry is asked before the first request which
// authentication it demands, because some registries hide from unauthenticated clients what exists.
func (s *Session) Authorization(ctx context.Context) (string, error) {
	_, value, begun := s.state()
	if begun || s.keychain == nil {
		return value, nil
	}
	login, found, err := s.keychain.Login(ctx, asked(&s.registry), s.repository.RepositoryStr())
	if err != nil {
		return "", err
	}
	if !found {
		login = fetch.Login{}
	}
	if login.Token != "" {
		value = "Bearer " + login.Token
	}
	s.begin(login, value)
	if login.Empty() || value != "" {
		return value, nil
	}
	return s.introduce(ctx)
}

// asked is the server of a URL as keychains are asked for it.
func asked(of *url.URL) string {
	server, err := endpoint.OfURL(of)
	if err != nil {
		return of.Host // no keychain knows it
	}
	return server.Without(endpoint.HTTPS).String()
}

// introduce asks the registry what it wants, and returns the answer to that.
func (s *Session) introduce(ctx context.Context) (string, error) {
	target := s.registry
	target.Path = "/v2/"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return "", fetch.Errorf(fetch.Refused, "the reference makes no valid URL: %w", err)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return "", fetch.NetworkError(err)
	}
	value := ""
	if response.StatusCode == http.StatusUnauthorized {
		value, err = s.Answer(ctx, response)
	}
	return value, errors.Join(err, fetch.NetworkError(response.Body.Close()))
}

// Answer answers the challenge in a response, and returns what to send from now on: "" when there is none. It does not close the
// response.
func (s *Session) Answer(ctx context.Context, response *http.Response) (string, error) {
	if !endpoint.SameOrigin(response.Request.URL, &s.registry) {
		return "", nil
	}
	login, _, _ := s.state()
	wanted, found := challengeOf(response.Header)
	if !found || login.Token != "" {
		return "", nil
	}
	value := basic(login)
	if wanted.scheme == "bearer" {
		token, err := s.token(ctx, wanted, login)
		if err != nil {
			return "", err
		}
		value = "Bearer " + token
	}
	s.keep(value)
	return value, nil
}

// basic returns the header for a user name and password; an identity token is for token servers only.
func basic(login fetch.Login) string {
	if login.Empty() || login.Username == IdentityToken {
		return ""
	}
	request := http.Request{Header: http.Header{}}
	login.Authorize(&request)
	return request.Header.Get("Authorization")
}
