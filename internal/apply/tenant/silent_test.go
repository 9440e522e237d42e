// SPDX-License-Identifier: Apache-2.0

package tenant_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/apply/tenant/connection"
)

// silent is a server that accepts connections, and never answers the TLS handshake.
type silent struct {
	kubeconfig *tenant.Kubeconfig
	mu         sync.Mutex
	accepted   []net.Conn
	count      int
}

func newSilent(t *testing.T) *silent {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &silent{}
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			accepted, err := listener.Accept()
			if err != nil {
				return
			}
			h.mu.Lock()
			h.accepted = append(h.accepted, accepted)
			h.count++
			h.mu.Unlock()
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		accepting.Wait()
		h.cut()
	})
	if h.kubeconfig, err = tenant.ParseKubeconfig([]byte(kubeconfig(`server: "https://`+listener.Addr().String()+`"`, aToken))); err != nil {
		t.Fatal(err)
	}
	return h
}

// cut closes the connections, which ends the requests that wait for an answer.
func (h *silent) cut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, accepted := range h.accepted {
		_ = accepted.Close()
	}
	h.accepted = nil
}

// connections is how many connections were accepted so far.
func (h *silent) connections() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count
}

// fleet is the workers of two namespaces, one for each silent server.
type fleet struct {
	remotes *tenant.Remotes
	servers []*silent
}

// connections is how many connections all servers accepted so far.
func (f *fleet) connections() (count int) {
	for _, h := range f.servers {
		count += h.connections()
	}
	return count
}

// ask has all workers ask their clusters at once. When so many workers of each namespace have an answer, during is called, and
// the others are released.
func (f *fleet) ask(t *testing.T, namespaces, told int, during func()) {
	t.Helper()
	before := f.connections()
	var workers sync.WaitGroup
	returned := make([]atomic.Int64, namespaces)
	for namespace := range namespaces {
		for _, h := range f.servers {
			client := remoteClient(t, f.remotes, h.kubeconfig, fmt.Sprint("shop-", namespace), "")
			workers.Go(func() {
				if _, err := client.Target(t.Context()); err == nil {
					t.Error("a silent server answered")
				}
				returned[namespace].Add(1)
			})
		}
	}
	held := namespaces * (len(f.servers) - told)
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		for namespace := range namespaces {
			if returned[namespace].Load() < int64(told) {
				return false, nil
			}
		}
		return f.connections() >= before+held, nil
	})
	if err != nil {
		t.Errorf("not as many workers were released as expected: %v", err)
	}
	during()
	for _, h := range f.servers {
		h.cut()
	}
	workers.Wait()
}

// 10 of 60 servers accept connections and never answer. Once that is known, 10 workers that try them again hold 2 places at
// once in their namespace; the other 8 are told the known failure at once, and the 50 healthy servers answer meanwhile.
// Another namespace has places of its own.
func TestS7SilentServersHoldFewWorkers(t *testing.T) {
	const dead, healthy, namespaces = 10, 50, 2
	clock := atomic.Int64{}
	remotes := tenant.NewRemotes(dialAnywhere, tenant.Options{Now: func() time.Time { return time.Unix(clock.Load(), 0) }})
	f := &fleet{remotes: remotes}
	for range dead {
		f.servers = append(f.servers, newSilent(t))
	}
	s := &server{kinds: []string{"ConfigMap"}}
	secured(t, s, "a")

	f.ask(t, namespaces, 0, func() {})
	t.Logf("while nothing is known, %d workers of %d are held", f.connections(), dead*namespaces)
	for round := range 3 {
		clock.Add(120)
		before := f.connections()
		f.ask(t, namespaces, dead-connection.NamespaceProbes, func() {
			for i := range healthy {
				if _, err := remoteClient(t, remotes, kubeconfigOf(t, s.Server, fmt.Sprint("token-", i)), "shop-0", "").Target(t.Context()); err != nil {
					t.Error(err)
				}
			}
			held := f.connections() - before
			t.Logf("round %d: %d workers of %d are held while %d healthy clusters answer", round, held, dead*namespaces, healthy)
			if held > namespaces*connection.NamespaceProbes {
				t.Errorf("%d workers of %d namespaces are held, want %d of each", held, namespaces, connection.NamespaceProbes)
			}
		})
	}
	if figures := remotes.Figures(); figures.Unreachable != dead*namespaces {
		t.Errorf("%d clusters count as unreachable", figures.Unreachable)
	}
}
