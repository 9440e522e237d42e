// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/util/cache"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/satchel-dev/satchel/internal/apply/tenant/connection"
	"github.com/satchel-dev/satchel/internal/apply/tenant/discovery"
)

// mostAccountsACluster is how many clients of one remote cluster are cached.
const mostAccountsACluster = 32

// Dial connects to an address of a remote cluster's API server. It decides, after
// name resolution, whether the connection is allowed.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Remotes makes and caches the clients of remote clusters. Namespaces share
// nothing: a tenant's server affects only its own namespace. On a remote
// cluster everything, discovery included, is done as the account; the controller
// has no identity there. It is safe for concurrent use.
type Remotes struct {
	dial    Dial
	options Options

	mu       sync.Mutex
	clusters *cache.LRUExpireCache
	shares   *cache.LRUExpireCache // by namespace
	refused  atomic.Uint64
}

// Figures count remote clusters and refused answers, for metrics.
type Figures struct {
	Unreachable int    // clusters to which no requests are sent at the moment
	Refused     uint64 // answers that exceeded the limit
}

// Figures returns the current figures.
func (r *Remotes) Figures() Figures {
	figures := Figures{Refused: r.refused.Load()}
	for _, key := range r.clusters.Keys() {
		kept, found := r.clusters.Get(key)
		if cluster, ok := kept.(*remote); found && ok && cluster.breaker.Open() {
			figures.Unreachable++
		}
	}
	return figures
}

// NewRemotes makes an empty collection, of at most Options.Clients clusters: one for each pair of a
// namespace and a kubeconfig. All connections are made by dial.
func NewRemotes(dial Dial, o Options) *Remotes {
	o = o.defaulted()
	return &Remotes{
		dial: dial, options: o,
		clusters: cache.NewLRUExpireCacheWithClock(o.Clients, clock(o.Now)), shares: cache.NewLRUExpireCacheWithClock(o.Clients, clock(o.Now)),
	}
}

// Client returns the client for the cluster of a kubeconfig in a namespace. Without
// an account it acts as the kubeconfig's user, else it impersonates that ServiceAccount in the
// namespace of the same name there. It sends no request. Another kubeconfig
// makes another client.
func (r *Remotes) Client(of *Kubeconfig, namespace, account string) (*Client, error) {
	id := Identity{Namespace: namespace, ServiceAccount: account, Cluster: of.digest, Host: of.Host()}
	if err := id.validateRemote(); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	cluster, err := r.cluster(of, namespace)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to %s: %w", of.Host(), err)
	}
	if kept, found := cluster.clients.Get(account); found {
		if client, ok := kept.(*Client); ok {
			return client, nil
		}
	}
	client, err := cluster.client(id, r.options)
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", id, err)
	}
	cluster.clients.Add(account, client, r.options.ClientTTL)
	return client, nil
}

// remote is one cluster for one namespace: its connections, and whether it answers.
type remote struct {
	config  *rest.Config
	server  http.RoundTripper
	breaker *connection.Breaker
	clients *cache.LRUExpireCache // by account
	// decoding is held while a large answer is decoded, which takes many times its size.
	decoding *sync.Mutex
}

func (r *Remotes) cluster(of *Kubeconfig, namespace string) (*remote, error) {
	key := [2]string{namespace, of.digest}
	if kept, found := r.clusters.Get(key); found {
		if cluster, ok := kept.(*remote); ok {
			return cluster, nil
		}
	}
	config := prepared(of.config, r.options)
	config.WrapTransport = r.options.Wrap
	connections, err := r.connections(config)
	if err != nil {
		return nil, err
	}
	share := r.share(namespace)
	breaker := &connection.Breaker{Host: of.Host(), Next: connections, Now: r.options.Now, Probes: share.probes}
	made := &remote{
		config:   config,
		breaker:  breaker,
		server:   connection.RemoteTransport{Next: breaker, Host: of.Host(), Room: share.room, Refused: &r.refused},
		decoding: &sync.Mutex{},
		clients:  cache.NewLRUExpireCacheWithClock(mostAccountsACluster, clock(r.options.Now)),
	}
	r.clusters.Add(key, made, r.options.ClientTTL)
	return made, nil
}

// share is what all remote clusters of a namespace share.
type share struct {
	room   *semaphore.Weighted // of large answers
	probes *semaphore.Weighted // of clusters that do not answer
}

// share returns that of a namespace, and keeps it for as long as a cluster that is made now.
func (r *Remotes) share(namespace string) *share {
	kept, _ := r.shares.Get(namespace)
	found, ok := kept.(*share)
	if !ok {
		found = &share{room: semaphore.NewWeighted(connection.NamespaceRoom), probes: semaphore.NewWeighted(connection.NamespaceProbes)}
	}
	r.shares.Add(namespace, found, r.options.ClientTTL)
	return found
}

// connections never go through a proxy, whatever the environment says: a proxy would
// resolve names by itself.
func (r *Remotes) connections(config *rest.Config) (*http.Transport, error) {
	secured, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	return utilnet.SetTransportDefaults(&http.Transport{
		Proxy:                  func(*http.Request) (*url.URL, error) { return nil, nil },
		DialContext:            r.dial,
		TLSClientConfig:        secured,
		TLSHandshakeTimeout:    10 * time.Second,
		ResponseHeaderTimeout:  r.options.RequestTimeout,
		MaxResponseHeaderBytes: 64 << 10,
		MaxIdleConnsPerHost:    8,
		IdleConnTimeout:        90 * time.Second,
		DisableCompression:     config.DisableCompression,
	}), nil
}

func (r *remote) client(id Identity, o Options) (*Client, error) {
	config := rest.CopyConfig(r.config)
	if id.ServiceAccount != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: id.Username()}
	}
	wrapped, err := rest.HTTPWrappersForConfig(config, r.server)
	if err != nil {
		return nil, err
	}
	transport := &http.Client{Transport: wrapped, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // a redirect would receive the credentials
	}}
	kinds, err := discovery.New(config, transport, o.kinds())
	if err != nil {
		return nil, err
	}
	client, err := newClient(id, config, transport, kinds, o)
	if err != nil {
		return nil, err
	}
	client.decoding = r.decoding
	if id.ServiceAccount == "" {
		return client, nil
	}
	config.Impersonate = rest.ImpersonationConfig{}
	own, err := rest.HTTPWrappersForConfig(config, r.server)
	if err != nil {
		return nil, err
	}
	user, err := newClient(Identity{Namespace: id.Namespace, Cluster: id.Cluster, Host: id.Host}, config, &http.Client{Transport: own, CheckRedirect: transport.CheckRedirect}, kinds, o)
	if err != nil {
		return nil, err
	}
	client.marking = &permitted{user: user, now: o.Now}
	return client, nil
}
