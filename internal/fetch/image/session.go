// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// session is who asks, and what that gained so far. The login goes
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
type session struct {
	keychain Keychain

	mutex sync.Mutex
	begun bool
	login fetch.Login
	value string // of the header Authorization; "" for anonymous requests
}

// state returns what is known so far.
func (s *session) state() (login fetch.Login, value string, begun bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.login, s.value, s.begun
}

// begin remembers the login, and keep what it gained.
func (s *session) begin(login fetch.Login, value string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.login, s.value, s.begun = login, value, true
}

func (s *session) keep(value string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.value = value
}

// authorization returns what to send with a request. With a login the registry is asked before the first request which
// authentication it demands, because some registries hide from unauthenticated clients what exists.
func (r *registry) authorization(ctx context.Context) (string, error) {
	_, value, begun := r.session.state()
	if begun || r.session.keychain == nil {
		return value, nil
	}
	login, found, err := r.session.keychain.Login(ctx, r.host(), r.repository.RepositoryStr())
	if err != nil {
		return "", err
	}
	if !found {
		login = fetch.Login{}
	}
	if login.Token != "" {
		value = "Bearer " + login.Token
	}
	r.session.begin(login, value)
	if login.Empty() || value != "" {
		return value, nil
	}
	return r.introduce(ctx)
}

// introduce asks the registry what it wants, and returns the answer to that.
func (r *registry) introduce(ctx context.Context) (string, error) {
	response, err := r.send(ctx, http.MethodGet, "/v2/", question{}, "")
	if err != nil {
		return "", err
	}
	value := ""
	if response.StatusCode == http.StatusUnauthorized {
		value, err = r.answer(ctx, response)
	}
	return value, errors.Join(err, fetch.NetworkError(response.Body.Close()))
}

// answer answers the challenge in a response, and returns what to send from now on: "" when there is none.
func (r *registry) answer(ctx context.Context, response *http.Response) (string, error) {
	if from := response.Request.URL; from.Scheme != r.scheme() || from.Host != r.host() {
		return "", nil
	}
	login, _, _ := r.session.state()
	asked, found := challengeOf(response.Header)
	if !found || login.Token != "" {
		return "", nil
	}
	value := basic(login)
	if asked.scheme == "bearer" {
		token, err := r.token(ctx, asked, login)
		if err != nil {
			return "", err
		}
		value = "Bearer " + token
	}
	r.session.keep(value)
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
