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
	"k8s.io/apimachinery/pkg/watch"

	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

const (
	pageSize = 500
	// patience is how many failures in a row a watch may have.
	patience = 5
	// longestRetry is the longest pause while the API server is unreachable.
	longestRetry = 15 * time.Second
)

// errNoAccount: the account does not exist, so nothing is watched as it.
var errNoAccount = errors.New("the service account does not exist")

// errAgain: everything has to be listed again.
var errAgain = errors.New("list again")

// run watches until the stream is cancelled.
func (h *Hub) run(ctx context.Context, s *stream) {
	failures, version := 0, ""
	for ctx.Err() == nil {
		var err error
		version, err = h.session(ctx, s, version, func() { failures = 0 })
		if ctx.Err() != nil {
			return
		}
		if err == nil || errors.Is(err, errAgain) {
			h.pause(ctx, s, 0)
			continue
		}
		failures++
		h.pause(ctx, s, h.failed(s, err, failures))
	}
}

// session lists, unless it can continue from a version, and watches until that ends. It
// returns the version to continue from: "" to list again.
func (h *Hub) session(ctx context.Context, s *stream, version string, opened func()) (string, error) {
	if err := h.permitted(ctx, s); err != nil {
		return version, err
	}
	client, again := h.prepare(s)
	if again || version == "" {
		listed, err := h.list(ctx, s, client)
		if err != nil {
			return "", err
		}
		version = listed
	}
	lifetime := h.options.lifetime(s.key.identity)
	bounded, cancel := context.WithTimeout(ctx, lifetime+lifetime/4) // should the API server not end it
	defer cancel()
	watching, err := client.WatchMetadata(bounded, s.key.ref(), metav1.ListOptions{
		LabelSelector: s.key.selector(), ResourceVersion: version, AllowWatchBookmarks: true,
		TimeoutSeconds: new(max(1, int64(lifetime/time.Second))),
	})
	if err != nil {
		return restart(version, err), err
	}
	defer watching.Stop()
	opened()
	h.state(s, true, "")
	return h.follow(s, watching, version, time.Now().Add(h.options.Relist))
}

// permitted checks whether the account exists.
func (h *Hub) permitted(ctx context.Context, s *stream) error {
	if h.options.Exists == nil {
		return nil
	}
	found, err := h.options.Exists(ctx, s.key.identity)
	if err == nil && !found {
		err = errNoAccount
	}
	return err
}

// prepare returns the latest client, and tells whether a list was requested.
func (h *Hub) prepare(s *stream) (*tenant.Client, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	again := s.relist
	s.relist = false
	select {
	case <-s.kick:
	default:
	}
	return s.client, again
}

// list reads the metadata of all objects, page by page, and keeps ours.
func (h *Hub) list(ctx context.Context, s *stream, client *tenant.Client) (string, error) {
	seen := map[string]struct{}{}
	options := metav1.ListOptions{LabelSelector: s.key.selector(), Limit: pageSize}
	for {
		page, err := client.ListMetadata(ctx, s.key.ref(), options)
		if err != nil {
			return "", err
		}
		for i := range page.Items {
			h.show(s, &page.Items[i], inList)
			seen[page.Items[i].Name] = struct{}{}
		}
		if page.Continue == "" {
			h.listed(s, seen, page.ResourceVersion)
			return page.ResourceVersion, nil
		}
		options.Continue = page.Continue
	}
}

// follow processes events until the watch ends, and returns the last version. It lists again
// for deployments that need that no earlier than given, for all of them at once.
func (h *Hub) follow(s *stream, watching watch.Interface, version string, earliest time.Time) (string, error) {
	var due <-chan time.Time
	for {
		select {
		case <-s.kick:
			due = time.After(time.Until(earliest))
		case <-due:
			return version, errAgain
		case event, more := <-watching.ResultChan():
			if !more {
				return version, nil
			}
			if event.Type == watch.Error {
				err := apierrors.FromObject(event.Object)
				return restart(version, err), err
			}
			if object, ok := event.Object.(metav1.Object); ok {
				version = object.GetResourceVersion()
				if event.Type != watch.Bookmark {
					h.show(s, object, shownBy(event.Type))
				}
			}
		}
	}
}

func shownBy(event watch.EventType) how {
	if event == watch.Deleted {
		return asDeleted
	}
	return asWritten
}

// restart drops a version that the API server does not know any more.
func restart(version string, err error) string {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return ""
	}
	return version
}

// failed records why there is no watch, and returns how long to wait. A refused watch is
// a gap at once; a failing one only after it failed several times in a row.
func (h *Hub) failed(s *stream, err error, failures int) time.Duration {
	why, pause := "", h.options.Retry
	switch {
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
	case errors.Is(err, errNoAccount):
		why, pause = fmt.Sprintf("service account %s does not exist", s.key.identity), h.options.Refused
	case apierrors.IsForbidden(err):
		why, pause = fmt.Sprintf("service account %s may not list and watch them", s.key.identity), h.options.Refused
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		why, pause = "the API server does not let them be watched", h.options.Refused
	case failures > patience && apierrors.ReasonForError(err) != metav1.StatusReasonUnknown:
		why = fmt.Sprintf("watching them fails again and again: %.200s", err)
	}
	if why != "" || failures > 1 {
		h.state(s, false, why)
	}
	longest := h.options.Lifetime
	if why == "" {
		longest = longestRetry
	}
	pause = min(pause<<min(failures-1, 10), longest)
	return pause + rand.N(pause/2+1) //nolint:gosec // spreads requests, and is no secret
}

// pause waits, unless a new list is requested. A watch that
// ended normally is opened again soon, but not all of them at once.
func (h *Hub) pause(ctx context.Context, s *stream, pause time.Duration) {
	if pause == 0 {
		pause = rand.N(50 * time.Millisecond) //nolint:gosec // spreads requests, and is no secret
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	kick := s.kick
	if pause > h.options.Retry {
		kick = nil // a refused watch is not retried early
	}
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-kick:
	}
}
