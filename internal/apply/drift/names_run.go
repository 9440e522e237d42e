// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// run watches an object while deployments read it. While there is no watch, because the limit is reached or the watch failed, wait
// reads the object now and then.
func (n *Names) run(ctx context.Context, o *named) {
	failures := 0 // in a row
	for ctx.Err() == nil {
		if !o.counted {
			n.wait(ctx, o, n.options.Lifetime)
			continue
		}
		err := n.session(ctx, o, func() { failures = 0 })
		switch {
		case ctx.Err() != nil:
			return
		case err == nil: // the lifetime of the watch is over: it is opened again, not all of them at once
			n.wait(ctx, o, rand.N(50*time.Millisecond)) //nolint:gosec // spreads requests, and is no secret
		default:
			failures++
			n.wait(ctx, o, n.retryPause(o, err, failures))
		}
	}
}

// session watches until the watch ends.
func (n *Names) session(ctx context.Context, o *named, opened func()) error {
	if n.options.Exists != nil {
		found, err := n.options.Exists(ctx, o.key.identity)
		if err == nil && !found {
			err = errNoAccount
		}
		if err != nil {
			return err
		}
	}
	lifetime := n.options.lifetime(o.key.identity)
	bounded, cancel := context.WithTimeout(ctx, lifetime+lifetime/4) // should the API server not end it
	defer cancel()
	ref := o.key.ref
	watching, err := n.client(o).WatchMetadata(bounded, tenant.Ref{Resource: ref.Resource, Namespace: ref.Namespace}, metav1.ListOptions{
		FieldSelector:  fields.OneTermEqualSelector(metav1.ObjectNameField, ref.Name).String(),
		TimeoutSeconds: new(max(1, int64(lifetime/time.Second))),
	})
	if err != nil {
		return err
	}
	defer watching.Stop()
	opened()
	n.watched(o, "")
	n.look(bounded, o) // a watch does not report that the object does not exist
	return n.followName(o, watching)
}

// followName processes the events of a watch until it ends.
func (n *Names) followName(o *named, watching watch.Interface) error {
	for event := range watching.ResultChan() {
		object, ok := event.Object.(metav1.Object)
		switch {
		case event.Type == watch.Error:
			return apierrors.FromObject(event.Object)
		case !ok:
		case event.Type == watch.Deleted:
			n.show(o, Absent)
		case event.Type != watch.Bookmark:
			n.show(o, object.GetResourceVersion())
		}
	}
	return nil
}

// look reads the metadata of an object once. A failed read changes nothing.
func (n *Names) look(ctx context.Context, o *named) {
	metadata, err := n.client(o).Metadata(ctx, o.key.ref)
	switch {
	case err == nil:
		n.show(o, metadata.ResourceVersion)
	case apierrors.IsNotFound(err):
		n.show(o, Absent)
	case apierrors.IsForbidden(err):
		n.show(o, Hidden)
	}
}

func (n *Names) client(o *named) *tenant.Client {
	n.mu.Lock()
	defer n.mu.Unlock()
	return o.client
}

// retryPause is the pause after a watch failed so many times in a row: short after a failure that may pass, longer once it is known why
// the object cannot be watched, which is then recorded. It doubles with each failure, up to a limit.
func (n *Names) retryPause(o *named, err error, failures int) time.Duration {
	first := n.options.Retry
	longest := longestRetry
	if why := whyUnwatched(o, err, failures); why != "" {
		n.watched(o, why)
		first = n.options.Refused
		longest = n.options.Lifetime
	}
	pause := min(first<<min(failures-1, 10), longest)
	return pause + rand.N(pause/2+1) //nolint:gosec // spreads requests, and is no secret
}

// whyUnwatched says why an object cannot be watched; "" for a failure that may pass.
func whyUnwatched(o *named, err error, failures int) string {
	switch {
	case errors.Is(err, errNoAccount):
		return fmt.Sprintf("service account %s does not exist", o.key.identity)
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("service account %s may not watch it", o.key.identity)
	case failures > patience && apierrors.ReasonForError(err) != metav1.StatusReasonUnknown:
		return fmt.Sprintf("watching it fails again and again: %.200s", err)
	}
	return ""
}

// wait pauses, and meanwhile reads an urgent object.
func (n *Names) wait(ctx context.Context, o *named, pause time.Duration) {
	timer, ticker := time.NewTimer(pause), time.NewTicker(pollPause)
	defer timer.Stop()
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case <-o.kick:
			return
		case <-ticker.C:
			if n.urgent(o) {
				n.look(ctx, o)
			}
		}
	}
}
