// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/controller/sourceusers"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// inUse returns a function that tells whether an artifact, by the digest of its uncompressed tar, is
// advertised, an upload in the spec, or the applied, attempted or last healthy revision of a deployment.
func (r *Reconciler) inUse(ctx context.Context, s *state) (func(identity string) bool, error) {
	used := map[string]bool{effective.UploadDigest(&s.object.Spec): true}
	if s.published != nil {
		used[artifact.Identity(s.published.Revision)] = true
	}
	err := sourceusers.Each(ctx, r.Client, client.ObjectKeyFromObject(s.object), func(d *v1alpha1.BundleDeployment) {
		for _, revision := range []string{d.Status.Applied.Revision, d.Status.Healthy.Revision, d.Status.Attempted.Revision} {
			used[artifact.Identity(revision)] = true
		}
	})
	if err != nil {
		return nil, err
	}
	return func(id string) bool { return used[id] }, nil
}
