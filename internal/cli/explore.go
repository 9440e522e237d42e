// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// explorer reads objects of any kind with the user's permissions. Objects that the user may not read are
// noted, and are not an error.
type explorer struct {
	*cluster
	config   *rest.Config
	mapper   meta.RESTMapper
	bodies   dynamic.Interface
	metadata metadata.Interface
	omitted  omissions
}

// explore returns an explorer of the cluster of the flags. Kinds are looked up when first needed.
func (a *app) explore() (*explorer, error) {
	c, err := a.connect()
	if err != nil {
		return nil, err
	}
	config, err := a.restConfig()
	if err != nil {
		return nil, err
	}
	config.WarningHandler = rest.NoWarnings{} // deprecation warnings about kinds of bundles are not of interest here
	x := &explorer{cluster: c, config: config}
	if x.bodies, err = dynamic.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("preparing the connection to the cluster: %w", err)
	}
	if x.metadata, err = metadata.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("preparing the connection to the cluster: %w", err)
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to the cluster: %w", err)
	}
	cached := memory.NewMemCacheClient(kinds)
	x.mapper = restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil)
	return x, nil
}

// sighting is an object as it was read: all of it, or its metadata alone.
type sighting struct {
	metav1.Object
	body *unstructured.Unstructured // nil when only the metadata was read
}

// How many objects one request reads: bodies may be large, such as those of CRDs.
const (
	pageOfMetadata = 500
	pageOfBodies   = 100
)

// one reads an object.
func (x *explorer) one(ctx context.Context, resource schema.GroupVersionResource, namespace, name string, whole bool) (sighting, error) {
	if whole {
		body, err := x.bodies.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		return sighting{Object: body, body: body}, err
	}
	found, err := x.metadata.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	return sighting{Object: found}, err
}

// listing is which objects are listed, and how much of them.
type listing struct {
	resource            schema.GroupVersionResource
	namespace, selector string
	whole               bool
	limit               int   // of objects
	page                int64 // how many in one request, where it is not as usual
}

// each reads objects in pages and passes them on one by one, so that at most one page is
// in memory. It tells whether there are more than the limit.
func (x *explorer) each(ctx context.Context, l listing, do func(sighting)) (more bool, err error) {
	options := metav1.ListOptions{LabelSelector: l.selector, Limit: pageOfMetadata}
	if l.whole {
		options.Limit = pageOfBodies
	}
	if l.page > 0 {
		options.Limit = l.page
	}
	for seen := 0; ; {
		next, page, err := x.page(ctx, l, options)
		if err != nil {
			return false, err
		}
		for _, found := range page {
			do(found)
		}
		if seen += len(page); next == "" || seen >= l.limit {
			return next != "", nil
		}
		options.Continue = next
	}
}

func (x *explorer) page(ctx context.Context, l listing, options metav1.ListOptions) (next string, page []sighting, err error) {
	if l.whole {
		list, err := x.bodies.Resource(l.resource).Namespace(l.namespace).List(ctx, options)
		if err != nil {
			return "", nil, err
		}
		for i := range list.Items {
			page = append(page, sighting{Object: &list.Items[i], body: &list.Items[i]})
		}
		return list.GetContinue(), page, nil
	}
	list, err := x.metadata.Resource(l.resource).Namespace(l.namespace).List(ctx, options)
	if err != nil {
		return "", nil, err
	}
	for i := range list.Items {
		page = append(page, sighting{Object: &list.Items[i]})
	}
	return list.GetContinue(), page, nil
}

// omissions are what could not be read, each once.
type omissions struct {
	mutex sync.Mutex
	lines []string
}

// add notes an omission.
func (o *omissions) add(format string, args ...any) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	line := fmt.Sprintf(format, args...)
	if !slices.Contains(o.lines, line) {
		o.lines = append(o.lines, line)
	}
}

// list returns them in a fixed order.
func (o *omissions) list() []string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return slices.Sorted(slices.Values(o.lines))
}

// mostOmissions bounds the lines about what is not shown.
const mostOmissions = 20

// noteOmitted says on standard error what is not shown, and why.
func (a *app) noteOmitted(lines []string) {
	s := styleFor(a.streams.ErrOut)
	for i, line := range lines {
		if i == mostOmissions {
			fmt.Fprintf(a.streams.ErrOut, "%s %s more\n", s.paint(yellow, "Not shown:"), plural(len(lines)-i, "thing"))
			return
		}
		fmt.Fprintf(a.streams.ErrOut, "%s %s\n", s.paint(yellow, "Not shown:"), bounded(line))
	}
}

// unreadable notes that objects could not be read, for lack of permissions or another reason; verb is get or list.
func (x *explorer) unreadable(verb string, resource schema.GroupVersionResource, namespace string, err error) {
	where := "of the cluster"
	if namespace != "" {
		where = fmt.Sprintf("in the namespace %q", namespace)
	}
	name := resource.GroupResource().String()
	if apierrors.IsForbidden(err) {
		x.omitted.add("%s %s: you may not %s them; ask an administrator for that permission", name, where, verb)
		return
	}
	x.omitted.add("%s %s: %v", name, where, err)
}

// clear forgets them, before things are read once more.
func (o *omissions) clear() {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.lines = nil
}
