// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errTooLong ends a wait.
var errTooLong = errors.New("it took too long")

// watchPause lies between a watch that the server ended and the next.
const watchPause = 500 * time.Millisecond

// await watches one object until done is satisfied, and returns what was seen last. A watch that the server ends is
// restarted. It fails when the object is gone, and with the cause of ctx when that ends first.
func (c *cluster) await(ctx context.Context, t target, done func(summary) bool) (summary, error) {
	var last summary
	for {
		finished, err := c.watchOnce(ctx, t, func(o object) bool {
			last = summarize(o)
			return done(last)
		})
		if ctx.Err() != nil {
			return last, context.Cause(ctx)
		}
		if finished || err != nil {
			return last, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(watchPause):
		}
	}
}

// watchOnce reads the object and watches what follows, until done is satisfied or the watch ends.
func (c *cluster) watchOnce(ctx context.Context, t target, done func(object) bool) (finished bool, err error) {
	options := client.ListOptions{Namespace: c.namespace, FieldSelector: fields.OneTermEqualSelector("metadata.name", t.name)}
	list := t.kind.list()
	if err := c.client.List(ctx, list, &options); err != nil {
		return false, &accessError{verb: "list", resource: t.kind.resource, namespace: c.namespace, err: err}
	}
	present, err := meta.ExtractList(list)
	if err != nil || len(present) == 0 {
		return false, errors.Join(err, &notFoundError{kind: t.kind, name: t.name, namespace: c.namespace})
	}
	if o, isObject := present[0].(object); isObject && done(o) {
		return true, nil
	}
	options.Raw = &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}
	w, err := c.client.Watch(ctx, t.kind.list(), &options)
	if err != nil {
		return false, &accessError{verb: "watch", resource: t.kind.resource, namespace: c.namespace, err: err}
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		o, isObject := event.Object.(object)
		switch {
		case event.Type == watch.Deleted:
			return false, &notFoundError{kind: t.kind, name: t.name, namespace: c.namespace}
		case event.Type == watch.Error || !isObject:
			return false, nil
		case done(o):
			return true, nil
		}
	}
	return false, nil
}
