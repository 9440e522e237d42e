// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/resolve"
	"github.com/satchel-dev/satchel/internal/controller/deployment/waiting"
	"github.com/satchel-dev/satchel/internal/controller/sourceusers"
)

// Mapper map changes of objects to the deployments that they concern.
type Mapper struct {
	Client client.Reader
	// Packages are the names of packages, and Dependencies those of deployments, that deployments wait for.
	Packages, Dependencies *waiting.Names
	// Blocked are the names of deployments that a refused plan would break.
	Blocked *waiting.Names
}

// StatusLost passes updates that emptied a status, as a restore from a backup does, so
// that it is written again at once.
func StatusLost() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.BundleDeployment)
		after, fine := e.ObjectNew.(*v1alpha1.BundleDeployment)
		return ok && fine && (len(before.Status.Conditions) > 0 && len(after.Status.Conditions) == 0 ||
			before.Status.Inventory != nil && after.Status.Inventory == nil)
	}}
}

// AbandonDemanded passes updates that abandon the removal of a deployment: its annotation does not
// change the generation.
func AbandonDemanded() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld != nil && e.ObjectNew != nil && e.ObjectNew.GetDeletionTimestamp() != nil &&
			e.ObjectOld.GetAnnotations()[v1alpha1.AbandonAnnotation] != e.ObjectNew.GetAnnotations()[v1alpha1.AbandonAnnotation]
	}}
}

// SourceChanged passes creation and deletion of a source, and changes of its artifact,
// origin revision, trust and readiness.
func SourceChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.BundleSource)
		after, fine := e.ObjectNew.(*v1alpha1.BundleSource)
		if !ok || !fine {
			return true
		}
		return before.Status.SourcesDigest != after.Status.SourcesDigest ||
			before.Status.OriginRevision != after.Status.OriginRevision ||
			!equality.Semantic.DeepEqual(before.Status.Artifact, after.Status.Artifact) ||
			resolve.Untrusted(before) != resolve.Untrusted(after) ||
			!equality.Semantic.DeepEqual(resolve.Readiness(before), resolve.Readiness(after))
	}}
}

// UsersOf lists the deployments to wake when a source changes.
func (r Mapper) UsersOf(ctx context.Context, source client.Object) []reconcile.Request {
	var requests []reconcile.Request
	err := sourceusers.Each(ctx, r.Client, client.ObjectKeyFromObject(source), func(d *v1alpha1.BundleDeployment) {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(d)})
	})
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot wake the deployments of a source", "source", client.ObjectKeyFromObject(source))
	}
	return requests
}
