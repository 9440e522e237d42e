// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/endpoint"
)

// BearerFromFile returns a transport that adds the token in a file to requests with the scheme, host and port of one of the
// given servers; requests to any other, also after a redirect, go out without it. The file is read
// for each request, because a kubelet replaces a token before it ends.
func BearerFromFile(base http.RoundTripper, file string, serverURLs []string) (http.RoundTripper, error) {
	b := &bearer{base: base, file: file, servers: map[string]bool{}}
	for _, server := range serverURLs {
		if _, err := serverURL(server); err != nil {
			return nil, err
		}
		parsed, err := url.Parse(server)
		if err != nil {
			return nil, fmt.Errorf("artifact server: %w", err)
		}
		at := origin(parsed)
		if at == "" {
			return nil, fmt.Errorf("artifact server %s: its host or port is not valid", parsed.Redacted())
		}
		b.servers[at] = true
	}
	if _, err := b.token(); err != nil {
		return nil, err
	}
	return b, nil
}

type bearer struct {
	base    http.RoundTripper
	file    string
	servers map[string]bool // by origin
}

// RoundTrip implements http.RoundTripper.
func (b *bearer) RoundTrip(request *http.Request) (*http.Response, error) {
	if !b.servers[origin(request.URL)] {
		return b.base.RoundTrip(request)
	}
	token, err := b.token()
	if err != nil {
		return nil, err
	}
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+token)
	return b.base.RoundTrip(request)
}

// token reads the file.
func (b *bearer) token() (string, error) {
	opened, err := os.Open(b.file)
	if err != nil {
		return "", fmt.Errorf("reading the token for the artifact server: %w: check --artifact-token-file", err)
	}
	defer opened.Close() //nolint:errcheck // only read from
	content, err := io.ReadAll(io.LimitReader(opened, artifact.MaxTokenBytes+2))
	token := strings.TrimSpace(string(content))
	switch {
	case err != nil:
		return "", fmt.Errorf("reading the token for the artifact server: %w: check --artifact-token-file", err)
	case token == "" || len(token) > artifact.MaxTokenBytes || strings.ContainsAny(token, " \t\r\n"):
		return "", fmt.Errorf("the file %s has no token for the artifact server: check --artifact-token-file", b.file)
	}
	return token, nil
}

// origin is scheme, host and port of a URL; "" if it has no valid host.
func origin(u *url.URL) string {
	server, err := endpoint.OfURL(u)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + server.String()
}
