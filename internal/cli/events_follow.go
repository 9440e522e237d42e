// SPDX-License-Identifier: Apache-2.0

package cli

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
)

// mostRemembered bounds what a command that runs for days remembers of events and owners.
const mostRemembered = 100_000

// followEvents writes what happens, until ctx ends.
func (a *app) followEvents(ctx context.Context, o eventsOptions, r *eventReader) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	happening := make(chan *corev1.Event)
	followed := map[string]bool{}
	before := r.omitted.list()
	begin := func() {
		for _, namespace := range r.namespaces {
			if !followed[namespace] {
				followed[namespace] = true
				go r.explorer.followNamespace(ctx, namespace, happening)
			}
		}
	}
	begin()
	s := styleFor(a.streams.Out)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case e := <-happening:
			if !r.fresh(ctx, e) {
				continue
			}
			found := newEvent(e)
			if !o.warnings || e.Type != corev1.EventTypeNormal {
				fmt.Fprintln(a.streams.Out, found.line(s))
			}
			// What the controller tells about the deployment may be about objects that are new.
			if found.Object.Kind == v1alpha1.BundleDeploymentKind && r.refresh(ctx) == nil {
				begin()
			}
		}
		after := r.omitted.list()
		a.noteOmitted(added(before, after))
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
	id := newEvent(e).Object.id()
	return r.mayConcern(id) && r.concerns(ctx, id, deepest)
}

// followNamespace passes on the events of a namespace, those of before too, until ctx ends or the user may not read them.
func (x *explorer) followNamespace(ctx context.Context, namespace string, happening chan<- *corev1.Event) {
	for {
		err := x.watchEvents(ctx, namespace, happening)
		if apierrors.IsForbidden(err) {
			x.unreadable("watch", eventResource, namespace, err)
			return
		}
		if pause(ctx, watchPause) != nil {
			return
		}
	}
}

// watchEvents lists the events of a namespace and watches those that follow, until the server ends that.
func (x *explorer) watchEvents(ctx context.Context, namespace string, happening chan<- *corev1.Event) error {
	events := x.bodies.Resource(eventResource).Namespace(namespace)
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
	l := listing{resource: eventResource, namespace: namespace, whole: true, limit: mostEvents, page: pageOfEvents}
	if _, err := x.each(ctx, l, func(found sighting) { pass(found.body) }); err != nil {
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
