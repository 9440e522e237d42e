// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/rollout/revision"
)

// Known are the clusters of a rollout as they were listed last. The zero value knows none.
type Known struct {
	// Clusters are by name; nil if they could never be listed.
	Clusters map[string]revision.Cluster

	at         time.Time
	generation int64
	keys       revision.Keys
}

// Renew lists the clusters of a rollout again, if the last list is old, of another generation of the rollout, or without something that
// the spec or one of the revisions names. Where that fails, those that are known stay.
func (l Lister) Renew(ctx context.Context, known *Known, now time.Time, of *v1alpha1.BundleRollout, revisions ...revision.Data) error {
	keys := revision.KeysOf(&of.Spec, revisions...)
	if now.Before(known.at.Add(pause(len(known.Clusters)))) && known.generation == of.Generation && known.keys.Cover(keys) {
		return nil
	}
	account, err := revision.AccountOf(&of.Spec)
	if err != nil {
		return err
	}
	found, err := l.List(ctx, of.Namespace, account, of.Spec.Clusters, keys)
	if err != nil {
		return err
	}
	*known = Known{Clusters: found, at: now, generation: of.Generation, keys: keys}
	return nil
}

// RevisionsOf are the names of the revisions that a status works with.
func RevisionsOf(status *v1alpha1.BundleRolloutStatus) sets.Set[string] {
	names := sets.New[string]()
	for i := range status.Starting {
		names.Insert(status.Starting[i].Revision)
	}
	for _, one := range []*v1alpha1.RolloutRevision{status.UpdateRevision, status.CurrentRevision} {
		if one != nil {
			names.Insert(one.Name)
		}
	}
	return names
}

// pause is the least time between two lists of the clusters of a rollout, a second for a hundred of them.
func pause(clusters int) time.Duration {
	return min(time.Duration(clusters/100)*time.Second, 10*time.Second)
}
