// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/satchel-dev/satchel/internal/endpoint"
	"github.com/satchel-dev/satchel/internal/fetch"
)

// Timeouts for a server that does not answer. A fetch as a whole is bounded by its context.
const (
	dialTimeout   = 10 * time.Second
	tlsTimeout    = 10 * time.Second
	headerTimeout = 30 * time.Second
	idleTimeout   = 30 * time.Second // between two reads of a body
	pacePeriod    = 60 * time.Second // of waiting for a body, over which its pace is judged
)

// leastPace is how many bytes a second a body must have, on average over pacePeriod.
const leastPace = 1 << 10

// maxHeaderBytes bounds the header of an answer.
const maxHeaderBytes = 256 << 10

// keptHeaders survive a redirect to another server; everything else may be a secret.
var keptHeaders = []string{"Accept", "Accept-Encoding", "Content-Type", "Git-Protocol", "User-Agent"}

// HTTPClient is Client without anything that a source brings along.
func (p AddressPolicy) HTTPClient(l fetch.Limits) *http.Client { return p.Client(l, Access{}) }

// Client returns a client that reaches only what the policy permits. It uses no environment, follows at most
// l.Redirects redirects, never one from https to http, speaks plain HTTP only to InsecureHosts, sends no credentials,
// custom headers or client certificate to another server than the first one, and does not decompress bodies. The rules
// hold in the client's Transport, so libraries that take only that are bound as well. Failures are *Error with a reason.
//
// Share one client where nothing is brought along: each keeps connections of its own, which have to be closed.
func (p AddressPolicy) Client(l fetch.Limits, a Access) *http.Client {
	to := transports{any: p.transport(a, false)}
	if a.Certificate != nil {
		if server, err := endpoint.Parse(a.Server); err == nil { // a server that cannot be reached gets no certificate
			to.server, to.own = server.On("https"), p.transport(a, true)
		}
	}
	return &http.Client{
		Transport: &guard{policy: p, limits: l, proxied: a.Proxy != nil, idle: idleTimeout, period: pacePeriod, now: time.Now, next: to},
		// The guard decides; without this the client would add a limit of its own.
		CheckRedirect: func(*http.Request, []*http.Request) error { return nil },
	}
}

func (p AddressPolicy) transport(a Access, own bool) *http.Transport {
	t := &http.Transport{
		DialContext:            p.dialer().DialContext,
		TLSClientConfig:        a.tls(own),
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		TLSHandshakeTimeout:    tlsTimeout,
		ResponseHeaderTimeout:  headerTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		MaxIdleConns:           100,
		MaxIdleConnsPerHost:    4,
		IdleConnTimeout:        90 * time.Second,
	}
	if a.Proxy != nil {
		t.Proxy = http.ProxyURL(a.Proxy)
	}
	return t
}

// dialer returns a dialer that asks the policy after name resolution, for each address it is about to connect to.
func (p AddressPolicy) dialer() *net.Dialer {
	return &net.Dialer{
		Timeout: dialTimeout,
		ControlContext: func(ctx context.Context, _, address string, _ syscall.RawConn) error {
			target, err := netip.ParseAddrPort(address)
			if err != nil {
				return fetch.Errorf(fetch.Refused, "connecting to %s: %w", fetch.Quote(address), err)
			}
			return p.checkTarget(ctx, target)
		},
	}
}

// guard applies the rules that need a whole request.
type guard struct {
	policy  AddressPolicy
	limits  fetch.Limits
	proxied bool // the dialer sees the proxy's address only
	idle    time.Duration
	period  time.Duration
	now     func() time.Time
	next    http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(request *http.Request) (*http.Response, error) {
	request, err := g.checked(request)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(request.Context())
	response, err := g.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		cancel(nil)
		return nil, fetch.NetworkError(err)
	}
	response.Body = g.guarded(ctx, cancel, response.Body)
	return response, nil
}

// CloseIdleConnections makes http.Client.CloseIdleConnections work.
func (g *guard) CloseIdleConnections() {
	if closer, ok := g.next.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}

// checked returns the request as it may be sent. Each request that a redirect caused carries the answer that did
// so, which leads back to the first one.
func (g *guard) checked(request *http.Request) (*http.Request, error) {
	first, hops := request, 0
	for first.Response != nil && first.Response.Request != nil {
		first, hops = first.Response.Request, hops+1
	}
	if hops > g.limits.Redirects {
		return nil, fetch.Errorf(fetch.Refused, "stopped after %d redirects", g.limits.Redirects)
	}
	if err := errors.Join(g.checkScheme(request), g.checkHost(request)); err != nil {
		return nil, err
	}
	if hops == 0 || endpoint.SameOrigin(request.URL, first.URL) {
		return request, nil
	}
	stripped := request.Clone(request.Context())
	for name := range stripped.Header {
		if !slices.Contains(keptHeaders, name) {
			stripped.Header.Del(name)
		}
	}
	return stripped, nil
}

func (g *guard) checkScheme(request *http.Request) error {
	switch request.URL.Scheme {
	case "https":
		return nil
	case "http":
	default:
		return fetch.Errorf(fetch.Refused, "the scheme %s is not supported", fetch.Quote(request.URL.Scheme))
	}
	if previous := request.Response; previous != nil && previous.Request != nil && previous.Request.URL.Scheme == "https" {
		return fetch.Errorf(fetch.Refused, "the server redirects from https to http, which is refused")
	}
	if !g.policy.Insecure(request.URL.Host) {
		return fetch.Errorf(fetch.Refused, "plain HTTP to %s is refused: use https, or list the host in --insecure-hosts",
			fetch.Quote(request.URL.Host))
	}
	return nil
}

// checkHost checks the host as it is written. The dialer checks the addresses it resolves to; behind a proxy, they are not
// checked.
func (g *guard) checkHost(request *http.Request) error {
	if !g.proxied {
		return g.policy.Protected.checkName(request.URL.Hostname())
	}
	return g.policy.checkHost(request.Context(), request.URL.Hostname(), portNumber(request.URL.Port(), request.URL.Scheme))
}

// checkHost refuses addresses that a proxy would be asked for by number, and the names of this machine and of protected
// servers.
func (p AddressPolicy) checkHost(ctx context.Context, host string, port uint16) error {
	if err := p.Protected.checkName(host); err != nil {
		return err
	}
	host = canonicalHost(host)
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		host = "127.0.0.1"
	}
	if address, err := netip.ParseAddr(host); err == nil {
		return p.checkTarget(ctx, netip.AddrPortFrom(address, port))
	}
	if last := host[strings.LastIndex(host, ".")+1:]; last != "" && (last[0] >= '0' && last[0] <= '9') {
		return fetch.Errorf(fetch.Refused, "the host %s is a number in an unusual spelling: write the address as usual", fetch.Quote(host))
	}
	return nil
}

// checkTarget decides about one connection.
func (p AddressPolicy) checkTarget(ctx context.Context, target netip.AddrPort) error {
	if err := p.Check(target.Addr()); err != nil {
		return err
	}
	return p.Protected.checkAddress(ctx, target)
}

// guardedBody ends a body that stands still or crawls, and gives its failures reasons. Only the time in which Read waits
// counts, so that no server is blamed for a slow reader.
type guardedBody struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	guard  *guard
	timer  *time.Timer
	waited time.Duration // of the present period
	came   int64         // bytes in the present period
}

func (g *guard) guarded(ctx context.Context, cancel context.CancelCauseFunc, body io.ReadCloser) *guardedBody {
	stalled := fetch.Errorf(fetch.Timeout, "the server sent nothing for %v", g.idle)
	timer := time.AfterFunc(g.idle, func() { cancel(stalled) })
	timer.Stop()
	return &guardedBody{ReadCloser: body, ctx: ctx, cancel: cancel, guard: g, timer: timer}
}

// Read implements io.Reader.
func (b *guardedBody) Read(p []byte) (int, error) {
	began := b.guard.now()
	b.timer.Reset(b.guard.idle)
	n, err := b.ReadCloser.Read(p)
	b.timer.Stop()
	b.waited, b.came = b.waited+b.guard.now().Sub(began), b.came+int64(n)
	switch {
	case err == nil:
		return n, b.checkPace()
	case err == io.EOF:
		return n, err
	case fetch.ReasonOf(context.Cause(b.ctx)) != "":
		return n, context.Cause(b.ctx)
	}
	return n, fetch.NetworkError(fmt.Errorf("reading the answer: %w", err))
}

// checkPace ends the transfer when too little came in a period, and begins the next one.
func (b *guardedBody) checkPace() error {
	if b.waited < b.guard.period {
		return nil
	}
	if float64(b.came) < leastPace*b.waited.Seconds() {
		slow := fetch.Errorf(fetch.Timeout, "the server is too slow: it sent %d bytes in %v, where at least %d a second are expected",
			b.came, b.waited.Round(time.Second), leastPace)
		b.cancel(slow)
		return slow
	}
	b.waited, b.came = 0, 0
	return nil
}

// Close implements io.Closer and ends the transfer.
func (b *guardedBody) Close() error {
	b.timer.Stop()
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}
