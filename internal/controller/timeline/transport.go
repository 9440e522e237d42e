// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// transport ends watches from before the storage went back in time. A request that continues
// from an older resource version is answered with 410 Expired, like a compacted version, so
// that the client lists everything again.
type transport struct {
	next  http.RoundTripper
	guard *Guard
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet {
		return t.send(request)
	}
	query := request.URL.Query()
	watches := query.Get("watch") == "true" || query.Get("watch") == "1"
	collection, from := nameOf(request, query), query.Get("resourceVersion")
	continues := from != "" && from != "0"
	if continues && t.guard.expired(collection, knownRevision(request, from)) {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return expired(request), nil
	}
	epoch := t.guard.epoch()
	limited := query.Get("limit") == "1" // the request of look, which does not list the collection
	response, err := t.send(request)
	if err != nil && request.Context().Err() == nil && !limited {
		t.guard.disturb()
	}
	if err != nil || response.StatusCode != http.StatusOK {
		return response, err
	}
	if !continues && !limited {
		t.guard.listed(collection, epoch)
	}
	if watches {
		response.Body = t.guard.follow(request.Context(), response.Body, epoch, timeoutOf(query))
	}
	return response, nil
}

// send does a request, and notes the time of the answer.
func (t transport) send(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err == nil {
		t.guard.stated(request, response)
	}
	return response, err
}

// nameOf identifies what a client follows: a collection, its selectors, and the
// impersonated user.
func nameOf(request *http.Request, query url.Values) string {
	return strings.Join([]string{request.URL.Host, request.URL.Path, query.Get("labelSelector"), query.Get("fieldSelector"), request.Header.Get("Impersonate-User")}, "\n")
}

// knownRevision is the revision of the storage that a client of our own kinds knows and continues from; 0 for other kinds, which
// may have a storage of their own.
func knownRevision(request *http.Request, from string) uint64 {
	revision, err := strconv.ParseUint(from, 10, 64)
	if err != nil || !strings.HasPrefix(request.URL.Path, "/apis/"+v1alpha1.GroupVersion.Group+"/") {
		return 0
	}
	return revision
}

// expired tells that a collection was not listed since the storage went back in time. Otherwise the storage had at least the known
// revision.
func (g *Guard) expired(collection string, known uint64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.again != nil && !g.again[collection] {
		return true
	}
	g.highest = max(g.highest, known)
	return false
}

// epoch counts how often the storage went back in time.
func (g *Guard) epoch() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.rewinds
}

// listed records that a collection was listed by a request that began in an epoch.
func (g *Guard) listed(collection string, epoch int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.again != nil && g.rewinds == epoch {
		g.again[collection] = true
	}
}

// timeoutOf is how long the API server keeps a watch open; 0 if the client does not say so.
func timeoutOf(query url.Values) time.Duration {
	seconds, err := strconv.Atoi(query.Get("timeoutSeconds"))
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// follow ends a watch when the storage goes back in time; at once if that happened since
// the watch was requested.
func (g *Guard) follow(ctx context.Context, body io.ReadCloser, epoch int, timeout time.Duration) io.ReadCloser {
	s := &stream{ReadCloser: body, guard: g, expected: g.now().Add(timeout - early)}
	s.canceled = func() bool { return s.ended.Load() || ctx.Err() != nil }
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.rewinds != epoch {
		s.end()
		return s
	}
	g.open[s] = struct{}{}
	return s
}

// early is how much before its timeout a watch may end and still count as timed out.
const early = 5 * time.Second

// stream is the answer to a watch.
type stream struct {
	io.ReadCloser
	guard    *Guard
	expected time.Time   // when the API server ends the watch by itself
	ended    atomic.Bool // by us, or by the client
	canceled func() bool // tells that no client waits for it any more
	once     sync.Once
	err      error
}

// Read implements io.Reader. A watch that ends early is a disturbance.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if err != nil && !s.canceled() && s.guard.now().Before(s.expected) {
		s.guard.disturb()
	}
	return n, err
}

// Close implements io.Closer.
func (s *stream) Close() error {
	s.guard.mu.Lock()
	delete(s.guard.open, s)
	s.guard.mu.Unlock()
	s.end()
	return s.err
}

// end closes the stream, which ends the watch for its reader.
func (s *stream) end() {
	s.ended.Store(true)
	s.once.Do(func() { s.err = s.ReadCloser.Close() })
}

// expired is the API server's answer for a compacted resource version.
func expired(request *http.Request) *http.Response {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Reason: metav1.StatusReasonExpired, Code: http.StatusGone,
		Message: "the storage went back in time: the resource version is older than that",
	}
	body, err := json.Marshal(status)
	if err != nil {
		body = nil // a Status of strings and numbers can be encoded
	}
	return &http.Response{
		StatusCode: http.StatusGone, Status: strconv.Itoa(http.StatusGone) + " " + http.StatusText(http.StatusGone),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: request, ContentLength: int64(len(body)),
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(body))),
	}
}
