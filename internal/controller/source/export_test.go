// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"io/fs"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// Put is what a reconcile of the object does with the files that it fetched.
func (r *Reconciler) Put(ctx context.Context, object *v1alpha1.BundleSource, files fs.FS) (meta.Artifact, error) {
	s := newState(object, r.APIReader)
	s.published = object.Status.Artifact
	return r.put(ctx, s, "", files)
}
