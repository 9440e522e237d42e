// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

const (
	// cachePause is usually enough for the cache to see a write.
	cachePause = 50 * time.Millisecond
	// longestLag is how long the cache may be older than the last write before the API server is asked.
	longestLag = 2 * time.Second
)

// rewound drops the notes of all deployments: the storage of the API server was restored to an
// earlier time. Each deployment is compared with the cluster again.
func (r *Reconciler) rewound() {
	for _, key := range r.memory.Clear() {
		r.unwatch(key)
		r.backoff.Succeeded(key)
	}
	r.Tenants.Kinds().Forget()
}

// cached reads deployments and sources from the cache, unless that may still hold objects from before a restore.
func (r *Reconciler) cached() client.Reader {
	if r.Timeline.Unsettled() {
		return r.APIReader
	}
	return r.Client
}

// behind waits until the cache shows the last write. If the API server has an older object, too,
// the write was undone by a restore, and the note is dropped.
func (r *Reconciler) behind(ctx context.Context, s *state) (ctrl.Result, error) {
	key := s.Key()
	switch {
	case s.note.Behind.IsZero():
		s.note.Behind = s.Now
		r.memory.Keep(key, s.note)
		return ctrl.Result{RequeueAfter: cachePause}, nil
	case s.Now.Sub(s.note.Behind) < longestLag:
		return ctrl.Result{RequeueAfter: cachePause}, nil
	}
	var live v1alpha1.BundleDeployment
	if err := r.APIReader.Get(ctx, key, &live); err != nil {
		return ctrl.Result{RequeueAfter: longestLag}, client.IgnoreNotFound(wrapRead(key, err))
	}
	if pipeline.OlderVersion(live.ResourceVersion, s.note.Version) {
		ctrl.LoggerFrom(ctx).Info("the API server has an older object than was written: its note is dropped",
			"resourceVersion", live.ResourceVersion, "written", s.note.Version)
		r.memory.Forget(key)
		r.unwatch(key)
		return ctrl.Result{RequeueAfter: cachePause}, nil
	}
	s.note.Behind = s.Now
	r.memory.Keep(key, s.note)
	return ctrl.Result{RequeueAfter: cachePause}, nil
}

func wrapRead(key client.ObjectKey, err error) error {
	if apierrors.IsNotFound(err) {
		return err
	}
	return fmt.Errorf("reading bundledeployment %s: %w", key, err)
}
