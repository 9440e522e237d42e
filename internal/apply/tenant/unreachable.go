// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"
)

// UnreachableError says that a remote cluster's API server did not answer.
type UnreachableError struct {
	// Host and port of the server.
	Host string
	// Err is why. It is the same at each try.
	Err error
}

// Error implements error.
func (e *UnreachableError) Error() string { return "the API server " + e.Host + ": " + cause(e.Err) }

// Unwrap gives the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// cause is why no connection came about, in words that do not change with the port
// that was used.
func cause(err error) string {
	var (
		dns         *net.DNSError
		certificate *tls.CertificateVerificationError
		authority   x509.UnknownAuthorityError
		record      tls.RecordHeaderError
		alert       tls.AlertError
		operation   *net.OpError
	)
	switch {
	case errors.As(err, &dns):
		return "the address of its host could not be found"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.As(err, &certificate):
		return certificate.Error()
	case errors.As(err, &authority):
		return authority.Error()
	case errors.As(err, &record), errors.As(err, &alert):
		return "it does not speak TLS as expected: " + err.Error()
	case timedOut(err):
		return "no answer in time"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return "the connection was cut"
	case errors.As(err, &operation) && operation.Err != nil:
		return operation.Err.Error()
	}
	return err.Error()
}

func timedOut(err error) bool {
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &network) && network.Timeout()
}

// breaker keeps requests from a server that does not answer: after a failure they
// fail at once for a while, which doubles with each failure in a row. Then one is let
// through to find out. So a dead cluster costs its deployments no more than one
// worker for one time-out now and then.
type breaker struct {
	host string
	next http.RoundTripper
	now  func() time.Time

	mu       sync.Mutex
	failures int
	last     error
	until    time.Time // nothing is sent before
	trying   bool
}

// The pause after one failure, and the longest one.
const (
	firstPause   = 2 * time.Second
	longestPause = time.Minute
)

// RoundTrip implements http.RoundTripper.
func (b *breaker) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := b.admit(); err != nil {
		return nil, err
	}
	response, err := b.next.RoundTrip(request)
	if err != nil && errors.Is(request.Context().Err(), context.Canceled) {
		b.abandoned()
		return nil, err // whoever asked gave up; nothing is known
	}
	return response, b.judge(err)
}

// admit tells what is known of a server that does not answer; nil lets a request through.
func (b *breaker) admit() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures == 0 {
		return nil
	}
	if b.trying || b.now().Before(b.until) {
		return &UnreachableError{Host: b.host, Err: b.last}
	}
	b.trying = true
	return nil
}

func (b *breaker) abandoned() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trying = false
}

func (b *breaker) judge(err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trying = false
	if err == nil {
		b.failures, b.last = 0, nil
		return nil
	}
	b.until = b.now().Add(min(firstPause<<min(b.failures, 10), longestPause))
	b.failures++
	b.last = err
	return &UnreachableError{Host: b.host, Err: err}
}
