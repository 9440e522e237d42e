// SPDX-License-Identifier: Apache-2.0

package packages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/volume"
	"github.com/satchel-dev/satchel/internal/catalog/lean"
)

const (
	// mostBytes bounds the answer about one package, which is never in memory as a whole. The largest one of a public catalog of
	// 130 MB has 0.5 MB.
	mostBytes = 32 << 20
	// mostProblem bounds the text of a problem.
	mostProblem = 1 << 10
	// standbyAttempts is how often a request is made while servers that wait to lead answer.
	standbyAttempts = 6
	// leanPath is where a catalog serves what resolution reads of a package. The name of the package follows.
	leanPath = "/api/v1/lean?package="
)

// ask asks the server, and keeps the answer.
func (r *Reader) ask(ctx context.Context, c Catalog, name string, was header, kept bool) (Found, error) {
	base, err := r.admit(c)
	if err != nil {
		return Found{}, err
	}
	validator := ""
	if kept && was.Digest != "" && was.Problem == "" {
		validator = `"` + was.Digest + `"`
	}
	response, err := r.request(ctx, http.MethodGet, base+leanPath+url.QueryEscape(name), validator)
	if err != nil {
		return Found{}, err
	}
	defer response.Body.Close() //nolint:errcheck // only read from
	now := header{Namespace: c.Namespace, Catalog: c.Name, Package: name, Content: c.Content}
	switch response.StatusCode {
	case http.StatusNotModified:
		return r.confirm(keyOf(c, name), c.Content)
	case http.StatusNoContent:
		return r.keep(now, lean.Parsed{})
	case http.StatusUnprocessableEntity:
		text, err := io.ReadAll(io.LimitReader(response.Body, mostProblem))
		if err != nil {
			return Found{}, fmt.Errorf("receiving the problem of the package: %w", err)
		}
		now.Problem = strings.TrimSpace(strings.ToValidUTF8(string(text), ""))
		now.Digest = digest.FromBytes(text).String()
		return r.keep(now, lean.Parsed{})
	case http.StatusOK:
		return r.receive(ctx, now, response)
	case http.StatusNotFound:
		return Found{}, errors.New("the artifact server does not serve the catalog: it has to be fetched again")
	case http.StatusUnauthorized, http.StatusForbidden:
		return Found{}, fmt.Errorf("the artifact server answered %s: check --artifact-token-file here and --artifact-readers there", response.Status)
	}
	return Found{}, fmt.Errorf("the artifact server answered %s", response.Status)
}

// receive writes the blobs of a package to a file, compares them with their digest, and has them parsed.
func (r *Reader) receive(ctx context.Context, now header, response *http.Response) (Found, error) {
	draft, err := volume.NewDraft(volume.OSFileSystem{}, r.root, ".")
	if err != nil {
		return Found{}, fmt.Errorf("receiving the package: %w", err)
	}
	defer draft.Discard()
	digester := digest.Canonical.Digester()
	received, err := io.Copy(io.MultiWriter(draft, digester.Hash()), io.LimitReader(response.Body, mostBytes+1))
	if err != nil {
		return Found{}, fmt.Errorf("receiving the package: %w", err)
	}
	if received > mostBytes {
		return Found{}, fmt.Errorf("the package has more than %d bytes", mostBytes)
	}
	now.Digest = digester.Digest().String()
	if tag := response.Header.Get("Etag"); tag != `"`+now.Digest+`"` {
		return Found{}, fmt.Errorf("the package has the digest %s, and the artifact server says %.100s", now.Digest, tag)
	}
	blobs, err := draft.Open()
	if err != nil {
		return Found{}, fmt.Errorf("reading the package: %w", err)
	}
	defer blobs.Close() //nolint:errcheck // only read from
	parsed, err := r.parse(ctx, now.Namespace, now.Package, blobs)
	if err != nil {
		return Found{}, fmt.Errorf("parsing the package: %w", err)
	}
	now.Problem = parsed.Problem
	return r.keep(now, parsed)
}

// request asks until the server that leads answers.
func (r *Reader) request(ctx context.Context, method, address, validator string) (*http.Response, error) {
	for attempt := 1; ; attempt++ {
		request, err := http.NewRequestWithContext(ctx, method, address, http.NoBody)
		if err != nil {
			return nil, fmt.Errorf("making a request: %w", err)
		}
		request.Header.Set("Accept-Encoding", "identity") // the digest is that of the bytes as they are stored
		if validator != "" {
			request.Header.Set("If-None-Match", validator)
		}
		response, err := r.client.Do(request)
		if err != nil {
			return nil, fmt.Errorf("the artifact server does not answer: %w", err)
		}
		if attempt == standbyAttempts || response.Header.Get(artifact.StandbyHeader) == "" {
			return response, nil
		}
		response.Body.Close() //nolint:errcheck // nothing in it is of use
	}
}
