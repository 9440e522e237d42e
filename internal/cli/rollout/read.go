// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/tenant/clusterprofile"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/rollout"
	"github.com/satchel-dev/satchel/internal/rollout/forecast"
	"github.com/satchel-dev/satchel/internal/rollout/revision"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// Resources that are read beside Satchel's own.
var (
	secretResource   = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	revisionResource = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "controllerrevisions"}
	clusterAPIKind   = schema.GroupKind{Group: "cluster.x-k8s.io", Kind: "Cluster"}
)

// mostClusters bounds the clusters that are read of one entry.
const mostClusters = 10_000

// reader reads a rollout with the user's permissions.
type reader struct {
	*kit.Explorer
}

func newReader(a *kit.App) (*reader, error) {
	x, err := a.Explore()
	if err != nil {
		return nil, err
	}
	return &reader{x}, nil
}

// see reads the clusters and the BundleDeployments of a rollout.
func (r *reader) see(ctx context.Context, a *kit.App, o *v1alpha1.BundleRollout) (*forecast.Seen, error) {
	strategy, err := rollout.ReadStrategy(&o.Spec.Strategy)
	if err != nil {
		return nil, fmt.Errorf("%s %s/%s: %w", v1alpha1.BundleRolloutKind, o.Namespace, o.Name, err)
	}
	seen := &forecast.Seen{Rollout: o, Strategy: strategy, Now: a.Now()}
	if seen.Children, err = r.children(ctx, o.Name); err != nil {
		return nil, err
	}
	if seen.Clusters, err = r.clusters(ctx, o); err != nil {
		return nil, err
	}
	if known := o.Status.UpdateRevision; known != nil {
		if seen.Update, err = r.identity(ctx, o.Name, known.Name); err != nil {
			return nil, err
		}
	}
	if known := o.Status.CurrentRevision; known != nil {
		current, err := r.identity(ctx, o.Name, known.Name)
		if err != nil {
			return nil, err
		}
		seen.Current = &current
	}
	return seen, nil
}

// children are the BundleDeployments of a rollout, by the name of their cluster.
func (r *reader) children(ctx context.Context, name string) (map[string]*v1alpha1.BundleDeployment, error) {
	listed, err := r.List(ctx, kit.Deployments, false, v1alpha1.RolloutLabel+"="+name)
	if err != nil {
		return nil, err
	}
	children := make(map[string]*v1alpha1.BundleDeployment, len(listed))
	for _, raw := range listed {
		found, err := kit.Typed(kit.Deployments, raw)
		if err != nil {
			return nil, err
		}
		d, isDeployment := found.(*v1alpha1.BundleDeployment)
		if cluster := raw.GetLabels()[v1alpha1.ClusterLabel]; isDeployment && d.Name == revision.ChildName(name, cluster) {
			children[cluster] = d
		}
	}
	return children, nil
}

// clusters are those that the rollout selects: as the controller lists them, but with the user's permissions. Where two entries have a
// cluster of the same name, the first one is used.
func (r *reader) clusters(ctx context.Context, o *v1alpha1.BundleRollout) ([]revision.Cluster, error) {
	found := map[string]revision.Cluster{}
	for i := range o.Spec.Clusters {
		some, err := r.clustersOf(ctx, &o.Spec.Clusters[i])
		if err != nil {
			return nil, fmt.Errorf("spec.clusters[%d]: %w", i, err)
		}
		maps.Copy(some, found)
		found = some
	}
	all := make([]revision.Cluster, 0, len(found))
	for _, name := range slices.Sorted(maps.Keys(found)) {
		all = append(all, found[name])
	}
	return all, nil
}

func (r *reader) clustersOf(ctx context.Context, entry *v1alpha1.RolloutClusters) (map[string]revision.Cluster, error) {
	switch {
	case entry.Cluster != nil:
		one := entry.Cluster
		return map[string]revision.Cluster{one.Name: {
			Name: one.Name, Labels: one.Labels, Annotations: one.Annotations, KubeConfig: effective.RemoteCluster(one.ClusterReference), RemoteServiceAccountName: one.ServiceAccountName,
		}}, nil
	case entry.KubeConfigSecrets != nil:
		from := entry.KubeConfigSecrets
		return r.listed(ctx, secretResource, &from.Selector, func(name string) v1alpha1.KubeConfigSecretReference {
			return v1alpha1.KubeConfigSecretReference{Name: name, Key: from.Key}
		})
	case entry.ClusterAPI != nil:
		mapping, err := r.Mapper.RESTMapping(clusterAPIKind)
		if meta.IsNoMatchError(err) {
			return nil, errors.New("this cluster does not serve the kind Cluster of cluster.x-k8s.io: install Cluster API, or remove the entry")
		}
		if err != nil {
			return nil, fmt.Errorf("finding the kind Cluster of cluster.x-k8s.io: %w", err)
		}
		return r.listed(ctx, mapping.Resource, &entry.ClusterAPI.Selector, func(name string) v1alpha1.KubeConfigSecretReference {
			return v1alpha1.KubeConfigSecretReference{Name: name + "-kubeconfig", Key: "value"}
		})
	case entry.ClusterProfiles != nil:
		return r.profiles(ctx, entry.ClusterProfiles)
	}
	return nil, errors.New("this version of the command cannot list the clusters of the entry: use the version of the controller")
}

// listed are the clusters that objects stand for. Only metadata is read.
func (r *reader) listed(ctx context.Context, resource schema.GroupVersionResource, selector *metav1.LabelSelector, secret func(string) v1alpha1.KubeConfigSecretReference) (map[string]revision.Cluster, error) {
	selects, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, fmt.Errorf("the selector is not valid: %w", err)
	}
	found := map[string]revision.Cluster{}
	listing := kit.Listing{Resource: resource, Namespace: r.Namespace, Selector: selects.String(), Limit: mostClusters}
	return found, r.each(ctx, listing, func(one kit.Sighting) error {
		cluster := revision.Cluster{
			Name: one.GetName(), Labels: one.GetLabels(), Annotations: one.GetAnnotations(),
			KubeConfig: &v1alpha1.ClusterReference{KubeConfig: v1alpha1.KubeConfigReference{SecretRef: secret(one.GetName())}},
		}
		if resource != secretResource { // that of a Secret says nothing of its cluster
			cluster.UID, cluster.Created = one.GetUID(), one.GetCreationTimestamp().Time
		}
		found[cluster.Name] = cluster
		return nil
	})
}

// profiles are the clusters of ClusterProfiles.
func (r *reader) profiles(ctx context.Context, from *v1alpha1.ClusterProfileClusters) (map[string]revision.Cluster, error) {
	if _, err := r.Mapper.RESTMapping(clusterprofile.Kind); meta.IsNoMatchError(err) {
		return nil, errors.New("this cluster does not serve the kind ClusterProfile of multicluster.x-k8s.io: install cluster-inventory-api, or remove the entry")
	}
	selects, err := metav1.LabelSelectorAsSelector(&from.Selector)
	if err != nil {
		return nil, fmt.Errorf("the selector is not valid: %w", err)
	}
	found := map[string]revision.Cluster{}
	listing := kit.Listing{Resource: clusterprofile.Resource, Namespace: r.Namespace, Selector: selects.String(), Whole: true, Limit: mostClusters}
	return found, r.each(ctx, listing, func(one kit.Sighting) error {
		profile, err := clusterprofile.Decode(one.Body)
		if err != nil {
			return fmt.Errorf("ClusterProfile %s: %w", one.GetName(), err)
		}
		found[profile.Name] = revision.Cluster{
			Name: profile.Name, Labels: profile.Labels, Annotations: profile.Annotations, UID: profile.UID, Created: profile.CreationTimestamp.Time,
			Unhealthy:  clusterprofile.Unhealthy(profile),
			KubeConfig: &v1alpha1.ClusterReference{ClusterProfileRef: &v1alpha1.ClusterProfileReference{Name: profile.Name, AccessProvider: from.AccessProvider}},
		}
		return nil
	})
}

// each lists what clusters are made of.
func (r *reader) each(ctx context.Context, listing kit.Listing, do func(kit.Sighting) error) error {
	var problem error
	more, err := r.Each(ctx, listing, func(one kit.Sighting) {
		if problem == nil {
			problem = do(one)
		}
	})
	resource := listing.Resource.GroupResource()
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("you may not list %s in the namespace %q: ask an administrator for that permission; rollout status needs none of it", resource, r.Namespace)
	case err != nil:
		return fmt.Errorf("listing %s in the namespace %q: %w", resource, r.Namespace, err)
	case more:
		return fmt.Errorf("it selects more than %d clusters", mostClusters)
	}
	return problem
}

// stored reads a revision.
func (r *reader) stored(ctx context.Context, name, revisionName string) (revision.Data, string, error) {
	object := revision.SourceName(name, revisionName)
	found, err := r.One(ctx, revisionResource, r.Namespace, object, true)
	switch {
	case apierrors.IsNotFound(err):
		return revision.Data{}, "", fmt.Errorf("there is no revision %s of BundleRollout %s: the ControllerRevision %s does not exist in the namespace %q; rollout history lists those that there are", revisionName, name, object, r.Namespace)
	case err != nil:
		return revision.Data{}, "", fmt.Errorf("reading the ControllerRevision %s in the namespace %q, which holds the revision: %w", object, r.Namespace, err)
	}
	raw, err := json.Marshal(found.Body.Object["data"])
	if err != nil {
		return revision.Data{}, "", fmt.Errorf("reading the ControllerRevision %s: %w", object, err)
	}
	digest := found.GetAnnotations()[revision.DigestAnnotation]
	data, err := revision.Decode(raw, digest)
	if err != nil {
		return revision.Data{}, "", fmt.Errorf("the ControllerRevision %s in the namespace %q was changed: %w", object, r.Namespace, err)
	}
	return data, digest, nil
}

// identity is a stored revision for a decision.
func (r *reader) identity(ctx context.Context, name, revisionName string) (rollout.Revision, error) {
	data, digest, err := r.stored(ctx, name, revisionName)
	return rollout.Revision{Name: revisionName, Digest: digest, Content: data.Content}, err
}
