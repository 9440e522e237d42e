// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"context"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/satchel-dev/satchel/internal/apply/tenant/listed"
)

// Many deployments of one account are often created together. What each of them asks first, with the same answer, is kept for
// a moment: recentAge. An answer is used only where a wrong one costs nothing but a write that the API server refuses.
const (
	recentAge = time.Second
	// mostRecent is how many answers of an account are kept of each kind.
	mostRecent = 16
	// mostRecentRules is how many rules an answer may have to be kept.
	mostRecentRules = 500
)

// recent holds the last answers to an account.
type recent struct {
	rules      *cache.LRUExpireCache // by namespace
	namespaces *cache.LRUExpireCache // that exist and are not being deleted
	lists      *listed.Collections
}

func newRecent(now func() time.Time) recent {
	return recent{
		rules:      cache.NewLRUExpireCacheWithClock(mostRecent, clock(now)),
		namespaces: cache.NewLRUExpireCacheWithClock(mostRecent, clock(now)),
		lists:      listed.New(now),
	}
}

// RecentRules is Rules, but the answer may be up to a second old. Nothing that it lacks may be reported as missing: the
// permission may have been granted since.
func (c *Client) RecentRules(ctx context.Context, namespace string) (status authorizationv1.SubjectRulesReviewStatus, isRecent bool, err error) {
	if kept, found := c.recent.rules.Get(namespace); found {
		if status, ok := kept.(authorizationv1.SubjectRulesReviewStatus); ok {
			return status, true, nil
		}
	}
	status, err = c.Rules(ctx, namespace)
	return status, false, err
}

// keepRules keeps an answer for RecentRules.
func (c *Client) keepRules(namespace string, status authorizationv1.SubjectRulesReviewStatus) {
	if len(status.ResourceRules)+len(status.NonResourceRules) <= mostRecentRules {
		c.recent.rules.Add(namespace, status, recentAge)
	}
}

// Namespace returns the metadata of a namespace. That of one which exists and is not being deleted may be up to a second old.
func (c *Client) Namespace(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	if kept, found := c.recent.namespaces.Get(name); found {
		if namespace, ok := kept.(*metav1.PartialObjectMetadata); ok {
			return namespace, nil
		}
	}
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	found, err := c.Metadata(ctx, Ref{Resource: namespaces, Name: name})
	if err == nil && found.DeletionTimestamp == nil {
		c.recent.namespaces.Add(name, found, recentAge)
	}
	return found, err
}

// Listed returns the names in a collection, from a list up to a second old that deployments of the account share; nil where the
// objects have to be read one by one: see listed.Collections. An object that it lacks may exist by now, so it may be written only
// on condition that it does not: see ApplyOptions.
func (c *Client) Listed(ctx context.Context, ref Ref) *listed.Names {
	return c.recent.lists.Find(ctx, ref.key(), c.deployment, func(ctx context.Context) (names []string, complete bool, err error) {
		page, err := c.ListMetadata(ctx, ref, metav1.ListOptions{Limit: listed.Most})
		if err != nil {
			return nil, false, err
		}
		for i := range page.Items {
			names = append(names, page.Items[i].Name)
		}
		return names, page.Continue == "", nil
	})
}

// Unlist forgets the shared list of an object's collection, which proved to be outdated.
func (c *Client) Unlist(ref Ref) { c.recent.lists.Forget(ref.key()) }

// key is the collection of a reference.
func (r Ref) key() listed.Key { return listed.Key{Resource: r.Resource, Namespace: r.Namespace} }
