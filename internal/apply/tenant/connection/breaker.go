// SPDX-License-Identifier: Apache-2.0

package connection

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

	"golang.org/x/sync/semaphore"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// UnreachableError says that a remote cluster's API server did not answer.
type UnreachableError struct {
	// Host and port of the server.
	Host string
	// Err is the reason. It is the same for each attempt.
	Err error
}

// Error implements error.
func (e *UnreachableError) Error() string { return "the API server " + e.Host + ": " + cause(e.Err) }

// Unwrap returns the reason, unless the server timed out or cut the connection: client-go would send a GET again and again for
// ten seconds, and hold a worker, although nothing is sent before the pause of the Breaker is over.
func (e *UnreachableError) Unwrap() error {
	if timedOut(e.Err) || wasCut(e.Err) {
		return nil
	}
	return e.Err
}

// wasCut tells that a connection ended early.
func wasCut(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || utilnet.IsConnectionReset(err) ||
		utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err)
}

// cause is why the connection failed, in words that do not change with the local port.
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
	case wasCut(err):
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

// Breaker stops requests to a server that does not answer: after a failure they
// fail at once for a while, which doubles with each failure in a row. Then one request is sent
// to try again, the probe. So a dead cluster occasionally blocks one worker for the time limit of a probe.
type Breaker struct {
	Host string
	Next http.RoundTripper
	Now  func() time.Time
	// Probes are the places for probes of all servers that share them; nil for any number. Without a
	// place the known failure is returned.
	Probes *semaphore.Weighted

	mu       sync.Mutex
	slow     int // answers in a row that took longer than slowAnswer
	failures int
	last     error
	until    time.Time // nothing is sent before
	trying   bool      // there is a probe
}

// The pause after one failure, and the longest one.
const (
	firstPause   = 2 * time.Second
	longestPause = time.Minute
)

// An answer that takes longer is slow, and this many in a row count as a failure: a server that answers each request after 25
// seconds blocks a worker like one that does not answer. A single one may be due to a webhook.
const (
	slowAnswer = 10 * time.Second
	slowInARow = 2
)

var errSlow = errors.New("its answers take longer than " + slowAnswer.String())

// RoundTrip implements http.RoundTripper.
func (b *Breaker) RoundTrip(request *http.Request) (*http.Response, error) {
	probe, err := b.admit()
	if err != nil {
		return nil, err
	}
	began := b.Now()
	request = probe.limited(request)
	response, err := b.Next.RoundTrip(request)
	probe.answered()
	if err != nil {
		defer probe.end()
		if endedByCaller(request.Context()) {
			return nil, err // nothing is known
		}
		return nil, b.judge(probe.cause(err))
	}
	if request.URL.Query().Get("watch") != "" {
		probe.leave()
		response.Body = &timedBody{ReadCloser: response.Body, ctx: request.Context(), ended: func(error) { probe.end() }}
		return response, b.judge(nil)
	}
	response.Body = &timedBody{ReadCloser: response.Body, ctx: request.Context(), ended: func(failed error) {
		defer probe.end()
		switch {
		case failed != nil && endedByCaller(request.Context()):
		case failed != nil:
			_ = b.judge(probe.cause(failed)) // it began to answer, and stopped
		case b.tooSlow(b.Now().Sub(began)):
			_ = b.judge(errSlow) // affects the next requests; this answer is good
		default:
			_ = b.judge(nil)
		}
	}}
	return response, nil
}

// ErrTurnOver is the cause with which the context of a reconcile ends that has used up its budget of time. A request that
// ends because of it says nothing about the server.
var ErrTurnOver = errors.New("the time of this turn is used up")

// endedByCaller tells that the caller ended a request before its own timeout.
func endedByCaller(ctx context.Context) bool {
	if errors.Is(context.Cause(ctx), errProbeOver) {
		return false
	}
	return errors.Is(ctx.Err(), context.Canceled) || errors.Is(context.Cause(ctx), ErrTurnOver)
}

// timedBody measures when an answer was read, and the error that ended the reading early.
type timedBody struct {
	io.ReadCloser
	ctx    context.Context //nolint:containedctx // that of the request
	whole  bool
	failed error
	once   sync.Once
	ended  func(failed error)
}

// Read implements io.Reader.
func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case errors.Is(err, io.EOF):
		b.whole = true
	case err != nil:
		b.failed = err
	}
	return n, err
}

// Close implements io.Closer. A reader may close an answer when its time is over, before a read reports that.
func (b *timedBody) Close() error {
	b.once.Do(func() {
		failed := b.failed
		if failed == nil && !b.whole {
			failed = b.ctx.Err()
		}
		b.ended(failed)
	})
	return b.ReadCloser.Close()
}

// tooSlow counts slow answers in a row.
func (b *Breaker) tooSlow(took time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if took <= slowAnswer {
		b.slow = 0
		return false
	}
	b.slow++
	return b.slow >= slowInARow
}

// admit returns the known failure of a server that does not answer. Otherwise a request is sent; it is a probe if the
// server failed before, and the probe is nil if it did not.
func (b *Breaker) admit() (*probe, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures == 0 {
		return nil, nil
	}
	if b.trying || b.Now().Before(b.until) || b.Probes != nil && !b.Probes.TryAcquire(1) {
		return nil, &UnreachableError{Host: b.Host, Err: b.last}
	}
	b.trying = true
	return &probe{of: b}, nil
}

// Open tells that the server did not answer the last request.
func (b *Breaker) Open() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failures > 0
}

func (b *Breaker) judge(err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		b.failures, b.last = 0, nil
		return nil
	}
	if b.failures > 0 && b.Now().Before(b.until) {
		return &UnreachableError{Host: b.Host, Err: err} // it was sent before the first of these failures was known
	}
	b.until = b.Now().Add(min(firstPause<<min(b.failures, 10), longestPause))
	b.failures++
	b.last = err
	return &UnreachableError{Host: b.Host, Err: err}
}
