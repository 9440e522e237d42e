// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"slices"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// How long deletions wait for other deployments of the namespace that may want the objects and were not reconciled yet: those of
// objects that hold data, and others.
const (
	patience     = time.Minute
	dataPatience = 10 * time.Minute
)

// dataKinds hold data, or identity, that is lost with the object.
var dataKinds = map[string]bool{
	"PersistentVolumeClaim": true, "PersistentVolume": true, "Namespace": true, "Secret": true, "StatefulSet.apps": true,
}

// Decision says what becomes of the objects that a deployment is about to delete.
type Decision struct {
	index     *Index
	of        types.NamespacedName
	cluster   Cluster
	undecided string // the deployment that may want objects; "" for none
	waited    time.Duration
}

// Decide looks at the other deployments in the namespace of a deployment. The reader is a cache: its objects are not changed.
func (x *Index) Decide(ctx context.Context, reader client.Reader, of *v1alpha1.BundleDeployment, target string, now time.Time) (Decision, error) {
	var deployments v1alpha1.BundleDeploymentList
	var sources v1alpha1.BundleSourceList
	for _, list := range []client.ObjectList{&deployments, &sources} {
		if err := reader.List(ctx, list, client.InNamespace(of.Namespace), client.UnsafeDisableDeepCopy); err != nil {
			return Decision{}, fmt.Errorf("looking for deployments that may want what is to be deleted: %w", err)
		}
	}
	return x.decide(of, target, deployments.Items, sources.Items, now), nil
}

// decide is Decide with all deployments and sources of the namespace.
func (x *Index) decide(of *v1alpha1.BundleDeployment, target string, deployments []v1alpha1.BundleDeployment, sources []v1alpha1.BundleSource, now time.Time) Decision {
	d := Decision{index: x, of: client.ObjectKeyFromObject(of), cluster: ClusterOf(of, target)}
	bySource := make(map[string]*v1alpha1.BundleSource, len(sources))
	for i := range sources {
		bySource[sources[i].Name] = &sources[i]
	}
	mine := bySource[effective.SourceName(of)]
	fetched := fetchedBy(mine)
	first := uint64(0)
	for i := range deployments {
		other := &deployments[i]
		key := client.ObjectKeyFromObject(other)
		if key == d.of || elsewhere(other, d.cluster) || !undecided(other, mine, fetched, bySource[effective.SourceName(other)], x.seen(key)) {
			continue
		}
		// Each waits for another one, so that a thousand that wait are not all woken by each of a thousand that were reconciled.
		if order := maphash.Comparable(seed, [2]string{d.of.Name, other.Name}); d.undecided == "" || order < first {
			d.undecided, first = other.Name, order
		}
	}
	d.waited = x.waited(d.of, d.undecided, now)
	return d
}

// seed orders the deployments that others wait for.
var seed = maphash.MakeSeed()

// elsewhere tells whether the objects of a deployment are known to be on another cluster.
func elsewhere(other *v1alpha1.BundleDeployment, than Cluster) bool {
	if effective.IsRemote(other.Spec.Target.ClusterReference) != than.Remote {
		return true
	}
	return other.Status.Inventory != nil && other.Status.Inventory.Target != "" && other.Status.Inventory.Target != than.Target
}

// ClusterOf is the cluster of a deployment with the identity in its inventory.
func ClusterOf(d *v1alpha1.BundleDeployment, target string) Cluster {
	return Cluster{Target: target, Remote: effective.IsRemote(d.Spec.Target.ClusterReference)}
}

// Of returns the deployment to which an object is released instead of its deletion, or what the deletion waits for; both are
// empty if it can be deleted.
func (d Decision) Of(id inventory.ID) (to, waits string) {
	if d.index == nil {
		return "", ""
	}
	if by, found := d.index.Wanted(d.of, d.cluster, id); found {
		return by.Name, ""
	}
	most := patience
	if dataKinds[id.GroupKind().String()] {
		most = dataPatience
	}
	if d.undecided == "" || d.waited >= most {
		return "", ""
	}
	return "", fmt.Sprintf("is not deleted before BundleDeployment %s, which may want it, was reconciled with its newest revision (at most %s)", d.undecided, most)
}

// undecided tells whether another deployment may want an object of a deployment with the source mine, and it is not known yet: this
// process has not reconciled it as it is, or its source has not seen the commit that the deployment has.
//
//	suspended, or being deleted         it does not act
//	its source is behind mine           undecided: the same commit may bring the object there
//	Ready with its newest revision      decided: it has what it wants
//	reconciled with it by this process  decided: what it wants is in the index
//	failed with it (Ready is False)     decided: it failed before its plan, and may never tell what it wants
//	anything else                       undecided, also while the revision is being converted
func undecided(other *v1alpha1.BundleDeployment, mine *v1alpha1.BundleSource, fetched map[string]string, its *v1alpha1.BundleSource, seen State) bool {
	if other.Spec.Suspend || !other.DeletionTimestamp.IsZero() {
		return false
	}
	if behind(mine, fetched, its) {
		return true
	}
	newest := other.Status.Attempted.Revision
	if its != nil && its.Status.Artifact != nil {
		newest = its.Status.Artifact.Revision
	}
	status := &other.Status
	if conditions.IsTrue(other, meta.ReadyCondition) && status.ObservedGeneration == other.Generation && status.Healthy.Revision == newest {
		return false
	}
	reconciled := seen.UID == other.UID && seen.Generation == other.Generation
	failed := conditions.IsFalse(other, meta.ReadyCondition) && newest == status.Attempted.Revision
	return !reconciled || newest != seen.Revision && !failed && newest != status.Rejected.Revision
}

// behind tells whether one source has fetched less than another one, which fetched the given digests of its upstreams: its deployments
// do not know of the newest commit.
func behind(mine *v1alpha1.BundleSource, fetched map[string]string, its *v1alpha1.BundleSource) bool {
	if mine == nil || its == nil || mine.Name == its.Name || its.Spec.Suspend {
		return false
	}
	for upstream, digest := range fetchedBy(its) {
		if newer, both := fetched[upstream]; both && newer != digest {
			return true
		}
	}
	return false
}

// fetchedBy are the digests that a source resolved, by upstream: its sources without the folders that they take and fill.
func fetchedBy(source *v1alpha1.BundleSource) map[string]string {
	found := map[string]string{}
	if source == nil {
		return found
	}
	for i := range source.Spec.Sources {
		part := source.Spec.Sources[i].DeepCopy()
		at := slices.IndexFunc(source.Status.Resolved, func(r v1alpha1.ResolvedSource) bool { return r.Destination == part.Destination })
		if at < 0 || source.Status.Resolved[at].Digest == "" || part.Git == nil && part.Image == nil {
			continue
		}
		part.Destination = ""
		if part.Git != nil {
			part.Git.Path = ""
		}
		if upstream, err := json.Marshal(part); err == nil {
			found[string(upstream)] = source.Status.Resolved[at].Digest
		}
	}
	return found
}
