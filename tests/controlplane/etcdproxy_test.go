// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"io"
	"net"
	"sync/atomic"
	"testing"
)

// relay returns an Options.EtcdProxy that counts connections.
func relay(t *testing.T, connections *atomic.Int64) func(string) (string, error) {
	return func(etcd string) (string, error) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		t.Cleanup(func() { _ = listener.Close() })
		go func() {
			for {
				client, err := listener.Accept()
				if err != nil {
					return
				}
				connections.Add(1)
				go forward(client, etcd)
			}
		}()
		return listener.Addr().String(), nil
	}
}

func forward(client net.Conn, to string) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	go func() { _, _ = io.Copy(server, client) }()
	_, _ = io.Copy(client, server)
}
