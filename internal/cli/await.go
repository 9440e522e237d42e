// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errTooLong ends a wait.
var errTooLong = errors.New("it took too long")

// await watches one object until done is satisfied, and returns what was seen last. A watch that the server ends is
// begun anew. It fails when the object goes, and with the cause of ctx when that ends first.
func (c *cluster) await(ctx context.Context, t target, done func(summary) bool) (summary, error) {
	var last summary
	for {
		finished, err := c.watchOnce(ctx, t, func(s summary) bool {
			last = s
			return done(s)
		})
		if ctx.Err() != nil {
			return last, context.Cause(ctx)
		}
		if finished || err != nil {
			return last, err
		}
	}
}

// watchOnce watches until done is satisfied or the watch ends. It begins with the state of now.
func (c *cluster) watchOnce(ctx context.Context, t target, done func(summary) bool) (finished bool, err error) {
	options := []client.ListOption{client.InNamespace(c.namespace),
		client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", t.name)}}
	w, err := c.client.Watch(ctx, t.kind.list(), options...)
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
		case done(summarize(o)):
			return true, nil
		}
	}
	return false, nil
}
