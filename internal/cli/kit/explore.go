// SPDX-License-Identifier: Apache-2.0

package kit

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

	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
)

// Explorer reads objects of any kind with the user's permissions. Objects that the user may not read are
// noted, and are not an error.
type Explorer struct {
	*Cluster
	Config   *rest.Config
	Mapper   meta.RESTMapper
	Bodies   dynamic.Interface
	Metadata metadata.Interface
	Omitted  omissions
}

// Explore returns an explorer of the cluster of the flags. Kinds are looked up when first needed.
func (a *App) Explore() (*Explorer, error) {
	c, err := a.Connect()
	if err != nil {
		return nil, err
	}
	config, err := a.RestConfig()
	if err != nil {
		return nil, err
	}
	config.WarningHandler = rest.NoWarnings{} // deprecation warnings about kinds of bundles are not of interest here
	x := &Explorer{Cluster: c, Config: config}
	if x.Bodies, err = dynamic.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("preparing the connection to the cluster: %w", err)
	}
	if x.Metadata, err = metadata.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("preparing the connection to the cluster: %w", err)
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to the cluster: %w", err)
	}
	cached := memory.NewMemCacheClient(kinds)
	x.Mapper = restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil)
	return x, nil
}

// Sighting is an object as it was read: all of it, or its metadata alone.
type Sighting struct {
	metav1.Object
	Body *unstructured.Unstructured // nil when only the metadata was read
}

// How many objects one request reads: bodies may be large, such as those of CRDs.
const (
	PageOfMetadata = 500
	pageOfBodies   = 100
)

// One reads an object.
func (x *Explorer) One(ctx context.Context, resource schema.GroupVersionResource, namespace, name string, whole bool) (Sighting, error) {
	if whole {
		body, err := x.Bodies.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		return Sighting{Object: body, Body: body}, err
	}
	found, err := x.Metadata.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	return Sighting{Object: found}, err
}

// Listing is which objects are listed, and how much of them.
type Listing struct {
	Resource            schema.GroupVersionResource
	Namespace, Selector string
	Whole               bool
	Limit               int   // of objects
	Page                int64 // how many in one request, where it is not as usual
}

// Each reads objects in pages and passes them on one by one, so that at most one page is
// in memory. It tells whether there are more than the limit.
func (x *Explorer) Each(ctx context.Context, l Listing, do func(Sighting)) (more bool, err error) {
	options := metav1.ListOptions{LabelSelector: l.Selector, Limit: PageOfMetadata}
	if l.Whole {
		options.Limit = pageOfBodies
	}
	if l.Page > 0 {
		options.Limit = l.Page
	}
	for seen := 0; ; {
		next, page, err := x.page(ctx, l, options)
		if err != nil {
			return false, err
		}
		for _, found := range page {
			do(found)
		}
		if seen += len(page); next == "" || seen >= l.Limit {
			return next != "", nil
		}
		options.Continue = next
	}
}

func (x *Explorer) page(ctx context.Context, l Listing, options metav1.ListOptions) (next string, page []Sighting, err error) {
	if l.Whole {
		list, err := x.Bodies.Resource(l.Resource).Namespace(l.Namespace).List(ctx, options)
		if err != nil {
			return "", nil, err
		}
		for i := range list.Items {
			page = append(page, Sighting{Object: &list.Items[i], Body: &list.Items[i]})
		}
		return list.GetContinue(), page, nil
	}
	list, err := x.Metadata.Resource(l.Resource).Namespace(l.Namespace).List(ctx, options)
	if err != nil {
		return "", nil, err
	}
	for i := range list.Items {
		page = append(page, Sighting{Object: &list.Items[i]})
	}
	return list.GetContinue(), page, nil
}

// omissions are what could not be read, each once.
type omissions struct {
	mutex sync.Mutex
	lines []string
}

// Add notes an omission.
func (o *omissions) Add(format string, args ...any) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	line := fmt.Sprintf(format, args...)
	if !slices.Contains(o.lines, line) {
		o.lines = append(o.lines, line)
	}
}

// List returns them in a fixed order.
func (o *omissions) List() []string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return slices.Sorted(slices.Values(o.lines))
}

// mostOmissions bounds the lines about what is not shown.
const mostOmissions = 20

// NoteOmitted says on standard error what is not shown, and why.
func (a *App) NoteOmitted(lines []string) {
	s := printer.StyleFor(a.Streams.ErrOut)
	for i, line := range lines {
		if i == mostOmissions {
			fmt.Fprintf(a.Streams.ErrOut, "%s %s more\n", s.Paint(printer.Yellow, "Not shown:"), view.Plural(len(lines)-i, "thing"))
			return
		}
		fmt.Fprintf(a.Streams.ErrOut, "%s %s\n", s.Paint(printer.Yellow, "Not shown:"), view.Bounded(line))
	}
}

// Unreadable notes that objects could not be read, for lack of permissions or another reason; verb is get or list.
func (x *Explorer) Unreadable(verb string, resource schema.GroupVersionResource, namespace string, err error) {
	where := "of the cluster"
	if namespace != "" {
		where = fmt.Sprintf("in the namespace %q", namespace)
	}
	name := resource.GroupResource().String()
	if apierrors.IsForbidden(err) {
		x.Omitted.Add("%s %s: you may not %s them; ask an administrator for that permission", name, where, verb)
		return
	}
	x.Omitted.Add("%s %s: %v", name, where, err)
}

// Clear forgets them, before things are read once more.
func (o *omissions) Clear() {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.lines = nil
}

// AtOnce is how many requests are under way.
const AtOnce = 8
