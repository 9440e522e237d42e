// SPDX-License-Identifier: Apache-2.0

package upload

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/satchel-dev/satchel/internal/fetch"
)

const (
	// headerTimeout is how long a request may take to arrive, without its body.
	headerTimeout = 5 * time.Second
	// idleTimeout is how long a connection may wait for its next request.
	idleTimeout = 9 * time.Second
	// answerTimeout is how long an answer may take to leave.
	answerTimeout = 9 * time.Second
	// maxHeaderBytes bounds a request without its body.
	maxHeaderBytes = 16 << 10
	// busyPause is the time after which a client that was refused may try again.
	busyPause = 2 * time.Second
)

// Options are what the server asks its owner. Errors that are not an *Error are not shown to clients.
type Options struct {
	// Identify returns the user of a token, in the form that Accept takes. The error is an *Error, or says that the token
	// could not be reviewed.
	Identify func(ctx context.Context, token string) (user string, err error)
	// Accept tells whether the user may upload this here and now; nil when so, else an *Error, or why it could not be found
	// out. Nothing is said about a BundleSource before it is known that the user may upload for it.
	Accept func(ctx context.Context, user string, t Target) error
	// Present tells whether the content is stored.
	Present func(ctx context.Context, t Target) (bool, error)
	// Store unpacks the gzip archive, and stores it when it has the digest.
	Store func(ctx context.Context, t Target, archive io.Reader) error
	// Observe is told how each request ended, and how many bytes of content came.
	Observe func(ended Reason, came int64)
	// Tell is told of errors that clients are not shown.
	Tell func(t Target, err error)
	// PerNamespace is how many uploads of one namespace are taken in at once, and never more than half of Most, how many of
	// all are.
	PerNamespace, Most int
	// Pace bounds how slowly content may come; the zero value stands for DefaultPace.
	Pace Pace
}

// Server returns a server on addr, HTTP/1 without TLS: it is meant for the loopback interface of a Pod, which a port forward
// leads to. A GET tells whether content is there, a PUT uploads it. No request begins to send before it is known to be
// welcome where its sender waits for that (Expect: 100-continue), as Client does.
func Server(addr string, o Options) *http.Server {
	if o.Pace == (Pace{}) {
		o.Pace = DefaultPace
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Server{
		Addr:                         addr,
		Handler:                      &handler{options: o, slots: newSlots(o.PerNamespace, o.Most)},
		ReadHeaderTimeout:            headerTimeout,
		ReadTimeout:                  headerTimeout, // of a body: see paced
		IdleTimeout:                  idleTimeout,
		MaxHeaderBytes:               maxHeaderBytes,
		DisableGeneralOptionsHandler: true,
		Protocols:                    protocols,
	}
}

type handler struct {
	options Options
	slots   *slots
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	body := h.options.Pace.pacedBody(r.Body, control)
	outcome := h.serve(r, body)
	h.options.Observe(outcome.Reason, body.total)
	control.SetWriteDeadline(time.Now().Add(answerTimeout)) //nolint:errcheck // without it the answer has no bound of its own
	Answer(w, outcome)
}

// serve does what a request asks for.
func (h *handler) serve(r *http.Request, body *paced) *Error {
	target, ok := targetOf(r.URL.EscapedPath())
	if !ok || r.Method != http.MethodGet && r.Method != http.MethodPut {
		return Errorf(BadRequest, "this is no upload: PUT or GET /upload/NAMESPACE/NAME/sha256:HEX, as satchel run does")
	}
	ctx, cancel := context.WithTimeoutCause(r.Context(), h.options.Pace.Longest, errLongest)
	defer cancel()
	outcome, err := h.upload(ctx, r, target, body)
	if err != nil {
		outcome = h.failure(target, err)
	}
	return outcome
}

func (h *handler) upload(ctx context.Context, r *http.Request, target Target, body *paced) (*Error, error) {
	if err := h.admit(ctx, r.Header, target); err != nil {
		return nil, err
	}
	present, err := h.options.Present(ctx, target)
	switch {
	case err != nil:
		return nil, err
	case present:
		return Errorf(Present, "%s has this content already", target), nil
	case r.Method == http.MethodGet:
		return Errorf(Absent, "%s does not have this content yet", target), nil
	}
	done, ok := h.slots.take(target.Namespace)
	if !ok {
		return nil, &Error{Reason: Busy, Message: "enough uploads are under way here; it is tried again", RetryAfter: busyPause}
	}
	defer done()
	if err := h.options.Store(ctx, target, body); err != nil {
		return nil, body.explain(ctx, err)
	}
	return Errorf(Stored, "%s has this content now", target), nil
}

// admit finds out who asks, and whether that one may.
func (h *handler) admit(ctx context.Context, header http.Header, target Target) error {
	token, ok := bearerToken(header)
	if !ok {
		return Errorf(Unauthenticated, "a token is needed: of a ServiceAccount of the namespace %s, with the audience %s", target.Namespace, Audience)
	}
	user, err := h.options.Identify(ctx, token)
	if err != nil {
		return err
	}
	return h.options.Accept(ctx, user, target)
}

// failure is what a client is told of an error. Internal errors go to the log.
func (h *handler) failure(target Target, err error) *Error {
	var said *Error
	var typed *fetch.Error
	switch {
	case errors.As(err, &said):
		return said
	case errors.As(err, &typed):
		return Errorf(contentReason(typed.Reason), "%s", typed.Error())
	}
	h.options.Tell(target, err)
	return &Error{Reason: Unavailable, Message: "the source controller could not do it, and says why in its log", RetryAfter: busyPause}
}

// contentReason says of a reason of the fetch packages what it means for an upload.
func contentReason(reason fetch.Reason) Reason {
	switch reason {
	case fetch.LimitExceeded:
		return LimitExceeded
	case fetch.DigestMismatch:
		return DigestMismatch
	default:
		return InvalidContent
	}
}

// Answer answers a request. After a failure the connection is closed, for the rest of the content may still be on its way.
func Answer(w http.ResponseWriter, outcome *Error) {
	status := statuses[outcome.Reason]
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if status >= http.StatusBadRequest && outcome.Reason != Absent {
		w.Header().Set("Connection", "close")
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("Www-Authenticate", "Bearer")
	}
	if outcome.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(max(1, int(outcome.RetryAfter/time.Second))))
	}
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(answer{outcome.Reason, outcome.Message}) //nolint:errcheck,errchkjson // a client that is gone needs no answer
}
