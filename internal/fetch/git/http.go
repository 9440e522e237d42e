// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"github.com/satchel-dev/satchel/internal/endpoint"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/git/protocol"
)

const (
	// listPath is where below a repository its references are (gitprotocol-http(5)).
	listPath = "/info/refs"
	// versionHeader offers the newer version of the protocol.
	versionHeader = "Git-Protocol"
)

// web is a repository behind HTTP. Each request stands alone.
type web struct {
	client *http.Client
	// home is the URL that was configured, the only server that gets the login; place is where it redirects to.
	home, place *url.URL
	login       fetch.Login
}

func newWeb(client *http.Client, home *url.URL, login fetch.Login) *web {
	return &web{client: client, home: home, place: home, login: login}
}

// checkLogin refuses what cannot be sent as it is.
func checkLogin(l fetch.Login) error {
	switch {
	case strings.ContainsFunc(l.Username+l.Password+l.Token, unicode.IsControl):
		return fetch.Errorf(fetch.Refused, "the credentials have a control character in them, perhaps a line feed at the end: remove it")
	case strings.Contains(l.Username, ":"):
		return fetch.Errorf(fetch.Refused, "the user name has a colon in it, which HTTP does not allow")
	}
	return nil
}

// List implements remote. A redirect moves the whole repository, as in git itself.
func (w *web) List(ctx context.Context, newer bool) (io.ReadCloser, error) {
	target := fetch.Below(w.home, listPath)
	target.RawQuery = "service=" + protocol.Service
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, err
	}
	if newer {
		request.Header.Set(versionHeader, protocol.VersionTwo)
	}
	response, err := w.send(w.client, request)
	if err != nil {
		return nil, err
	}
	place := *response.Request.URL
	place.RawQuery = ""
	path, found := strings.CutSuffix(place.Path, listPath)
	raw, foundRaw := strings.CutSuffix(place.EscapedPath(), listPath)
	if !found || !foundRaw {
		return nil, errors.Join(fetch.Errorf(fetch.NotFound, "the server redirects to a page that is no repository"),
			response.Body.Close())
	}
	place.Path, place.RawPath = path, raw
	w.place = &place
	return response.Body, nil
}

// Ask implements remote. Redirects end it: the list of references is where they count.
func (w *web) Ask(ctx context.Context, content []byte, newer bool) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, fetch.Below(w.place, "/"+protocol.Service).String(), bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-"+protocol.Service+"-request")
	request.Header.Set("Accept", "application/x-"+protocol.Service+"-result")
	if newer {
		request.Header.Set(versionHeader, protocol.VersionTwo)
	}
	response, err := w.send(fetch.NotRedirected(w.client), request)
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

// send sends a request, with the login when it goes to the configured server. What is no success is an error.
func (w *web) send(client *http.Client, request *http.Request) (*http.Response, error) {
	request.Header.Set("User-Agent", protocol.Agent)
	if endpoint.SameOrigin(request.URL, w.home) {
		w.login.Authorize(request)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fetch.NetworkError(err)
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return nil, errors.Join(fetch.StatusError(response.StatusCode, response.Header, ""), response.Body.Close())
	}
	return response, nil
}

// Close implements remote.
func (*web) Close() error { return nil }
