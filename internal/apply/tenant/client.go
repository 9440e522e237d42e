// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/satchel-dev/satchel/internal/apply/tenant/discovery"
	"github.com/satchel-dev/satchel/internal/repeat"
)

// Client sends requests as one ServiceAccount. It is safe for concurrent use.
type Client struct {
	*account

	// deployment for which it writes, namespace/name; empty: none, see For.
	deployment string
}

// account is the state that the clients of all deployments with one identity share.
type account struct {
	identity Identity
	raw      rest.Interface
	metadata metadata.Interface
	kinds    *discovery.Cache
	timeout  time.Duration
	requests *atomic.Int64
	now      func() time.Time
	version  atomic.Pointer[serverVersion]
	target   atomic.Pointer[target]
	decoding *sync.Mutex // see remote; nil for the own cluster
	marking  marking
	recent   recent
}

// For returns the client for one deployment in the namespace of the identity: each
// of its writes carries the name. It shares everything else, so it is cheap to make.
func (c *Client) For(deployment string) *Client {
	return &Client{account: c.account, deployment: c.identity.Namespace + "/" + deployment}
}

func newClient(id Identity, config *rest.Config, transport *http.Client, kinds *discovery.Cache, o Options) (*Client, error) {
	requests := &atomic.Int64{}
	counted := *transport
	counted.Transport = repeat.Transport(countingTransport{next: transport.Transport, requests: requests})
	rawConfig := dynamic.ConfigFor(config)
	rawConfig.GroupVersion = &schema.GroupVersion{}
	raw, err := rest.UnversionedRESTClientForConfigAndClient(rawConfig, &counted)
	if err != nil {
		return nil, err
	}
	meta, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), &counted)
	if err != nil {
		return nil, err
	}
	return &Client{account: &account{
		identity: id, raw: raw, metadata: meta, kinds: kinds,
		timeout: o.RequestTimeout, requests: requests, now: o.Now, recent: newRecent(o.Now),
	}}, nil
}

// Identity is the identity that the client impersonates.
func (c *Client) Identity() Identity { return c.identity }

// Kinds is what the cluster serves.
func (c *Client) Kinds() *discovery.Cache { return c.kinds }

// Requests is the number of requests sent as this account since the client was made.
func (c *Client) Requests() int64 { return c.requests.Load() }

// Metadata returns the metadata of one object.
func (c *Client) Metadata(ctx context.Context, ref Ref) (*metav1.PartialObjectMetadata, error) {
	if err := ref.object(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return c.metadata.Resource(ref.Resource).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
}

// Target is the identity of the cluster, read as the account, which needs the
// permission to get the namespace kube-system; it is cached for a minute.
func (c *Client) Target(ctx context.Context) (string, error) {
	now := c.now()
	if kept := c.target.Load(); kept != nil && now.Sub(kept.read) < targetAge {
		return kept.uid, nil
	}
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	system, err := c.Metadata(ctx, Ref{Resource: namespaces, Name: metav1.NamespaceSystem})
	if err != nil {
		return "", fmt.Errorf("identifying the cluster: %w", err)
	}
	if system.UID == "" {
		return "", errors.New("identifying the cluster: its namespace kube-system has no UID")
	}
	c.target.Store(&target{uid: string(system.UID), read: now})
	return string(system.UID), nil
}

// PageSize is how many objects a list requests at once.
const PageSize = 500

// ListMetadata returns one page of a collection's metadata.
func (c *Client) ListMetadata(ctx context.Context, ref Ref, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	if err := ref.collection(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return c.metadata.Resource(ref.Resource).Namespace(ref.Namespace).List(ctx, options)
}

// countingTransport counts the requests that are really sent.
type countingTransport struct {
	next     http.RoundTripper
	requests *atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (t countingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	t.requests.Add(1)
	return t.next.RoundTrip(request)
}
