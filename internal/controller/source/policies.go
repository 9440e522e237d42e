// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"slices"

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

// policies reads the BundleImagePolicies that count for the source.
func (r *Reconciler) policies(ctx context.Context, s *state) (pipeline.Outcome, error) {
	found, err := imagepolicies.Read(ctx, r.cached(), s.object.Namespace, r.SharedNamespace)
	if err != nil {
		return pipeline.Stop, err
	}
	s.adapters.Under(found)
	s.policiesRead = true
	return pipeline.Continue, nil
}

// denial stops a source with an image that a policy denies, and withdraws what was published of it. Deployments that run
// it keep it.
func (r *Reconciler) denial(ctx context.Context, s *state) (pipeline.Outcome, error) {
	for _, source := range s.object.Spec.Sources {
		err := s.adapters.Denied(source)
		if err == nil {
			continue
		}
		s.denied = failure.ImageDenied(err)
		if s.published == nil {
			return pipeline.Stop, s.denied
		}
		s.published = nil
		if failed := r.tellDistrust(ctx, s); failed != nil {
			return pipeline.Stop, failed
		}
		return pipeline.Stop, s.denied
	}
	return pipeline.Continue, nil
}

// demandsSignature tells whether the spec or a policy requires a signature. While the policies are not known, they might.
func (s *state) demandsSignature() bool {
	sources := s.object.Spec.Sources
	if !s.policiesRead && slices.ContainsFunc(sources, func(source v1alpha1.Source) bool { return source.Image != nil }) {
		return true
	}
	return effective.DemandsSignature(&s.object.Spec) || trust.Demanded(sources, s.adapters)
}

// sourcesWith lists the sources that a change of a policy concerns.
func (r *Reconciler) sourcesWith(ctx context.Context, namespace string, concerns func([]v1alpha1.Source) bool) []reconcile.Request {
	var list v1alpha1.BundleSourceList
	if err := r.Client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot queue sources after a change of a bundleimagepolicy: each one is reconciled at its interval", "namespace", namespace)
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		source := &list.Items[i]
		if r.Shard.Owns(source) && concerns(source.Spec.Sources) {
			r.waiting.Forget(client.ObjectKeyFromObject(source))
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(source)})
		}
	}
	return requests
}
