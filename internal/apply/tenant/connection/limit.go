// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"fmt"
	"io"
	"net/http"
)

// AnswerTooLargeError says that an API server, perhaps an aggregated one of
// another team, sent an answer that exceeds the limit.
type AnswerTooLargeError struct {
	// Limit in bytes.
	Limit int64
	// Values: the limit of values is exceeded, not that of bytes.
	Values bool
	// Host and port of a remote cluster's server, and the method and path of the request; empty for the own cluster.
	Host, Request string
}

// Error implements error.
func (e *AnswerTooLargeError) Error() string {
	if e.Host == "" {
		return fmt.Sprintf("the API server's answer is larger than %d bytes", e.Limit)
	}
	if e.Values {
		return fmt.Sprintf("the API server %s: its answer to %s has more values than are read", e.Host, e.Request)
	}
	return fmt.Sprintf("the API server %s: its answer to %s is larger than %d MiB", e.Host, e.Request, e.Limit>>20)
}

// LimitedTransport stops reading answers of the own cluster at a limit. It wraps
// the decompression, so that it counts the bytes in memory.
type LimitedTransport struct {
	Next http.RoundTripper
	// Limit in bytes of an answer.
	Limit int64
	// Object is the limit of an answer about one object. etcd stores 1.5 MiB of one by default, and 8 MiB at most by its
	// documentation. It holds for aggregated API servers, which store elsewhere, as well.
	Object int64
}

// RoundTrip implements http.RoundTripper.
func (t LimitedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.Next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	limit := t.limitOf(request)
	response.Body = &limitedBody{ReadCloser: response.Body, left: limit, limit: limit}
	return response, nil
}

// limitOf is the limit of the answer to a request. A watch may send many objects.
func (t LimitedTransport) limitOf(request *http.Request) int64 {
	if request.URL.Query().Get("watch") == "" && (request.Method != http.MethodGet || namesObject(request.URL.Path)) {
		return t.Object
	}
	return t.Limit
}

type limitedBody struct {
	io.ReadCloser
	left, limit int64
}

// Read implements io.Reader. An answer of exactly the limit is read to its end.
func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, &AnswerTooLargeError{Limit: b.limit}
	}
	if most := b.left + 1; int64(len(p)) > most {
		p = p[:most]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n - 1, &AnswerTooLargeError{Limit: b.limit}
	}
	return n, err
}
