// SPDX-License-Identifier: Apache-2.0

// Package fleet lists the clusters of a BundleRollout. Everything that is not written in its spec is listed as the ServiceAccount
// of its template. No kubeconfig is read: Secrets and Clusters are listed as metadata, and ClusterProfiles have no credentials.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/apply/tenant/clusterprofile"
	"github.com/satchel-dev/satchel/internal/apply/tenant/discovery"
	"github.com/satchel-dev/satchel/internal/rollout/revision"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// Lister lists clusters.
type Lister struct {
	// Tenants holds the clients that impersonate ServiceAccounts.
	Tenants *tenant.Pool
	// Most is how many clusters a rollout may have; any number if 0.
	Most int
}

// Error says why clusters cannot be listed.
type Error struct {
	// Reason is one of the reasons of the API.
	Reason string
	// Stalled: retrying cannot help until the user changes something.
	Stalled bool
	err     error
}

// Error implements error.
func (e *Error) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.err }

// List returns the clusters of all entries, by name, with the labels and annotations that keys name. Where two entries have
// a cluster of the same name, the first one is used. Where one entry cannot be listed, no clusters are returned: an incomplete list looks
// like clusters that are gone.
func (l Lister) List(ctx context.Context, namespace, account string, entries []v1alpha1.RolloutClusters, keys revision.Keys) (map[string]revision.Cluster, error) {
	found := map[string]revision.Cluster{}
	for i := range entries {
		some := clusters{keys: keys, found: map[string]revision.Cluster{}}
		if err := l.listOne(ctx, tenant.Identity{Namespace: namespace, ServiceAccount: account}, &entries[i], some); err != nil {
			return nil, err
		}
		maps.Copy(some.found, found) // the first entry wins
		found = some.found
	}
	if l.Most > 0 && len(found) > l.Most {
		return nil, &Error{Reason: v1alpha1.ReasonLimitExceeded, Stalled: true, err: fmt.Errorf(
			"spec.clusters selects %d clusters, and a rollout may have %d: distribute them over several BundleRollouts, or have --max-clusters of the controller raised", len(found), l.Most)}
	}
	return found, nil
}

func (l Lister) listOne(ctx context.Context, as tenant.Identity, entry *v1alpha1.RolloutClusters, into clusters) error {
	switch {
	case entry.Cluster != nil:
		one := entry.Cluster
		into.add(&revision.Cluster{
			Name: one.Name, Labels: one.Labels, Annotations: one.Annotations, KubeConfig: effective.RemoteCluster(one.ClusterReference), RemoteServiceAccountName: one.ServiceAccountName,
		})
		return nil
	case entry.KubeConfigSecrets != nil:
		return l.secrets(ctx, as, entry.KubeConfigSecrets, into)
	case entry.ClusterAPI != nil:
		return l.clusterAPI(ctx, as, entry.ClusterAPI, into)
	case entry.ClusterProfiles != nil:
		return l.clusterProfiles(ctx, as, entry.ClusterProfiles, into)
	}
	return &Error{Reason: v1alpha1.ReasonInvalidSpec, Stalled: true, err: errors.New(
		"an entry of spec.clusters is empty: set cluster, kubeConfigSecrets, clusterAPI or clusterProfiles")}
}

// secrets are the clusters of Secrets with a kubeconfig.
func (l Lister) secrets(ctx context.Context, as tenant.Identity, from *v1alpha1.KubeConfigSecretClusters, into clusters) error {
	return l.list(ctx, as, schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, &from.Selector, func(object *metav1.PartialObjectMetadata) error {
		return into.addObject(object, "secret", v1alpha1.KubeConfigSecretReference{Name: object.Name, Key: from.Key}, "")
	})
}

// clusterAPIKind is the kind of clusters of Cluster API.
var clusterAPIKind = schema.GroupKind{Group: "cluster.x-k8s.io", Kind: "Cluster"}

// served is the resource of a kind that has to be installed.
func (l Lister) served(ctx context.Context, kind schema.GroupKind) (schema.GroupVersionResource, error) {
	found, err := l.Tenants.Kinds().Preferred(ctx, kind)
	switch {
	case discovery.IsNoKind(err):
		return schema.GroupVersionResource{}, &Error{Reason: v1alpha1.ReasonNotFound, err: fmt.Errorf(
			"spec.clusters: this cluster does not serve the kind %s of %s: install it, or remove the entry", kind.Kind, kind.Group)}
	case err != nil:
		return schema.GroupVersionResource{}, &Error{Reason: v1alpha1.ReasonFailed, err: fmt.Errorf("finding the kind %s of %s: %w", kind.Kind, kind.Group, err)}
	}
	return found.Resource, nil
}

// clusterAPI are the clusters of Cluster API, which writes a Secret with a kubeconfig for each.
func (l Lister) clusterAPI(ctx context.Context, as tenant.Identity, from *v1alpha1.ClusterAPIClusters, into clusters) error {
	kind, err := l.served(ctx, clusterAPIKind)
	if err != nil {
		return err
	}
	return l.list(ctx, as, kind, &from.Selector, func(object *metav1.PartialObjectMetadata) error {
		// The UID of a Secret says nothing of its cluster, since credentials are renewed; that of a Cluster does.
		return into.addObject(object, "cluster", v1alpha1.KubeConfigSecretReference{Name: object.Name + "-kubeconfig", Key: "value"}, object.UID)
	})
}

// Gone tells whether what leads to a cluster, a Secret or a ClusterProfile, does not exist, as a ServiceAccount sees it that may read it.
func (l Lister) Gone(ctx context.Context, namespace, account string, of *v1alpha1.ClusterReference) (bool, error) {
	as := tenant.Identity{Namespace: namespace, ServiceAccount: account}
	client, err := l.Tenants.Client(as)
	if err != nil {
		return false, &Error{Reason: v1alpha1.ReasonInvalidSpec, Stalled: true, err: err}
	}
	ref := tenant.Ref{Resource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, Namespace: namespace, Name: of.KubeConfig.SecretRef.Name}
	if of.ClusterProfileRef != nil {
		if _, err := l.served(ctx, clusterprofile.Kind); err != nil {
			return false, err // without its kind nothing is known of the object
		}
		ref.Resource = clusterprofile.Resource
		ref.Name = of.ClusterProfileRef.Name
	}
	_, err = client.Metadata(ctx, ref)
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil && !apierrors.IsForbidden(err):
		return false, &Error{Reason: v1alpha1.ReasonFailed, err: fmt.Errorf("looking for %s %s/%s as serviceaccount %s: %w", ref.Resource.Resource, namespace, ref.Name, as, err)}
	}
	return false, nil
}

// clusterName is what may be the value of a label, and part of the name of an object.
var clusterName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// clusters are those that were listed, by name.
type clusters struct {
	keys  revision.Keys
	found map[string]revision.Cluster
}

// add keeps what is needed of a cluster.
func (c clusters) add(one *revision.Cluster) {
	c.keys.Keep(one)
	c.found[one.Name] = *one
}

// addObject adds the cluster that an object stands for. One that is being deleted still is a cluster. The UID is that of the cluster; empty
// if it is not known.
func (c clusters) addObject(object *metav1.PartialObjectMetadata, what string, secret v1alpha1.KubeConfigSecretReference, uid types.UID) error {
	if err := checkName(what, object.Namespace, object.Name); err != nil {
		return err
	}
	one := revision.Cluster{
		Name: object.Name, Labels: object.Labels, Annotations: object.Annotations, UID: uid,
		KubeConfig: &v1alpha1.ClusterReference{KubeConfig: v1alpha1.KubeConfigReference{SecretRef: secret}},
	}
	if uid != "" {
		one.Created = object.CreationTimestamp.Time
	}
	c.add(&one)
	return nil
}

// checkName refuses names that cannot be those of clusters.
func checkName(what, namespace, name string) error {
	if len(name) <= 63 && clusterName.MatchString(name) {
		return nil
	}
	return &Error{Reason: v1alpha1.ReasonInvalidSpec, Stalled: true, err: fmt.Errorf(
		"%s %s/%s is selected by spec.clusters, and its name cannot be that of a cluster: it may have at most 63 characters; rename it, or remove the label that selects it", what, namespace, name)}
}

// pageSize is how many objects are listed at once. Each may have 256 KiB of annotations.
const pageSize = 50

// list lists the metadata of objects of a namespace as an account of it. Nothing of a page is kept but what add keeps.
func (l Lister) list(
	ctx context.Context, as tenant.Identity, resource schema.GroupVersionResource, selector *metav1.LabelSelector, add func(*metav1.PartialObjectMetadata) error,
) error {
	return l.pages(ctx, as, resource, selector, func(client *tenant.Client, options metav1.ListOptions) (string, error) {
		page, err := client.ListMetadata(ctx, tenant.Ref{Resource: resource, Namespace: as.Namespace}, options)
		if err != nil {
			return "", err
		}
		for i := range page.Items {
			if err := add(&page.Items[i]); err != nil {
				return "", err
			}
		}
		return page.Continue, nil
	})
}

// pages lists objects page by page.
func (l Lister) pages(
	ctx context.Context, as tenant.Identity, resource schema.GroupVersionResource, selector *metav1.LabelSelector,
	read func(client *tenant.Client, options metav1.ListOptions) (next string, err error),
) error {
	selects, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return &Error{Reason: v1alpha1.ReasonInvalidSpec, Stalled: true, err: fmt.Errorf("a selector in spec.clusters is not valid: %w", err)}
	}
	client, err := l.client(ctx, as)
	if err != nil {
		return err
	}
	options := metav1.ListOptions{LabelSelector: selects.String(), Limit: pageSize}
	for {
		next, err := read(client, options)
		var known *Error
		switch {
		case errors.As(err, &known):
			return err
		case apierrors.IsForbidden(err):
			return &Error{Reason: v1alpha1.ReasonUnauthorized, err: fmt.Errorf(
				"serviceaccount %s may not list %s in namespace %s: give it that permission, or name each cluster in spec.clusters[].cluster", as, resource.GroupResource(), as.Namespace)}
		case err != nil:
			return &Error{Reason: v1alpha1.ReasonFailed, err: fmt.Errorf("listing %s in namespace %s as serviceaccount %s: %w", resource.GroupResource(), as.Namespace, as, err)}
		}
		if options.Continue = next; next == "" {
			return nil
		}
	}
}

// client impersonates an account that exists.
func (l Lister) client(ctx context.Context, as tenant.Identity) (*tenant.Client, error) {
	exists, err := l.Tenants.AccountExisted(ctx, as)
	if err != nil {
		return nil, &Error{Reason: v1alpha1.ReasonFailed, err: err}
	}
	if !exists {
		return nil, &Error{Reason: v1alpha1.ReasonAccountNotFound, err: fmt.Errorf(
			"serviceaccount %s does not exist: clusters are listed as the ServiceAccount of spec.template; create it, or change spec.template.spec.serviceAccountName", as)}
	}
	client, err := l.Tenants.Client(as)
	if err != nil {
		return nil, &Error{Reason: v1alpha1.ReasonInvalidSpec, Stalled: true, err: err}
	}
	return client, nil
}
