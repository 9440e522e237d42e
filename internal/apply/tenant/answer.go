// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"fmt"
	"io"
	"net/http"
)

// AnswerTooLargeError says that an API server, perhaps an aggregated one that
// somebody of the cluster runs, answered with more than is read.
type AnswerTooLargeError struct{ Limit int64 }

// Error implements error.
func (e *AnswerTooLargeError) Error() string {
	return fmt.Sprintf("the API server's answer is larger than %d bytes", e.Limit)
}

// limitedTransport ends the reading of answers at a limit. It stands outside of
// the decompression, so that it counts what gets into memory.
type limitedTransport struct {
	next  http.RoundTripper
	limit int64
}

// RoundTrip implements http.RoundTripper.
func (t limitedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Body = &limitedBody{ReadCloser: response.Body, left: t.limit, limit: t.limit}
	return response, nil
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
