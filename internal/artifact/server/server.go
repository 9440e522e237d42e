// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

const (
	// headerTimeout is how long a request may take to arrive.
	headerTimeout = 5 * time.Second
	// idleTimeout is how long a connection may wait for its next request.
	idleTimeout = 9 * time.Second
	// writeTimeout is how long a piece of a body may take to leave.
	writeTimeout = 9 * time.Second
	// maxHeaderBytes bounds a request; the net/http package adds 4 KiB.
	maxHeaderBytes = 8 << 10
	// socketBytes bounds what the kernel holds for a connection. It also decides which link is too slow: about a third of
	// it must leave in writeTimeout for a blocked write to go on, some 20 KiB a second.
	socketBytes = 128 << 10
)

// Server returns a server of the handler on addr, HTTP/1, for plain and for TLS listeners. A connection that sends no complete request within 5
// seconds, waits idle for 9, or takes in nothing of a body for 9, is closed; so is the newest one of a remote address that
// has more than Options.ConnectionsPerAddress.
func (h *Handler) Server(addr string) *http.Server {
	open := &connections{most: h.connections, count: map[netip.Prefix]int{}}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Server{
		Addr:                         addr,
		Handler:                      h,
		ReadHeaderTimeout:            headerTimeout,
		ReadTimeout:                  headerTimeout,
		WriteTimeout:                 writeTimeout,
		IdleTimeout:                  idleTimeout,
		MaxHeaderBytes:               maxHeaderBytes,
		DisableGeneralOptionsHandler: true,
		Protocols:                    protocols,
		ConnState:                    open.observe,
		ConnContext:                  boundSocket,
	}
}

// boundSocket bounds the kernel's memory for a connection.
func boundSocket(ctx context.Context, conn net.Conn) context.Context {
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn()
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetWriteBuffer(socketBytes) //nolint:errcheck // the connection works without it
	}
	return ctx
}

// connections counts the open connections of each remote address.
type connections struct {
	most  int
	mu    sync.Mutex
	count map[netip.Prefix]int
}

// observe is an http.Server.ConnState hook. It closes what is beyond the limit.
func (c *connections) observe(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if c.add(remotePrefix(conn), 1) > c.most {
			conn.Close() //nolint:errcheck // the peer sees it either way
		}
	case http.StateClosed, http.StateHijacked:
		c.add(remotePrefix(conn), -1)
	}
}

func (c *connections) add(from netip.Prefix, n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count[from] += n
	left := c.count[from]
	if left == 0 {
		delete(c.count, from)
	}
	return left
}

// remotePrefix is the address at the other end; of an IPv6 address the 64 bits that one network has to itself.
func remotePrefix(conn net.Conn) netip.Prefix {
	remote, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Prefix{}
	}
	address := remote.Addr().Unmap().WithZone("")
	bits := address.BitLen()
	if address.Is6() {
		bits = 64
	}
	prefix, err := address.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return prefix
}
