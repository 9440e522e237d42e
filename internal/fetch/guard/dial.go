// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// Dialer returns a function that connects as Client does, for protocols other than HTTP: only to addresses that the
// policy permits, judged after name resolution, and through a's proxy when it has one. The addresses behind a proxy are
// found by the proxy, so that of them only those written as numbers are judged.
func (p AddressPolicy) Dialer(a Access) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, fetch.Errorf(fetch.Refused, "connecting to %s: %w", fetch.Quote(address), err)
		}
		if a.Proxy == nil {
			if err := p.Protected.checkName(host); err != nil {
				return nil, err
			}
			conn, err := p.dialer().DialContext(ctx, network, address)
			return conn, fetch.NetworkError(err)
		}
		if err := p.checkHost(ctx, host, portNumber(port, "")); err != nil {
			return nil, err
		}
		return p.dialThrough(ctx, a.Proxy, network, address)
	}
}

// dialThrough asks an HTTP proxy for a connection.
func (p AddressPolicy) dialThrough(ctx context.Context, proxy *url.URL, network, address string) (net.Conn, error) {
	if proxy.Scheme != "http" {
		return nil, fetch.Errorf(fetch.Refused, "a proxy with the scheme %s is not supported here: use one with http", fetch.Quote(proxy.Scheme))
	}
	port := proxy.Port()
	if port == "" {
		port = "80"
	}
	conn, err := p.dialer().DialContext(ctx, network, net.JoinHostPort(proxy.Hostname(), port))
	if err != nil {
		return nil, fetch.Describe(fetch.NetworkError(err), "connecting to the proxy")
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	through, err := connectThrough(conn, proxy, address)
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close()
		return nil, fetch.Describe(fetch.NetworkError(err), "asking the proxy for a connection")
	}
	return through, nil
}

// connectThrough turns a connection to a proxy into one to an address.
func connectThrough(conn net.Conn, proxy *url.URL, address string) (net.Conn, error) {
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{}}
	if user := proxy.User; user != nil {
		password, _ := user.Password()
		both := base64.StdEncoding.EncodeToString([]byte(user.Username() + ":" + password))
		request.Header.Set("Proxy-Authorization", "Basic "+both)
	}
	if err := errors.Join(conn.SetDeadline(time.Now().Add(headerTimeout)), request.Write(conn)); err != nil {
		return nil, err
	}
	head := &io.LimitedReader{R: conn, N: maxHeaderBytes}
	reader := bufio.NewReader(head)
	response, err := http.ReadResponse(reader, request)
	if err != nil {
		return nil, err
	}
	if err := response.Body.Close(); err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fetch.StatusError(response.StatusCode, response.Header, "")
	}
	early, err := reader.Peek(reader.Buffered()) // what the server said while the proxy's answer was read
	if err != nil {
		return nil, err
	}
	return &tunneled{Conn: conn, early: early}, conn.SetDeadline(time.Time{})
}

// tunneled is a connection of which the beginning was read already.
type tunneled struct {
	net.Conn
	early []byte
}

// Read implements net.Conn.
func (t *tunneled) Read(p []byte) (int, error) {
	if len(t.early) > 0 {
		n := copy(p, t.early)
		t.early = t.early[n:]
		return n, nil
	}
	return t.Conn.Read(p)
}

// Paced ends a transfer that stands still or crawls, by the rules that hold for the bodies of Client: cancel is called with
// the reason, which the read returns as well. What cancel does has to end a read that waits.
func Paced(ctx context.Context, cancel context.CancelCauseFunc, body io.ReadCloser) io.ReadCloser {
	g := &guard{idle: idleTimeout, period: pacePeriod, now: time.Now}
	return g.guarded(ctx, cancel, body)
}
