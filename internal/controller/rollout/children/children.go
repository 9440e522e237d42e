// SPDX-License-Identifier: Apache-2.0

// Package children writes the BundleDeployments of a rollout.
package children

import (
	"context"
	"errors"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/rollout"
	"github.com/satchel-dev/satchel/internal/rollout/revision"
)

// ErrForeign says that a BundleDeployment was not created by the rollout.
var ErrForeign = errors.New("not created by this rollout")

// Writer writes the BundleDeployments of one rollout.
type Writer struct {
	Client client.Client
	// Live reads past the cache.
	Live    client.Reader
	Manager string
	// Rollout is the rollout that they belong to.
	Rollout types.NamespacedName
}

// Owns tells whether a BundleDeployment is that of the rollout for a cluster.
func (w Writer) Owns(child *v1alpha1.BundleDeployment, cluster string) bool {
	return child.Labels[v1alpha1.RolloutLabel] == w.Rollout.Name && child.Labels[v1alpha1.ClusterLabel] == cluster
}

// Collision says that the name of a BundleDeployment is taken.
func Collision(key types.NamespacedName) string {
	return fmt.Sprintf("bundledeployment %s exists, and this rollout did not create it: delete or rename it, or rename the cluster", key)
}

// Foreign says that the name of a BundleDeployment is taken by one that the rollout did not create; empty if not.
func (w Writer) Foreign(ctx context.Context, cluster string) (string, error) {
	key := types.NamespacedName{Namespace: w.Rollout.Namespace, Name: revision.ChildName(w.Rollout.Name, cluster)}
	var found v1alpha1.BundleDeployment
	err := w.Client.Get(ctx, key, &found)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading bundledeployment %s: %w", key, err)
	}
	if err != nil || w.Owns(&found, cluster) {
		return "", nil
	}
	return Collision(key), nil
}

// mostConflicts is how often a BundleDeployment is written again that changed meanwhile.
const mostConflicts = 5

// Apply writes a BundleDeployment in one patch, unless it is done. It is read past the cache, so that one which another created is
// never adopted, and an old copy is never written over a new one.
func (w Writer) Apply(ctx context.Context, cluster string, child *revision.Child, done func(live *v1alpha1.BundleDeployment) bool) error {
	return w.write(ctx, cluster, child, done)
}

// Check is Apply in a dry run: the API server validates the BundleDeployment, and stores nothing.
func (w Writer) Check(ctx context.Context, cluster string, child *revision.Child) error {
	return w.write(ctx, cluster, child, func(live *v1alpha1.BundleDeployment) bool { return live != nil && !live.DeletionTimestamp.IsZero() }, client.DryRunAll)
}

func (w Writer) write(ctx context.Context, cluster string, child *revision.Child, done func(live *v1alpha1.BundleDeployment) bool, more ...client.ApplyOption) error {
	key := types.NamespacedName{Namespace: w.Rollout.Namespace, Name: child.Name}
	for conflicts := 0; ; conflicts++ {
		live := &v1alpha1.BundleDeployment{}
		err := w.Live.Get(ctx, key, live)
		switch {
		case apierrors.IsNotFound(err):
			live = nil
		case err != nil:
			return fmt.Errorf("reading bundledeployment %s: %w", key, err)
		case !w.Owns(live, cluster):
			return fmt.Errorf("%w: %s", ErrForeign, Collision(key))
		}
		switch {
		case done(live):
			return nil
		case live != nil && !live.DeletionTimestamp.IsZero():
			return fmt.Errorf("bundledeployment %s is being deleted, and is created again when it is gone", key)
		}
		err = w.apply(ctx, child, live, more...)
		if err == nil || !apierrors.IsConflict(err) || conflicts == mostConflicts {
			return err
		}
	}
}

// apply writes a BundleDeployment over the live one, which is nil if there is none.
func (w Writer) apply(ctx context.Context, child *revision.Child, live *v1alpha1.BundleDeployment, more ...client.ApplyOption) error {
	object, err := child.Applied(w.Rollout.Namespace, live)
	if err != nil {
		return err
	}
	options := append([]client.ApplyOption{client.FieldOwner(w.Manager)}, more...)
	if live != nil {
		options = append(options, client.ForceOwnership)
	} // else one that another client creates meanwhile is a conflict, and is looked at
	return w.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), options...)
}

// Annotated adds annotations to others.
func Annotated(all, more map[string]string) map[string]string {
	joined := make(map[string]string, len(all)+len(more))
	maps.Copy(joined, all)
	maps.Copy(joined, more)
	return joined
}

// AnnotateCluster adds the annotation of a start that tells what stands for the cluster. live is the BundleDeployment before it; nil if there
// is none.
func AnnotateCluster(child *revision.Child, live *v1alpha1.BundleDeployment, cluster *revision.Cluster) {
	var known *rollout.Child
	if live != nil {
		known = rollout.ChildOf(live)
	}
	if uid := rollout.StartsWith(known, string(cluster.UID), cluster.Created); uid != "" {
		child.Annotations = Annotated(child.Annotations, map[string]string{v1alpha1.RolloutClusterAnnotation: uid})
	}
}

// OfStart are the annotations that the last start of a BundleDeployment wrote.
func OfStart(child *v1alpha1.BundleDeployment) map[string]string {
	own := map[string]string{}
	for _, key := range []string{v1alpha1.RolloutRevisionAnnotation, v1alpha1.RolloutSpecAnnotation, v1alpha1.RolloutStartAnnotation, v1alpha1.RolloutStartedAnnotation} {
		own[key] = child.Annotations[key]
	}
	for _, key := range []string{v1alpha1.RolloutInputsAnnotation, v1alpha1.RolloutClusterAnnotation} {
		if value := child.Annotations[key]; value != "" {
			own[key] = value
		}
	}
	return own
}
