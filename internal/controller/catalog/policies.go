// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/imagepolicies"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/controller/upstream/failure"
	"github.com/satchel-dev/satchel/internal/controller/upstream/trust"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// policies reads the BundleImagePolicies that count for the catalog.
func (r *Reconciler) policies(ctx context.Context, s *state) (pipeline.Outcome, error) {
	found, err := imagepolicies.Read(ctx, r.cached(), s.object.Namespace, r.SharedNamespace)
	if err != nil {
		return pipeline.Stop, err
	}
	s.adapters.Under(found)
	s.policiesRead = true
	return pipeline.Continue, nil
}

// denial stops and withdraws a catalog with an image that a policy denies.
func (r *Reconciler) denial(_ context.Context, s *state) (pipeline.Outcome, error) {
	if err := s.adapters.Denied(s.source()); err != nil {
		s.denied = failure.ImageDenied(err)
		return pipeline.Stop, errors.Join(s.denied, r.withdraw(s))
	}
	return pipeline.Continue, nil
}

// demandsSignature tells whether the spec or a policy requires a signature. While the policies are not known, they might.
func (s *state) demandsSignature() bool {
	if !s.policiesRead && len(s.spec.Sources) > 0 && s.source().Image != nil {
		return true
	}
	return effective.DemandsSignature(s.spec) || trust.Demanded(s.spec.Sources, s.adapters)
}

// catalogsWith lists the catalogs that a change of a policy concerns.
func (r *Reconciler) catalogsWith(ctx context.Context, namespace string, concerns func([]v1alpha1.Source) bool) []reconcile.Request {
	var list v1alpha1.BundleCatalogList
	if err := r.Client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot queue catalogs after a change of a bundleimagepolicy: each one is reconciled at its interval", "namespace", namespace)
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		object := &list.Items[i]
		if r.Shard.Owns(object) && concerns(effective.CatalogSource(&object.Spec).Sources) {
			r.waiting.Forget(client.ObjectKeyFromObject(object))
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
		}
	}
	return requests
}
