// SPDX-License-Identifier: Apache-2.0

package githubapp

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/git/protocol"
	"github.com/satchel-dev/satchel/internal/fetch/verify"
)

// Options say as which installation of a GitHub App to log in: a key of the app buys a token that lasts an hour and can
// only read.
type Options struct {
	// ID of the app, a number or the client ID.
	ID string
	// InstallationID, or else the organization or user that has installed it.
	InstallationID, Owner string
	// PrivateKey of the app, RSA in PEM.
	PrivateKey []byte
	// BaseURL of GitHub's API; "" is the public one, https://HOST/api/v3 that of an enterprise server.
	BaseURL string
	// Tokens keeps tokens between fetchers; nil keeps them for one.
	Tokens *Tokens
}

const (
	publicGitHub = "https://api.github.com"
	// tokenUser is the user name that goes with a token of an installation.
	tokenUser = "x-access-token"
	// maxAnswer bounds an answer of the API, maxToken a token in it.
	maxAnswer = 64 << 10
	maxToken  = 4 << 10
	// Tokens are bought with a statement that is valid for a moment. It begins in the past, for clocks differ.
	statementLife = 9 * time.Minute
	statementSlip = time.Minute
)

// What may be part of a path of the API.
var (
	appID        = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)
	installation = regexp.MustCompile(`^[0-9]{1,20}$`)
	account      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`)
)

// App is a checked GitHubApp.
type App struct {
	Options
	base   *url.URL
	key    *rsa.PrivateKey
	client *http.Client
	same   [sha256.Size]byte // equal for apps that get the same tokens
}

// New checks the options, without asking GitHub yet.
func New(o Options, client *http.Client) (*App, error) {
	if o.BaseURL == "" {
		o.BaseURL = publicGitHub
	}
	if o.Tokens == nil {
		o.Tokens = NewTokens()
	}
	a := &App{Options: o, client: client}
	switch {
	case !appID.MatchString(o.ID):
		return nil, fetch.Errorf(fetch.Refused, "the ID of the GitHub App is missing or malformed")
	case (o.InstallationID == "") == (o.Owner == ""):
		return nil, fetch.Errorf(fetch.Refused, "exactly one of the installation's ID and its owner is needed for a GitHub App")
	case o.InstallationID != "" && !installation.MatchString(o.InstallationID):
		return nil, fetch.Errorf(fetch.Refused, "the installation ID of the GitHub App is not a number")
	case o.Owner != "" && !account.MatchString(o.Owner):
		return nil, fetch.Errorf(fetch.Refused, "the owner of the GitHub App's installation is not the name of an organization or user")
	}
	var err error
	if a.base, err = fetch.ParseURL(o.BaseURL); err != nil {
		return nil, fetch.Describe(err, "base URL of the GitHub App")
	}
	if a.key, err = parseAppKey(o.PrivateKey); err != nil {
		return nil, err
	}
	a.same = sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %x", o.ID, o.InstallationID, o.Owner, o.BaseURL, o.PrivateKey))
	return a, nil
}

// parseAppKey reads the key of an app. The error shows nothing of it.
func parseAppKey(text []byte) (*rsa.PrivateKey, error) {
	bad := fetch.Errorf(fetch.Refused, "the private key of the GitHub App is not an RSA key in PEM")
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, bad
	}
	key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	if err != nil {
		other, otherErr := x509.ParsePKCS8PrivateKey(block.Bytes)
		ours, isRSA := other.(*rsa.PrivateKey)
		if otherErr != nil || !isRSA {
			return nil, bad
		}
		key = ours
	}
	if err := verify.CheckKey(&key.PublicKey); err != nil {
		return nil, fetch.Errorf(fetch.Refused, "the private key of the GitHub App: %w", err)
	}
	return key, nil
}

// Login returns the credentials for the Git server.
func (a *App) Login(ctx context.Context) (fetch.Login, error) {
	token, err := a.Tokens.get(ctx, a.same, func() (string, time.Time, error) { return a.buy(ctx) })
	if err != nil {
		return fetch.Login{}, fetch.Describe(err, "GitHub App %s", a.ID)
	}
	return fetch.Login{Username: tokenUser, Password: token}, nil
}

// Forget has the next login buy a new token.
func (a *App) Forget() { a.Tokens.forget(a.same) }

// buy exchanges a statement that the app's key signs for a token, and returns when it ends.
func (a *App) buy(ctx context.Context) (string, time.Time, error) {
	id, err := a.installed(ctx)
	if err != nil {
		return "", time.Time{}, err
	}
	var bought struct {
		Token     string    `json:"token"`
		ExpiresAt time.Time `json:"expires_at"`
	}
	const wish = `{"permissions":{"contents":"read"}}`
	if err := a.call(ctx, http.MethodPost, "/app/installations/"+id+"/access_tokens", wish, &bought); err != nil {
		return "", time.Time{}, err
	}
	if bought.Token == "" || len(bought.Token) > maxToken || strings.ContainsFunc(bought.Token, func(r rune) bool { return r > unicode.MaxASCII || unicode.IsControl(r) }) {
		return "", time.Time{}, fetch.Errorf(fetch.InvalidContent, "the API's answer has no token in it")
	}
	return bought.Token, bought.ExpiresAt, nil
}

// installed returns the ID of the installation.
func (a *App) installed(ctx context.Context) (string, error) {
	if a.InstallationID != "" {
		return a.InstallationID, nil
	}
	var found struct {
		ID uint64 `json:"id"`
	}
	err := a.call(ctx, http.MethodGet, "/orgs/"+a.Owner+"/installation", "", &found)
	if fetch.ReasonOf(err) == fetch.NotFound {
		err = a.call(ctx, http.MethodGet, "/users/"+a.Owner+"/installation", "", &found)
	}
	if err == nil && found.ID == 0 {
		err = fetch.Errorf(fetch.InvalidContent, "the API's answer has no installation in it")
	}
	return strconv.FormatUint(found.ID, 10), fetch.Describe(err, "installation of %s", a.Owner)
}

// call sends a request to the API, and follows no redirect.
func (a *App) call(ctx context.Context, method, path, content string, answer any) (err error) {
	statement, err := a.statement(a.Tokens.Now())
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, fetch.Below(a.base, path).String(), strings.NewReader(content))
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/vnd.github+json")
	request.Header.Set("User-Agent", protocol.Agent)
	if content != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	fetch.Login{Token: statement}.Authorize(request)
	response, err := fetch.NotRedirected(a.client).Do(request)
	if err != nil {
		return fetch.NetworkError(err)
	}
	defer func() { err = errors.Join(err, fetch.CloseBody(response.Body, err)) }()
	return readAnswer(response, answer)
}

func readAnswer(response *http.Response, answer any) error {
	switch {
	case response.StatusCode == http.StatusUnprocessableEntity:
		return fetch.Errorf(fetch.Unauthorized, "the installation has no permission to read contents (422)")
	case response.StatusCode >= http.StatusMultipleChoices:
		return fetch.StatusError(response.StatusCode, response.Header, "")
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return fetch.NetworkError(err)
	}
	if len(data) > maxAnswer || json.Unmarshal(data, answer) != nil {
		return fetch.Errorf(fetch.InvalidContent, "the answer is not that of GitHub's API: check the base URL")
	}
	return nil
}

// statement is a JSON Web Token (RFC 7519) that says who we are, signed with RS256.
func (a *App) statement(now time.Time) (string, error) {
	claims, err := json.Marshal(map[string]any{
		"iss": a.ID, "iat": now.Add(-statementSlip).Unix(), "exp": now.Add(statementLife).Unix(),
	})
	if err != nil {
		return "", err
	}
	encode := base64.RawURLEncoding.EncodeToString
	signed := bytes.NewBufferString(encode([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + encode(claims))
	sum := sha256.Sum256(signed.Bytes())
	signature, err := rsa.SignPKCS1v15(rand.Reader, a.key, crypto.SHA256, sum[:])
	if err != nil {
		return "", fetch.Errorf(fetch.Refused, "the private key of the GitHub App cannot sign")
	}
	return signed.String() + "." + encode(signature), nil
}
