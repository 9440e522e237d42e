// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"io/fs"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// Put stores fetched files like a reconcile of the object.
func (r *Reconciler) Put(ctx context.Context, object *v1alpha1.BundleSource, files fs.FS) (meta.Artifact, error) {
	s := r.newState(object)
	s.published = object.Status.Artifact
	return r.put(ctx, s, "", files)
}

// Steps are the names of the steps of a reconcile, in order.
func (r *Reconciler) Steps() (names []string) {
	for _, s := range r.steps() {
		names = append(names, s.Name)
	}
	return names
}
