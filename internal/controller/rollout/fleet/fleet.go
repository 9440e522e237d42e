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
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/apply/tenant/clusterprofile"
	"github.com/satchel-dev/satchel/internal/apply/tenant/discovery"
	"github.com/satchel-dev/satchel/internal/rollout/revision"
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

// List returns the clusters of all entries, by name. Where two entries have a cluster of the same name, the first one is used. Where
// one entry cannot be listed, no clusters are returned: an incomplete list looks like clusters that are gone.
func (l Lister) List(ctx context.Context, namespace, account string, entries []v1alpha1.RolloutClusters) (map[string]revision.Cluster, error) {
	found := map[string]revision.Cluster{}
	for i := range entries {
		some, err := l.listOne(ctx, tenant.Identity{Namespace: namespace, ServiceAccount: account}, &entries[i])
		if err != nil {
			return nil, err
		}
		maps.Copy(some, found) // the first entry wins
		found = some
	}
	if l.Most > 0 && len(found) > l.Most {
		return nil, &Error{Reason: v1alpha1.ReasonLimitExceeded, Stalled: true, err: fmt.Errorf(
			"spec.clusters selects %d clusters, and a rollout may have %d: distribute them over several BundleRollouts, or have --max-clusters of the controller raised", len(found), l.Most)}
	}
	return found, nil
}

func (l Lister) listOne(ctx context.Context, as tenant.Identity, entry *v1alpha1.RolloutClusters) (map[string]revision.Cluster, error) {
	switch {
	case entry.Cluster != nil:
		one := entry.Cluster
		return map[string]revision.Cluster{one.Name: {
			Name: one.Name, Labels: one.Labels, Annotations: one.Annotations, KubeConfig: one.KubeConfig, RemoteServiceAccountName: one.RemoteServiceAccountName,
		}}, nil
	case entry.KubeConfigSecrets != nil:
		return l.secrets(ctx, as, entry.KubeConfigSecrets)
	case entry.ClusterAPI != nil:
		return l.clusterAPI(ctx, as, entry.ClusterAPI)
	case entry.ClusterProfiles != nil:
		return l.clusterProfiles(ctx, as, entry.ClusterProfiles)
	}
	return nil, &Error{Reason: v1alpha1.ReasonInvalidSpec, Stalled: true, err: errors.New(
		"an entry of spec.clusters is empty: set cluster, kubeConfigSecrets, clusterAPI or clusterProfiles")}
}

// secrets are the clusters of Secrets with a kubeconfig.
func (l Lister) secrets(ctx context.Context, as tenant.Identity, from *v1alpha1.KubeConfigSecretClusters) (map[string]revision.Cluster, error) {
	objects, err := l.list(ctx, as, schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, &from.Selector)
	if err != nil {
		return nil, err
	}
	return clusters(objects, "secret", func(name string) v1alpha1.KubeConfigSecretReference {
		return v1alpha1.KubeConfigSecretReference{Name: name, Key: from.Key}
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
func (l Lister) clusterAPI(ctx context.Context, as tenant.Identity, from *v1alpha1.ClusterAPIClusters) (map[string]revision.Cluster, error) {
	kind, err := l.served(ctx, clusterAPIKind)
	if err != nil {
		return nil, err
	}
	objects, err := l.list(ctx, as, kind, &from.Selector)
	if err != nil {
		return nil, err
	}
	found, err := clusters(objects, "cluster", func(name string) v1alpha1.KubeConfigSecretReference {
		return v1alpha1.KubeConfigSecretReference{Name: name + "-kubeconfig", Key: "value"}
	})
	for i := range objects { // the UID of a Secret says nothing of its cluster: credentials are renewed
		if one, has := found[objects[i].Name]; has {
			one.UID, one.Created = objects[i].UID, objects[i].CreationTimestamp.Time
			found[one.Name] = one
		}
	}
	return found, err
}

// Gone tells whether what leads to a cluster, a Secret or a ClusterProfile, does not exist, as a ServiceAccount sees it that may read it.
func (l Lister) Gone(ctx context.Context, namespace, account string, of *v1alpha1.KubeConfigReference) (bool, error) {
	as := tenant.Identity{Namespace: namespace, ServiceAccount: account}
	client, err := l.Tenants.Client(as)
	if err != nil {
		return false, &Error{Reason: v1alpha1.ReasonInvalidSpec, Stalled: true, err: err}
	}
	ref := tenant.Ref{Resource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, Namespace: namespace, Name: of.SecretRef.Name}
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

// clusters are the clusters that objects stand for. One that is being deleted still is a cluster.
func clusters(objects []metav1.PartialObjectMetadata, what string, secret func(name string) v1alpha1.KubeConfigSecretReference) (map[string]revision.Cluster, error) {
	found := make(map[string]revision.Cluster, len(objects))
	for i := range objects {
		object := &objects[i]
		if err := checkName(what, object.Namespace, object.Name); err != nil {
			return nil, err
		}
		found[object.Name] = revision.Cluster{
			Name: object.Name, Labels: object.Labels, Annotations: object.Annotations,
			KubeConfig: &v1alpha1.KubeConfigReference{SecretRef: secret(object.Name)},
		}
	}
	return found, nil
}

// checkName refuses names that cannot be those of clusters.
func checkName(what, namespace, name string) error {
	if len(name) <= 63 && clusterName.MatchString(name) {
		return nil
	}
	return &Error{Reason: v1alpha1.ReasonInvalidSpec, Stalled: true, err: fmt.Errorf(
		"%s %s/%s is selected by spec.clusters, and its name cannot be that of a cluster: it may have at most 63 characters; rename it, or remove the label that selects it", what, namespace, name)}
}

// pageSize is how many objects are listed at once.
const pageSize = 500

// list lists the metadata of objects of a namespace as an account of it.
func (l Lister) list(ctx context.Context, as tenant.Identity, resource schema.GroupVersionResource, selector *metav1.LabelSelector) ([]metav1.PartialObjectMetadata, error) {
	var all []metav1.PartialObjectMetadata
	return all, l.pages(ctx, as, resource, selector, func(client *tenant.Client, options metav1.ListOptions) (string, error) {
		page, err := client.ListMetadata(ctx, tenant.Ref{Resource: resource, Namespace: as.Namespace}, options)
		if err != nil {
			return "", err
		}
		all = slices.Concat(all, page.Items)
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
