// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bench

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// follow waits until there are so many objects in a namespace and a condition holds for all. It
// is told by a watch: to list thousands of objects again and again would cost the API server
// more than what is measured.
func (r *rig) follow(t testing.TB, list client.ObjectList, namespace string, count int, holds func(client.Object) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	held, seen := map[string]bool{}, ""
	for {
		done := 0
		err := r.events(ctx, list, namespace, func(event watch.Event, object client.Object) bool {
			name := object.GetName()
			if held[name] {
				done--
			}
			if event.Type == watch.Deleted {
				delete(held, name)
			} else {
				held[name] = holds(object)
			}
			if held[name] {
				done++
			} else {
				seen = name
			}
			return done == count && len(held) == count
		})
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("waiting for %d objects: %v; %d are there, and one that is not done is %q", count, err, len(held), seen)
		}
		clear(held) // the next watch begins with all that is there
	}
}

var errEnded = errors.New("the watch ended")

// events calls a function for each event until it returns true.
func (r *rig) events(ctx context.Context, list client.ObjectList, namespace string, done func(watch.Event, client.Object) bool) error {
	watching, err := r.watcher.Watch(ctx, list, client.InNamespace(namespace))
	if err != nil {
		return err
	}
	defer watching.Stop()
	for event := range watching.ResultChan() {
		object, ok := event.Object.(client.Object)
		if !ok || event.Type == watch.Bookmark {
			continue
		}
		if done(event, object) {
			return nil
		}
	}
	return errEnded
}
