// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/satchel-dev/satchel/internal/apply/tenant/connection"
	"github.com/satchel-dev/satchel/internal/apply/tenant/discovery"
	"github.com/satchel-dev/satchel/internal/repeat"
)

// Options bound a Pool, or Remotes. The zero value of each has the default given here.
type Options struct {
	QPS            float32       // of one tenant's client; -1: the API server's priority and fairness governs
	Burst          int           // with QPS
	Clients        int           // how many clients a Pool keeps, and how many clusters Remotes keep: 1024
	ClientTTL      time.Duration // how long one is kept: 1 h
	RequestTimeout time.Duration // of one request: 30 s
	RefreshPeriod  time.Duration // discovery is asked again at most this often: 1 s
	AnswerBytes    int64         // largest answer that is read: 64 MiB
	ObjectBytes    int64         // largest answer about one object: 8 MiB, or AnswerBytes if that is less
	Now            func() time.Time
	// Wrap puts something in front of the connections to remote clusters; may be nil.
	Wrap func(http.RoundTripper) http.RoundTripper
	// User is the user that a Pool impersonates as, who may lack the permission to impersonate
	// DeploymentExtra: that is checked, and without it writes are sent without the
	// extra. Nil: a controller, which has it.
	User *Client
}

func (o Options) defaulted() Options {
	if o.QPS == 0 {
		o.QPS = -1
	}
	if o.Clients <= 0 {
		o.Clients = 1024
	}
	if o.ClientTTL <= 0 {
		o.ClientTTL = time.Hour
	}
	if o.RequestTimeout <= 0 {
		o.RequestTimeout = 30 * time.Second
	}
	if o.RefreshPeriod <= 0 {
		o.RefreshPeriod = time.Second
	}
	if o.AnswerBytes <= 0 {
		o.AnswerBytes = 64 << 20
	}
	if o.ObjectBytes <= 0 {
		o.ObjectBytes = min(8<<20, o.AnswerBytes)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

func (o Options) kinds() discovery.Options {
	return discovery.Options{Timeout: o.RequestTimeout, Period: o.RefreshPeriod, Now: o.Now}
}

// Pool makes and caches the clients of one cluster. They share connections and
// the discovery of the cluster's kinds. It is safe for concurrent use.
type Pool struct {
	base     *rest.Config
	options  Options
	kinds    *discovery.Cache
	metadata metadata.Interface // the controller's own; see the package comment

	mu      sync.Mutex // held while a client is made, so that there is one for each identity
	clients *cache.LRUExpireCache
	seen    *cache.LRUExpireCache // accounts that existed when they were last read
	target  atomic.Pointer[target]
}

// target is the identity of the cluster, and when it was read.
type target struct {
	uid  string
	read time.Time
}

// targetAge is how long the identity of the cluster is cached.
const targetAge = time.Minute

// NewPool makes a pool over the controller's own configuration, which must not
// impersonate.
func NewPool(base *rest.Config, o Options) (*Pool, error) {
	o = o.defaulted()
	config := prepared(base, o)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to the API server: %w", err)
	}
	kinds, err := discovery.New(config, client, o.kinds())
	if err != nil {
		return nil, err
	}
	own, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), client)
	if err != nil {
		return nil, fmt.Errorf("preparing the metadata client: %w", err)
	}
	return &Pool{
		base: config, options: o, kinds: kinds, metadata: own,
		clients: cache.NewLRUExpireCacheWithClock(o.Clients, clock(o.Now)),
		seen:    cache.NewLRUExpireCacheWithClock(o.Clients, clock(o.Now)),
	}, nil
}

// prepared is a configuration for tenants' requests, still without impersonation.
func prepared(base *rest.Config, o Options) *rest.Config {
	config := rest.CopyConfig(base)
	config.Impersonate = rest.ImpersonationConfig{}
	config.QPS = o.QPS
	config.Burst = o.Burst
	config.RateLimiter = nil
	config.Timeout = 0 // requests are bounded by their contexts
	config.WarningHandler, config.WarningHandlerWithContext = nil, warningHandler{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return connection.LimitedTransport{Next: next, Limit: o.AnswerBytes, Object: o.ObjectBytes}
	})
	repeat.Wrap(config)
	return config
}

type clock func() time.Time

// Now implements the clock of the cache.
func (c clock) Now() time.Time { return c() }

// Client returns the client of an account. It sends no request; AccountExists tells whether
// the account exists. The client reads; use its For to write.
func (p *Pool) Client(id Identity) (*Client, error) {
	if err := id.Validate(); err != nil {
		return nil, err
	}
	if id.Remote() {
		return nil, fmt.Errorf("%s is not an account of this cluster", id)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if kept, found := p.clients.Get(id); found {
		if client, ok := kept.(*Client); ok {
			return client, nil
		}
	}
	client, err := p.newClient(id)
	if err != nil {
		return nil, fmt.Errorf("making a client for service account %s: %w", id, err)
	}
	p.clients.Add(id, client, p.options.ClientTTL)
	return client, nil
}

func (p *Pool) newClient(id Identity) (*Client, error) {
	config := rest.CopyConfig(p.base)
	config.Impersonate = rest.ImpersonationConfig{UserName: id.Username()}
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	client, err := newClient(id, config, transport, p.kinds, p.options)
	if err != nil {
		return nil, err
	}
	client.marking = always{}
	if p.options.User != nil {
		client.marking = &permitted{user: p.options.User, now: p.options.Now}
	}
	return client, nil
}

// Kinds is what the cluster serves.
func (p *Pool) Kinds() *discovery.Cache { return p.kinds }

// Target is the identity of the cluster: the UID of its kube-system namespace,
// read with the controller's own permissions, and cached for a minute.
func (p *Pool) Target(ctx context.Context) (string, error) {
	now := p.options.Now()
	if kept := p.target.Load(); kept != nil && now.Sub(kept.read) < targetAge {
		return kept.uid, nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.options.RequestTimeout)
	defer cancel()
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	system, err := p.metadata.Resource(namespaces).Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("identifying the cluster: %w", err)
	}
	p.target.Store(&target{uid: string(system.UID), read: now})
	return string(system.UID), nil
}

// AccountExists tells whether the ServiceAccount exists, read with the
// controller's own permissions: the API server impersonates accounts that do not
// exist, with the bindings that remain. An account on another cluster
// counts as existing, as the controller has no identity to check it there.
func (p *Pool) AccountExists(ctx context.Context, id Identity) (bool, error) {
	if id.Remote() {
		return true, nil
	}
	if err := id.Validate(); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, p.options.RequestTimeout)
	defer cancel()
	accounts := schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	_, err := p.metadata.Resource(accounts).Namespace(id.Namespace).Get(ctx, id.ServiceAccount, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for service account %s: %w", id, err)
	}
	p.seen.Add(id, true, recentAge)
	return true, nil
}

// AccountExisted is AccountExists with an answer that may be up to a second old if it is yes: enough for the many deployments
// and watches that begin together.
func (p *Pool) AccountExisted(ctx context.Context, id Identity) (bool, error) {
	if _, seen := p.seen.Get(id); seen {
		return true, nil
	}
	return p.AccountExists(ctx, id)
}
