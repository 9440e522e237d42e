// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// line passes connections on to a server, and can be slow or cut.
type line struct {
	listener net.Listener
	to       string
	from     net.IP // of which the server sees connections come; nil for any
	latency  atomic.Int64
	broken   atomic.Bool
}

// newLine listens on the loopback until the process ends.
func newLine(to string, from net.IP) (*line, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &line{listener: listener, to: to, from: from}
	go l.serve()
	return l, nil
}

func (l *line) addr() string { return l.listener.Addr().String() }

// slow has each answer take that much longer.
func (l *line) slow(latency time.Duration) { l.latency.Store(int64(latency)) }

// cut drops all traffic from now on, without closing connections.
func (l *line) cut() { l.broken.Store(true) }

func (l *line) serve() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		go l.pass(client)
	}
}

func (l *line) pass(client net.Conn) {
	dialer := net.Dialer{}
	if l.from != nil {
		dialer.LocalAddr = &net.TCPAddr{IP: l.from}
	}
	server, err := dialer.Dial("tcp", l.to)
	if err != nil {
		_ = client.Close()
		return
	}
	go l.copy(server, client, func() time.Duration { return 0 })
	l.copy(client, server, func() time.Duration { return time.Duration(l.latency.Load()) })
}

// piece is what was read, and when it is due.
type piece struct {
	data []byte
	due  time.Time
}

// copy passes on what it reads, late by the latency: what follows is not later for it. Over a
// line that is cut nothing goes, not even the news that the other end is closed.
func (l *line) copy(to, from net.Conn, latency func() time.Duration) {
	pieces := make(chan piece, 1024)
	go func() {
		defer close(pieces)
		for {
			buffer := make([]byte, 32<<10)
			n, err := from.Read(buffer)
			if n > 0 {
				pieces <- piece{buffer[:n], time.Now().Add(latency())}
			}
			if err != nil {
				return
			}
		}
	}()
	failed := false
	for p := range pieces {
		if !failed && !l.broken.Load() {
			time.Sleep(time.Until(p.due))
			_, err := to.Write(p.data)
			failed = err != nil
		}
	}
	if !l.broken.Load() {
		_, _ = to.Close(), from.Close()
	}
}

// behind is the kubeconfig of a controller that reaches the API server over a line of its own,
// from an address of its own.
func (r *rig) behind(t *testing.T, controller, name string, from net.IP) (*line, string) {
	t.Helper()
	l, err := newLine(r.proxy.server.Listener.Addr().String(), from)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(r.File(controller + ".kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	config.Clusters["c"].Server = "https://" + l.addr()
	file := r.File(name + ".kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return l, "--kubeconfig=" + file
}
