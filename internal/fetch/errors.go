// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/satchel-dev/satchel/internal/visible"
)

// Reason says in one word why something could not be fetched, for the caller that decides what to do about it.
type Reason string

const (
	// NotFound means that the server answered and does not have it (or hides it from unauthenticated clients).
	NotFound Reason = "NotFound"
	// Unauthorized means that the server wants credentials, or refuses the ones it got.
	Unauthorized Reason = "Unauthorized"
	// Unreachable means that no usable answer came: unknown host, refused connection, broken TLS, 5xx, cut transfer.
	Unreachable Reason = "Unreachable"
	// Timeout means that the answer did not come in time.
	Timeout Reason = "Timeout"
	// RateLimited means that the server asked for fewer requests; Error.RetryAfter carries its wish.
	RateLimited Reason = "RateLimited"
	// Refused means that Satchel does not do this: a denied address, plain HTTP, a malformed reference.
	Refused Reason = "Refused"
	// LimitExceeded means that the content is larger than a limit of Limits.
	LimitExceeded Reason = "LimitExceeded"
	// InvalidContent means that the bytes are not what they should be: no archive, damaged, unsafe.
	InvalidContent Reason = "InvalidContent"
	// WrittenByAnotherVersion means that a stored file has a format of another version of Satchel.
	WrittenByAnotherVersion Reason = "WrittenByAnotherVersion"
	// DigestMismatch means that the bytes are not the ones that were asked for.
	DigestMismatch Reason = "DigestMismatch"
	// Moved means that the reference no longer points at what was resolved, and the server no longer serves that:
	// resolve again.
	Moved Reason = "Moved"
	// Unverified means that there is no signature that the configured trust accepts. One may be added later.
	Unverified Reason = "Unverified"
)

// Error is what every function of the fetch packages returns when the failure has a known reason. Errors without
// one (a full disk, a cancelled context) are plain.
type Error struct {
	// Reason is the class of the failure.
	Reason Reason
	// Err says what happened, to which object, and what to do.
	Err error
	// RetryAfter is the time for which the server asked to be left alone; 0 when it said nothing.
	RetryAfter time.Duration
}

// Errorf returns an Error with a formatted text; %w works as in fmt.Errorf.
func Errorf(reason Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Err: fmt.Errorf(format, args...)}
}

// Error returns the text of the cause.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Permanent tells that fetching the same content again ends in the same way.
func (e *Error) Permanent() bool {
	switch e.Reason {
	case Refused, LimitExceeded, InvalidContent, DigestMismatch:
		return true
	default:
		return false
	}
}

// ReasonOf returns the reason of the first Error in err's chain, "" when there is none.
func ReasonOf(err error) Reason {
	var typed *Error
	if errors.As(err, &typed) {
		return typed.Reason
	}
	return ""
}

// Describe puts a subject before err's text and keeps its reason and RetryAfter.
func Describe(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	wrapped := fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
	var typed *Error
	if errors.As(err, &typed) {
		return &Error{Reason: typed.Reason, Err: wrapped, RetryAfter: typed.RetryAfter}
	}
	return wrapped
}

// Hints tells what a user may do about a reason.
type Hints map[Reason]string

// Explain is Describe with the hint for err's reason, if there is one, at the end.
func (h Hints) Explain(err error, format string, args ...any) error {
	if hint := h[ReasonOf(err)]; hint != "" {
		var typed *Error
		errors.As(err, &typed)
		err = &Error{Reason: typed.Reason, Err: fmt.Errorf("%w: %s", err, hint), RetryAfter: typed.RetryAfter}
	}
	return Describe(err, format, args...)
}

// TLSHints tell what a user may do about a connection that failed for want of TLS or of trust.
type TLSHints struct {
	PlainHTTP string // the server speaks HTTP without TLS
	Untrusted string // no trusted authority issued the server's certificate
}

// Explain adds the hint for err, if there is one.
func (h TLSHints) Explain(err error) error {
	hint := ""
	switch {
	case WithoutTLS(err):
		hint = h.PlainHTTP
	case Untrusted(err):
		hint = h.Untrusted
	}
	var typed *Error
	if hint == "" || !errors.As(err, &typed) {
		return err
	}
	return &Error{Reason: typed.Reason, Err: fmt.Errorf("%w: %s", err, hint), RetryAfter: typed.RetryAfter}
}

// maxQuoted bounds, in characters, what Quote returns.
const maxQuoted = 256

// Quote returns a name from outside in double quotes and safe to show: at most 256 characters, everything that is
// not visible (control, bidirectional and zero-width characters, broken UTF-8) escaped.
func Quote(s string) string {
	quoted := visible.Escape(strconv.QuoteToGraphic(s[:min(len(s), 4*maxQuoted)]))
	runes := []rune(quoted)
	if len(runes) <= maxQuoted && len(s) <= 4*maxQuoted {
		return quoted
	}
	return string(runes[:min(len(runes), maxQuoted)-2]) + `…"`
}
