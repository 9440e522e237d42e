// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// Sweep removes the artifacts of sources that were deleted, or moved to another shard, while
// no controller ran. The leader runs it once, when the caches are filled.
func (r *Reconciler) Sweep(ctx context.Context) error {
	owners, err := r.Store.Owners()
	if err != nil {
		return fmt.Errorf("listing the owners of stored artifacts: %w", err)
	}
	var failures []error
	for _, owner := range owners {
		var source v1alpha1.BundleSource
		err := r.APIReader.Get(ctx, types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name}, &source)
		if apierrors.IsNotFound(err) || err == nil && !r.Shard.Owns(&source) && !r.advertised(&source) {
			err = r.Store.Remove(ctx, owner)
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("sweeping artifacts of %s: %w", owner, err))
		}
	}
	return errors.Join(failures...)
}
