// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/internal/view"
)

// ErrTooLong ends a wait.
var ErrTooLong = errors.New("it took too long")

// WatchPause lies between a watch that the server ended and the next.
const WatchPause = 500 * time.Millisecond

// Await watches one object until done is satisfied, and returns what was seen last. A watch that the server ends is
// restarted. It fails when the object is gone, and with the cause of ctx when that ends first.
func (c *Cluster) Await(ctx context.Context, t Target, done func(view.Summary) bool) (view.Summary, error) {
	var last view.Summary
	err := c.Watch(ctx, t, func(o view.Object) bool {
		last = view.Summarize(o)
		return done(last)
	})
	return last, err
}

// Watch passes one object on, as it is and after each change, until done is satisfied. A watch that the server ends is restarted. It
// fails as Await does.
func (c *Cluster) Watch(ctx context.Context, t Target, done func(view.Object) bool) error {
	for {
		finished, err := c.watchOnce(ctx, t, done)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if finished || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(WatchPause):
		}
	}
}

// watchOnce reads the object and watches what follows, until done is satisfied or the watch ends.
func (c *Cluster) watchOnce(ctx context.Context, t Target, done func(view.Object) bool) (finished bool, err error) {
	options := client.ListOptions{Namespace: c.Namespace, FieldSelector: fields.OneTermEqualSelector("metadata.name", t.Name)}
	list := t.Kind.List()
	if err := c.Client.List(ctx, list, &options); err != nil {
		return false, &AccessError{Verb: "list", Resource: t.Kind.Resource, Namespace: c.Namespace, Err: err}
	}
	present, err := meta.ExtractList(list)
	if err != nil || len(present) == 0 {
		return false, errors.Join(err, &NotFoundError{Kind: t.Kind, Name: t.Name, Namespace: c.Namespace})
	}
	if o, isObject := present[0].(view.Object); isObject && done(o) {
		return true, nil
	}
	options.Raw = &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}
	w, err := c.Client.Watch(ctx, t.Kind.List(), &options)
	if err != nil {
		return false, &AccessError{Verb: "watch", Resource: t.Kind.Resource, Namespace: c.Namespace, Err: err}
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		o, isObject := event.Object.(view.Object)
		switch {
		case event.Type == watch.Deleted:
			return false, &NotFoundError{Kind: t.Kind, Name: t.Name, Namespace: c.Namespace}
		case event.Type == watch.Error || !isObject:
			return false, nil
		case done(o):
			return true, nil
		}
	}
	return false, nil
}
