// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// NetworkError gives a failed connection or transfer its reason, and says in words what the cause was. An error that
// has a reason already, and the end of a cancelled context, are returned as they are.
func NetworkError(err error) error {
	if err == nil {
		return nil
	}
	hideQuery(err)
	if ReasonOf(err) != "" || errors.Is(err, context.Canceled) {
		return err
	}
	switch {
	case timedOut(err):
		return Errorf(Timeout, "no answer in time: %w", withoutPort(err))
	case errors.Is(err, syscall.ECONNREFUSED):
		return Errorf(Unreachable, "%w", refusal(err))
	}
	return Errorf(Unreachable, "%s: %w", networkCause(err), withoutPort(err))
}

// withoutPort takes out of the text what may be another at each try: our own end of a connection, and the name of the function of
// net/http that saw a connection end before the request was sent.
func withoutPort(err error) error {
	text := strings.ReplaceAll(err.Error(), "readLoopPeekFailLocked: ", "")
	var operation *net.OpError
	if errors.As(err, &operation) && operation.Source != nil {
		text = strings.ReplaceAll(text, operation.Source.String()+"->", "")
	}
	if text == err.Error() {
		return err
	}
	return &reworded{text, err}
}

// hideQuery takes query and user out of the URL that net/http's errors show: redirects lead to signed URLs.
func hideQuery(err error) {
	var failed *url.Error
	if !errors.As(err, &failed) {
		return
	}
	shown, parseErr := url.Parse(failed.URL)
	if parseErr != nil {
		failed.URL = "(malformed URL)"
		return
	}
	shown.RawQuery = ""
	shown.User = nil
	shown.Fragment = ""
	failed.URL = shown.String()
}

func timedOut(err error) bool {
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.As(err, &network) && network.Timeout()
}

// OfCertificate tells whether a connection failed because one side did not accept the other's certificate.
func OfCertificate(err error) bool {
	var (
		certificate *tls.CertificateVerificationError
		authority   x509.UnknownAuthorityError
	)
	return errors.As(err, &certificate) || errors.As(err, &authority) || alerted(err)
}

// WithoutTLS tells whether a server answered a TLS handshake with HTTP.
func WithoutTLS(err error) bool {
	var record tls.RecordHeaderError
	return errors.Is(err, http.ErrSchemeMismatch) || errors.As(err, &record) && string(record.RecordHeader[:]) == "HTTP/"
}

// Untrusted tells whether no trusted authority issued the server's certificate.
func Untrusted(err error) bool {
	var authority x509.UnknownAuthorityError
	return errors.As(err, &authority)
}

// alerted tells whether the server ended TLS with an alert, for which crypto/tls exports no type.
func alerted(err error) bool {
	var operation *net.OpError
	return errors.As(err, &operation) && operation.Op == "remote error"
}

// reworded is an error with a message of our own.
type reworded struct {
	text string
	err  error
}

// Error returns our text.
func (r *reworded) Error() string { return r.text }

// Unwrap returns the error as it came.
func (r *reworded) Unwrap() error { return r.err }

// refusal says once that the connection was refused, and what to do. It names no address: the caller names the server, and
// which of its addresses is tried first changes.
func refusal(err error) error {
	var operation *net.OpError
	if errors.As(err, &operation) && operation.Op == "proxyconnect" {
		return &reworded{"connection refused by the proxy: check its address, and that it runs", err}
	}
	return &reworded{"connection refused: check the host and the port, and that the server runs", err}
}

func networkCause(err error) string {
	var (
		dns         *net.DNSError
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
		authority   x509.UnknownAuthorityError
	)
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return "unknown host"
	case errors.As(err, &dns):
		return "the host's address could not be found"
	case errors.As(err, &certificate), errors.As(err, &authority):
		return "the server's certificate is not trusted"
	case WithoutTLS(err):
		return "the server speaks HTTP without TLS"
	case errors.As(err, &record):
		return "the server does not speak TLS as expected"
	case alerted(err):
		return "the server does not agree to TLS, or to the client's certificate"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF):
		return "the transfer was cut"
	}
	return "the server cannot be reached"
}

// StatusError returns the error for an HTTP answer that is not a success; detail, "" or a word of the server's
// protocol, is shown beside the code.
func StatusError(code int, header http.Header, detail string) *Error {
	shown := strconv.Itoa(code)
	if detail != "" {
		shown += " " + detail
	} else if text := http.StatusText(code); text != "" {
		shown += " " + text
	}
	failure := statusReason(code, shown)
	failure.RetryAfter = retryAfter(header.Get("Retry-After"), time.Now())
	return failure
}

func statusReason(code int, shown string) *Error {
	switch {
	case code == http.StatusNotFound, code == http.StatusGone:
		return Errorf(NotFound, "not found (%s)", shown)
	case code == http.StatusUnauthorized, code == http.StatusForbidden, code == http.StatusProxyAuthRequired:
		return Errorf(Unauthorized, "access denied (%s)", shown)
	case code == http.StatusTooManyRequests:
		return Errorf(RateLimited, "the server asks for fewer requests (%s)", shown)
	case code == http.StatusRequestTimeout, code == http.StatusGatewayTimeout:
		return Errorf(Timeout, "no answer in time (%s)", shown)
	case code >= 500:
		return Errorf(Unreachable, "the server failed (%s)", shown)
	}
	return Errorf(Unreachable, "unexpected answer (%s)", shown)
}

// maxRetryAfter bounds a server's wish, so that no answer silences a source for good.
const maxRetryAfter = time.Hour

// retryAfter reads the header of that name: seconds or an HTTP date (RFC 9110 section 10.2.3).
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(value, 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, maxRetryAfter)
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, min(at.Sub(now), maxRetryAfter))
	}
	return 0
}

// CloseBody closes a body. How it ends does not matter after a failure.
func CloseBody(body io.Closer, failed error) error {
	err := body.Close()
	if failed != nil {
		return nil
	}
	return NetworkError(err)
}

// NotRedirected returns the client with redirects being answers of their own.
func NotRedirected(client *http.Client) *http.Client {
	own := *client
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}
