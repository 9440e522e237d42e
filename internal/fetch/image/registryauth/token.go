// SPDX-License-Identifier: Apache-2.0

package registryauth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"golang.org/x/net/publicsuffix"

	"github.com/satchel-dev/satchel/internal/endpoint"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/image/answer"
)

const (
	// maxToken bounds a token, maxTokenAnswer what a token server says around it.
	maxToken       = 32 << 10
	maxTokenAnswer = 64 << 10
	// clientID is how we introduce ourselves to a token server.
	clientID = "satchel"
)

// token asks a token server for a token to pull from the repository (docs: Docker Registry token and OAuth2
// authentication).
func (s *Session) token(ctx context.Context, asked challenge, login fetch.Login) (string, error) {
	realm, err := parseRealm(asked.params["realm"])
	if err != nil {
		return "", err
	}
	token, err := s.tokenFrom(ctx, realm, asked.params["service"], login)
	return token, fetch.Describe(err, "asking %s for a token", fetch.Quote(realm.Host))
}

func (s *Session) tokenFrom(ctx context.Context, realm *url.URL, service string, login fetch.Login) (string, error) {
	login, err := s.loginFor(ctx, realm, login)
	if err != nil {
		return "", err
	}
	request, err := tokenRequest(ctx, realm, url.Values{
		"service": {service}, "scope": {s.repository.Scope(transport.PullScope)},
	}, login)
	if err != nil {
		return "", fetch.Errorf(fetch.Unauthorized, "the address makes no valid request")
	}
	response, err := fetch.NotRedirected(s.client).Do(request)
	if err != nil {
		return "", fetch.NetworkError(err)
	}
	if response.StatusCode != http.StatusOK {
		return "", tokenFailure(response, login)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxTokenAnswer+1))
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return "", fetch.NetworkError(err)
	}
	return tokenIn(data)
}

// loginFor returns the login for a token server: see session.
func (s *Session) loginFor(ctx context.Context, realm *url.URL, login fetch.Login) (fetch.Login, error) {
	if login.Empty() || endpoint.SameOrigin(realm, &s.registry) || sameSite(realm.Hostname(), s.registry.Hostname()) {
		return login, nil
	}
	other, found, err := s.keychain.Login(ctx, asked(realm), "")
	if err != nil || found {
		return other, err
	}
	return fetch.Login{}, fetch.Errorf(fetch.Unauthorized, "the login for %s is not sent to another server: "+
		"add one for %s to the pull secret", s.registry.Host, fetch.Quote(realm.Host))
}

// sameSite tells whether two hosts lie below one domain that its owner registered. Of
// addresses, and of names of this network or cluster, the owner of a port is unknown.
func sameSite(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	if net.ParseIP(a) != nil || net.ParseIP(b) != nil {
		return false
	}
	suffix, public := publicsuffix.PublicSuffix(a)
	if !public && !strings.Contains(suffix, ".") {
		return false
	}
	domain, err := publicsuffix.EffectiveTLDPlusOne(a)
	return err == nil && (b == domain || strings.HasSuffix(b, "."+domain))
}

// parseRealm reads the address of a token server.
func parseRealm(text string) (*url.URL, error) {
	realm, err := url.Parse(text)
	if err != nil || realm.Hostname() == "" || realm.User != nil || realm.Opaque != "" {
		return nil, fetch.Errorf(fetch.Unauthorized, "the registry names no valid token server")
	}
	return realm, nil
}

// tokenRequest writes the request for a token: a form with an identity token, else a query.
func tokenRequest(ctx context.Context, realm *url.URL, form url.Values, login fetch.Login) (*http.Request, error) {
	if form.Get("service") == "" {
		form.Del("service")
	}
	if login.Username == IdentityToken {
		form.Set("client_id", clientID)
		form.Set("grant_type", "refresh_token")
		form.Set("refresh_token", login.Password)
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, realm.String(), strings.NewReader(form.Encode()))
		if err == nil {
			request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		return request, err
	}
	target := *realm
	query := target.Query()
	for name, values := range form {
		query[name] = values
	}
	target.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err == nil {
		login.Authorize(request)
	}
	return request, err
}

func tokenFailure(response *http.Response, login fetch.Login) error {
	err := answer.Failure(response)
	switch code := response.StatusCode; {
	case code >= 300 && code < 400:
		return fetch.Errorf(fetch.Refused, "the token server redirects, which is refused")
	case login.Username == IdentityToken && (code == http.StatusNotFound || code == http.StatusMethodNotAllowed):
		return fetch.Errorf(fetch.Unauthorized, "the token server takes no identity token: use a user name and password")
	case code == http.StatusBadRequest, code == http.StatusNotFound:
		return fetch.Errorf(fetch.Unauthorized, "%w", err)
	}
	return err
}

// tokenText is what may stand in a header behind "Bearer" (RFC 6750 section 2.1), and a little more.
var tokenText = regexp.MustCompile(`^[!-~]+$`)

// tokenIn reads the answer of a token server. Nothing of it is shown.
func tokenIn(data []byte) (string, error) {
	var answer struct {
		Token       string `json:"token"`
		AccessToken string `json:"access_token"`
	}
	if len(data) > maxTokenAnswer || json.Unmarshal(data, &answer) != nil {
		return "", fetch.Errorf(fetch.Unauthorized, "the answer is not valid JSON of at most %d bytes", maxTokenAnswer)
	}
	token := cmp.Or(answer.Token, answer.AccessToken)
	if len(token) > maxToken || !tokenText.MatchString(token) {
		return "", fetch.Errorf(fetch.Unauthorized, "the answer has no usable token")
	}
	return token, nil
}
