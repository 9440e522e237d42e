// SPDX-License-Identifier: Apache-2.0

package server

import (
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/storage"
	"github.com/satchel-dev/satchel/internal/fetch"
)

const (
	// sendBytes is how much is sent at once; each piece has writeTimeout to leave.
	sendBytes = 16 << 10
	// defaultConnections is how many connections one remote address may hold open by default.
	defaultConnections = 2048
	// retryAfterSeconds is when a consumer should ask again for a file that is there but must not be served.
	retryAfterSeconds = 10
)

// Options say who is served.
type Options struct {
	// Readers decides which clients are served; nil means all.
	Readers Readers
	// Catalogs serves catalogs; nil means none.
	Catalogs Catalogs
	// ConnectionsPerAddress is how many connections one remote address (for IPv6 its /64) may hold open; 0 means 2048.
	// Consumers behind one address translation share it.
	ConnectionsPerAddress int
}

// catalogsPrefix is the beginning of the paths of catalogs.
const catalogsPrefix = "/catalogs/"

// Catalogs serves the paths below /catalogs/.
type Catalogs interface {
	// Route returns the namespace that a client has to be permitted to read, "" for none, and the function that answers a GET or
	// HEAD. The error of that function has the reason fetch.NotFound for what is not there; nothing was answered then.
	Route(path string) (namespace string, serve func(http.ResponseWriter, *http.Request) error, ok bool)
}

// Handler serves the artifacts of a store and catalogs, and nothing else: GET and HEAD of exact paths, with Range and If-None-Match. Everything that
// is not the path of an artifact, folders included, is 404, whatever exists. A damaged file is
// never served; the answer is 503 until it was stored again. A download goes on when its file is removed meanwhile. With
// Options.Readers a request needs a token of a user who may read the namespace: else the answer is 401 or 403, whatever
// exists, and 503 where that cannot be found out.
type Handler struct {
	store       *storage.Store
	readers     Readers
	catalogs    Catalogs
	connections int
	buffers     sync.Pool

	requests, denied, bytes atomic.Int64
}

// NewHandler returns a handler for the artifacts of a store.
func NewHandler(store *storage.Store, o Options) *Handler {
	h := &Handler{store: store, readers: o.Readers, catalogs: o.Catalogs, connections: o.ConnectionsPerAddress}
	h.buffers.New = func() any { return new([sendBytes]byte) }
	if h.connections <= 0 {
		h.connections = defaultConnections
	}
	return h
}

// Stats are figures of a Handler.
type Stats struct {
	// Requests is how many requests were answered, Denied how many of them with 401 or 403, Served how many bytes of
	// artifacts were sent.
	Requests, Denied, Served int64
}

// Stats returns the figures of now.
func (h *Handler) Stats() Stats {
	return Stats{Requests: h.requests.Load(), Denied: h.denied.Load(), Served: h.bytes.Load()}
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.requests.Add(1)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		h.refuse(w, http.StatusMethodNotAllowed)
		return
	}
	if h.catalogs != nil && strings.HasPrefix(r.URL.EscapedPath(), catalogsPrefix) {
		h.serveCatalog(w, r)
		return
	}
	file, ok := requestedFile(r)
	namespace := ""
	if ok {
		namespace = artifact.NamespaceOf(file)
	}
	if status := h.permit(r, namespace); status != 0 {
		h.refuseReader(w, status)
		return
	}
	if !ok {
		h.refuse(w, http.StatusNotFound)
		return
	}
	opened, digest, err := h.store.OpenFile(r.Context(), file)
	if err != nil {
		h.refuseBroken(w, err)
		return
	}
	defer opened.Close() //nolint:errcheck // only read from
	h.send(w, r, opened, digest)
}

// serveCatalog answers a request for a catalog. One that all namespaces share is for every authenticated client.
func (h *Handler) serveCatalog(w http.ResponseWriter, r *http.Request) {
	namespace, serve, ok := h.catalogs.Route(r.URL.EscapedPath())
	if status := h.permit(r, namespace); status != 0 {
		h.refuseReader(w, status)
		return
	}
	if !ok {
		h.refuse(w, http.StatusNotFound)
		return
	}
	patient, release := h.patient(w)
	defer release()
	if err := serve(patient, r); err != nil {
		h.refuseBroken(w, err)
	}
}

// requestedFile returns the artifact that a request names in the one spelling that there is for it.
func requestedFile(r *http.Request) (string, bool) {
	file, ok := strings.CutPrefix(r.URL.EscapedPath(), "/")
	return file, ok && artifact.IsArchive(file)
}

// send sends an open file. Its digest is a strong validator.
func (h *Handler) send(w http.ResponseWriter, r *http.Request, opened *os.File, digest string) {
	w.Header().Set("Content-Type", "application/gzip")
	w.Header().Set("Etag", `"`+digest+`"`)
	patient, release := h.patient(w)
	defer release()
	// Without a time ServeContent leaves out Last-Modified, which is weaker than the digest.
	http.ServeContent(patient, r, "", time.Time{}, opened)
}

// patient wraps a writer of an answer. The caller releases it.
func (h *Handler) patient(w http.ResponseWriter) (*patientWriter, func()) {
	buffer := h.buffers.Get().(*[sendBytes]byte) //nolint:errcheck,forcetypeassert // the pool holds nothing else
	patient := &patientWriter{ResponseWriter: w, control: http.NewResponseController(w), buffer: buffer[:], sent: &h.bytes}
	patient.extend()
	return patient, func() { h.buffers.Put(buffer) }
}

// refuseReader answers a client that may not read, or that cannot be authenticated now.
func (h *Handler) refuseReader(w http.ResponseWriter, status int) {
	if status != http.StatusServiceUnavailable {
		h.denied.Add(1)
	}
	switch status {
	case http.StatusUnauthorized:
		w.Header().Set("Www-Authenticate", "Bearer")
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", strconv.Itoa(retryAfterSeconds))
	}
	h.refuse(w, status)
}

func (h *Handler) refuseBroken(w http.ResponseWriter, err error) {
	if fetch.ReasonOf(err) == fetch.NotFound {
		h.refuse(w, http.StatusNotFound)
		return
	}
	w.Header().Set("Retry-After", strconv.Itoa(retryAfterSeconds))
	h.refuse(w, http.StatusServiceUnavailable)
}

// refuse answers with a status and its standard text, which says nothing about what exists.
func (h *Handler) refuse(w http.ResponseWriter, status int) {
	http.Error(w, http.StatusText(status), status)
}

// patientWriter gives each piece of a body its own time to leave, so that a slow link is served to the end and one that
// stands still is cut.
type patientWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	buffer  []byte
	sent    *atomic.Int64
}

// Write implements io.Writer.
func (w *patientWriter) Write(p []byte) (int, error) {
	w.extend()
	n, err := w.ResponseWriter.Write(p)
	w.sent.Add(int64(n))
	return n, err
}

// extend starts the time for the next piece. A connection that cannot do that keeps the time-out of the server.
func (w *patientWriter) extend() {
	w.control.SetWriteDeadline(time.Now().Add(writeTimeout)) //nolint:errcheck // see above
}

// ReadFrom implements io.ReaderFrom with one small buffer, where io.Copy would allocate one for each download.
func (w *patientWriter) ReadFrom(from io.Reader) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{from}, w.buffer)
}
