// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/satchel-dev/satchel/internal/endpoint"
	"github.com/satchel-dev/satchel/internal/fetch"
)

const (
	// maxPages and maxListBytes bound a list that comes in pages; each page is bounded as a manifest is.
	maxPages     = 1000
	maxListBytes = 32 << 20
	// pageSize is what is asked for; many registries give fewer.
	pageSize = "n=1000"
)

// pages reads a list of the repository page by page. The next page is asked of the same registry, at the same path:
// of what the registry says about it only the query is used.
func (r *registry) pages(ctx context.Context, q question, each func(contentType string, data []byte) error) error {
	total, asked := 0, map[string]bool{}
	for len(asked) < maxPages {
		if asked[q.query] {
			return fetch.Errorf(fetch.InvalidContent, "the registry's list goes round in a circle")
		}
		asked[q.query] = true
		response, err := r.get(ctx, q)
		if err != nil {
			return err
		}
		data, err := readAll(response, "list")
		if err != nil {
			return err
		}
		if total += len(data); total > maxListBytes {
			return fetch.Errorf(fetch.LimitExceeded, "the list has more than %d bytes", maxListBytes)
		}
		if err := each(response.Header.Get("Content-Type"), data); err != nil {
			return err
		}
		if q.query, err = r.next(response.Header); err != nil || q.query == "" {
			return err
		}
	}
	return fetch.Errorf(fetch.LimitExceeded, "the list has more than %d pages", maxPages)
}

// nextLink is a link with the relation next (RFC 8288), as registries write it.
var nextLink = regexp.MustCompile(`<([^<>]*)>[^<>,]*;\s*rel="?next"?`)

// next returns the query of the next page, "" when there is none.
func (r *registry) next(header http.Header) (string, error) {
	found := nextLink.FindStringSubmatch(strings.Join(header.Values("Link"), ", "))
	if found == nil {
		return "", nil
	}
	link, err := url.Parse(found[1])
	if err != nil {
		return "", fetch.Errorf(fetch.InvalidContent, "the registry's link to the next page is malformed")
	}
	if link.Host != "" && !endpoint.SameOrigin(&url.URL{Scheme: r.scheme(), Host: link.Host}, &url.URL{Scheme: r.scheme(), Host: r.host()}) {
		return "", fetch.Errorf(fetch.Refused, "the registry's list goes on at another server, %s, which is refused",
			fetch.Quote(link.Host))
	}
	return link.Query().Encode(), nil
}

// readAll returns the body of an answer that is at most as large as a manifest may be.
func readAll(response *http.Response, what string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(response.Body, maxManifest+1))
	if closeErr := response.Body.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, fetch.NetworkError(err)
	}
	if len(data) > maxManifest {
		return nil, fetch.Errorf(fetch.LimitExceeded, "the %s has more than %d bytes", what, maxManifest)
	}
	return data, nil
}
