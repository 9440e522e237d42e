// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"io/fs"

	"github.com/fluxcd/pkg/apis/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/artifact/server"
	"github.com/satchel-dev/satchel/internal/artifact/storage"
	"github.com/satchel-dev/satchel/internal/controller/source/tokenreview"
)

// Put stores fetched files like a reconcile of the object.
func (r *Reconciler) Put(ctx context.Context, object *v1alpha1.BundleSource, files fs.FS) (meta.Artifact, error) {
	s := newState(object, r.APIReader)
	s.published = object.Status.Artifact
	return r.put(ctx, s, "", files)
}

// NewTokens authorizes readers of artifacts like --artifact-auth=token.
func NewTokens(c client.Client, audience string, readers []string) server.Readers {
	return tokenreview.New(c, audience, readers).Identify
}

// AddServer adds the artifact server to a manager as Setup does.
func (o Options) AddServer(mgr ctrl.Manager, store *storage.Store) error {
	return o.addServer(mgr, server.NewHandler(store, server.Options{}))
}

// Check validates options like the first part of Setup.
func (o Options) Check() error {
	_, err := o.readers(nil)
	_, failed := o.scheme()
	return errors.Join(err, failed)
}

// Steps are the names of the steps of a reconcile, in order.
func (r *Reconciler) Steps() (names []string) {
	for _, s := range r.steps() {
		names = append(names, s.Name)
	}
	return names
}
