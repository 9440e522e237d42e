// SPDX-License-Identifier: Apache-2.0

package see

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/cli/tree"
)

// mostRemembered bounds what a command that runs for days remembers of events and owners.
const mostRemembered = 100_000

// followEvents writes what happens, until ctx ends.
func followEvents(ctx context.Context, a *kit.App, o eventsOptions, r *eventReader) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	happening := make(chan *corev1.Event)
	followed := map[string]bool{}
	before := r.Omitted.List()
	begin := func() {
		for _, namespace := range r.namespaces {
			if !followed[namespace] {
				followed[namespace] = true
				go followNamespace(ctx, r.Explorer, namespace, happening)
			}
		}
	}
	begin()
	s := printer.StyleFor(a.Streams.Out)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case e := <-happening:
			if !r.fresh(ctx, e) {
				continue
			}
			found := NewEvent(e)
			if !o.warnings || e.Type != corev1.EventTypeNormal {
				fmt.Fprintln(a.Streams.Out, found.Line(s))
			}
			// What the controller tells about the deployment may be about objects that are new.
			if found.Object.Kind == v1alpha1.BundleDeploymentKind && r.refresh(ctx) == nil {
				begin()
			}
		}
		after := r.Omitted.List()
		a.NoteOmitted(kit.Added(before, after))
		before = after
	}
}

// fresh tells whether an event concerns the deployment and was not shown yet.
func (r *eventReader) fresh(ctx context.Context, e *corev1.Event) bool {
	if len(r.seen)+len(r.owners) > mostRemembered {
		clear(r.seen)
		clear(r.owners)
		clear(r.listed)
	}
	uid := string(e.UID)
	if r.seen[uid] == e.ResourceVersion {
		return false
	}
	r.seen[uid] = e.ResourceVersion
	id := NewEvent(e).Object.ID()
	return r.mayConcern(id) && r.concerns(ctx, id, tree.Deepest)
}

// followNamespace passes on the events of a namespace, those of before too, until ctx ends or the user may not read them.
func followNamespace(ctx context.Context, x *kit.Explorer, namespace string, happening chan<- *corev1.Event) {
	for {
		err := watchEvents(ctx, x, namespace, happening)
		if apierrors.IsForbidden(err) {
			x.Unreadable("watch", eventResource, namespace, err)
			return
		}
		if kit.Pause(ctx, kit.WatchPause) != nil {
			return
		}
	}
}

// watchEvents lists the events of a namespace and watches those that follow, until the server ends that.
func watchEvents(ctx context.Context, x *kit.Explorer, namespace string, happening chan<- *corev1.Event) error {
	events := x.Bodies.Resource(eventResource).Namespace(namespace)
	start, err := events.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	pass := func(body *unstructured.Unstructured) {
		if e := typedEvent(body); e != nil {
			select {
			case <-ctx.Done():
			case happening <- e:
			}
		}
	}
	l := kit.Listing{Resource: eventResource, Namespace: namespace, Whole: true, Limit: mostEvents, Page: pageOfEvents}
	if _, err := x.Each(ctx, l, func(found kit.Sighting) { pass(found.Body) }); err != nil {
		return err
	}
	w, err := events.Watch(ctx, metav1.ListOptions{ResourceVersion: start.GetResourceVersion()})
	if err != nil {
		return err
	}
	defer w.Stop()
	for change := range w.ResultChan() {
		if change.Type == watch.Error {
			return apierrors.FromObject(change.Object)
		}
		body, isObject := change.Object.(*unstructured.Unstructured)
		if isObject && slices.Contains([]watch.EventType{watch.Added, watch.Modified}, change.Type) {
			pass(body)
		}
	}
	return nil
}
