// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"time"
)

// Ports come from below the range that kernels give to outgoing connections, so that none of those takes
// the port of a component while it is down.
const (
	firstPort = 20000
	lastPort  = 29999
)

// ports are the TCP ports of a control plane, on 127.0.0.1. They are kept with its state.
type ports struct {
	Etcd, EtcdPeer, APIServer, ControllerManager, Scheduler, Kwok int
}

// loadPorts reads the ports from the file, or picks free ones and writes them there.
func loadPorts(path string) (ports, error) {
	var p ports
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return p, err
	}
	taken := map[int]bool{}
	for _, port := range []*int{&p.Etcd, &p.EtcdPeer, &p.APIServer, &p.ControllerManager, &p.Scheduler, &p.Kwok} {
		if *port, err = freePort(taken); err != nil {
			return p, err
		}
	}
	if data, err = json.Marshal(p); err != nil {
		return p, err
	}
	return p, os.WriteFile(path, data, 0o600)
}

// freePort picks a port on which nothing listens and which is not taken, and takes it.
func freePort(taken map[int]bool) (int, error) {
	for range 1000 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		if !taken[port] && portFree(port) {
			taken[port] = true
			return port, nil
		}
	}
	return 0, fmt.Errorf("finding a free port between %d and %d on 127.0.0.1: end what listens there", firstPort, lastPort)
}

// FreeAddress returns an address on 127.0.0.1 where nothing listens, for a server that is started later: no outgoing
// connection gets its port meanwhile.
func FreeAddress() (string, error) {
	port, err := freePort(map[int]bool{})
	return address(port), err
}

func portFree(port int) bool {
	listener, err := net.Listen("tcp", address(port))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

// waitPortFree waits a while for a port: its last owner may be about to exit.
func waitPortFree(ctx context.Context, port int) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for !portFree(port) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("port %d is taken: end what listens there, or use another directory", port)
		case <-time.After(healthPoll):
		}
	}
	return nil
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func url(port int) string { return "https://" + address(port) }
