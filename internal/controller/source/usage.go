// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// inUse returns a function that tells whether an artifact, by the digest of its uncompressed tar, is
// advertised, an upload in the spec, or the applied, attempted or last healthy revision of a deployment.
func (r *Reconciler) inUse(ctx context.Context, s *state) (func(identity string) bool, error) {
	var deployments v1alpha1.BundleDeploymentList
	if err := r.Client.List(ctx, &deployments, client.InNamespace(s.object.Namespace)); err != nil {
		return nil, fmt.Errorf("listing the deployments that use bundlesource %s/%s: %w", s.object.Namespace, s.object.Name, err)
	}
	used := map[string]bool{effective.UploadDigest(&s.object.Spec): true}
	if s.published != nil {
		used[artifact.Identity(s.published.Revision)] = true
	}
	for i := range deployments.Items {
		d := &deployments.Items[i]
		if effective.SourceName(d) != s.object.Name {
			continue
		}
		for _, revision := range []string{d.Status.LastAppliedRevision, d.Status.LastHealthyRevision, d.Status.LastAttemptedRevision} {
			used[artifact.Identity(revision)] = true
		}
	}
	return func(id string) bool { return used[id] }, nil
}
