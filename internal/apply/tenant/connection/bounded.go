// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// Limits of the answers of a remote cluster: a tenant may have written its API server. Values are counted
// as well as bytes: a list of empty objects has three bytes a value, and takes a hundred times that once it is decoded.
const (
	mostObjectBytes  = 2 << 20  // of an answer about one object, and of one event of a watch
	mostPageBytes    = 16 << 20 // of a page of a list, and of discovery
	mostObjectValues = 200_000
	mostPageValues   = 200_000 // of the outer levels, without what managed fields list
	mostPageItems    = 1_000   // we ask for pages of 500
	pageDepth        = 5       // list, items, item, metadata, and what that lists
)

// largeAnswer is the size from which an answer counts towards namespaceRoom, the number of MiB of such answers that are read
// at once for all deployments of a namespace. Further answers wait, without blocking other namespaces.
const (
	LargeAnswer   = 64 << 10
	NamespaceRoom = 16
)

// RemoteTransport bounds what is read of a remote cluster's answers. It wraps the decompression.
type RemoteTransport struct {
	Next http.RoundTripper
	Host string
	Room *semaphore.Weighted
	// refused counts answers that are too large.
	Refused *atomic.Uint64
}

// RoundTrip implements http.RoundTripper. It requests and accepts only JSON, so that values can be counted while they arrive.
func (t RemoteTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if accept := request.Header.Get("Accept"); accept != "" {
		request = request.Clone(request.Context())
		request.Header.Set("Accept", onlyJSON(accept))
	}
	response, err := t.Next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if response.StatusCode < http.StatusMultipleChoices && kind != "" && kind != "application/json" {
		_ = response.Body.Close() // nothing of it is wanted
		return nil, fmt.Errorf("the API server %s answers %s in place of JSON", t.Host, kind)
	}
	response.Body = &boundedBody{ReadCloser: response.Body, request: request, host: t.Host, room: t.Room, bounds: boundsOf(request), refused: t.Refused}
	return response, nil
}

// onlyJSON removes the binary encodings from a list of media types.
func onlyJSON(accept string) string {
	var kept []string
	for kind := range strings.SplitSeq(accept, ",") {
		if strings.HasPrefix(strings.TrimSpace(kind), "application/json") {
			kept = append(kept, kind)
		}
	}
	if len(kept) == 0 {
		return "application/json"
	}
	return strings.Join(kept, ",")
}

// bounds of one answer.
type bounds struct {
	bytes         int64
	values, items int
	depth         int // values below are not counted; 0 for all
	weight        int64
}

// boundsOf derives the bounds from the path of a request. Other requests, such as discovery, are bounded as a page.
func boundsOf(request *http.Request) bounds {
	object := bounds{bytes: mostObjectBytes, values: mostObjectValues, items: mostObjectValues, weight: mostObjectBytes >> 20}
	if request.Method != http.MethodGet || request.URL.Query().Get("watch") != "" || namesObject(request.URL.Path) {
		return object
	}
	return bounds{bytes: mostPageBytes, values: mostPageValues, items: mostPageItems, depth: pageDepth, weight: mostPageBytes >> 20}
}

// namesObject tells /api/v1/namespaces/shop/configmaps/one from the collections that it is in.
func namesObject(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return false
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	return len(parts) > 1
}

// boundedBody stops reading an answer at its bounds. The events of a watch are bounded one by one.
type boundedBody struct {
	io.ReadCloser
	request *http.Request
	host    string
	room    *semaphore.Weighted
	bounds  bounds
	refused *atomic.Uint64

	read   int64 // bytes since the last whole value at the top
	count  counter
	roomy  bool // it holds part of namespaceRoom
	failed error
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.failed != nil {
		return 0, b.failed
	}
	if b.read > LargeAnswer && !b.roomy {
		if err := b.room.Acquire(b.request.Context(), b.bounds.weight); err != nil {
			return 0, err
		}
		b.roomy = true
	}
	n, err := b.ReadCloser.Read(p)
	ended := b.count.take(p[:n], b.bounds)
	switch {
	case b.count.over:
		b.failed = b.tooLarge(AnswerTooLargeError{Values: true})
	case b.read+int64(max(ended, 0)) > b.bounds.bytes, ended < 0 && b.read+int64(n) > b.bounds.bytes:
		b.failed = b.tooLarge(AnswerTooLargeError{Limit: b.bounds.bytes})
	}
	if b.failed != nil {
		return 0, b.failed
	}
	if b.read += int64(n); ended >= 0 {
		b.read = int64(n - ended)
		b.release()
	}
	return n, err
}

func (b *boundedBody) tooLarge(e AnswerTooLargeError) error {
	b.refused.Add(1)
	e.Host, e.Request = b.host, b.request.Method+" "+b.request.URL.Path
	return &e
}

// Close implements io.Closer.
func (b *boundedBody) Close() error {
	b.release()
	return b.ReadCloser.Close()
}

func (b *boundedBody) release() {
	if b.roomy {
		b.room.Release(b.bounds.weight)
		b.roomy = false
	}
}

// counter counts the values of JSON while it is read, well formed or not.
type counter struct {
	values, items    int
	level            int
	inText, escaping bool
	over             bool // there were more than the bounds allow
}

// itemLevel is where the items of a list are: in a list, in an object.
const itemLevel = 2

// take returns where the last value at the top ended, or -1. Each is counted by itself.
func (c *counter) take(text []byte, most bounds) (ended int) {
	ended = -1
	for i, char := range text {
		switch {
		case c.escaping:
			c.escaping = false
		case c.inText:
			c.escaping, c.inText = char == '\\', char != '"'
		case char == '"':
			c.inText = true
		case char == '{' || char == '[':
			c.level++
			c.count(most)
		case char == ',':
			c.count(most)
		case char == '}' || char == ']':
			if c.level--; c.level <= 0 {
				*c, ended = counter{over: c.over}, i+1
			}
		}
	}
	return ended
}

func (c *counter) count(most bounds) {
	if most.depth == 0 || c.level <= most.depth {
		c.values++
	}
	if c.level == itemLevel {
		c.items++
	}
	c.over = c.over || c.values > most.values || c.items > most.items
}
