// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/step"
)

// signatureError says that the namespace requires signatures and that the source does not demand one of all its parts.
type signatureError struct {
	namespace string
	parts     []string
}

func (e *signatureError) Error() string {
	return fmt.Sprintf("namespace %s has the label %s=%s, and no signature is demanded of %s: set verify there, or install from another namespace; "+
		"a configMap or upload has no signature",
		e.namespace, v1alpha1.RequireSignaturesLabel, v1alpha1.RequireSignatures, strings.Join(e.parts, ", "))
}

// requireSignatures stops a source in a namespace that requires signatures which does not demand one of all its parts. What
// it published before stays with the deployments that run it, and is not offered to others. A label that cannot be read
// stops it as well.
func (r *Reconciler) requireSignatures(ctx context.Context, s *state) (step.Outcome, error) {
	parts := s.object.Spec.UnverifiedParts()
	if len(parts) == 0 {
		return step.Continue, nil
	}
	required, err := r.labels.Required(ctx, r.APIReader, s.object.Namespace)
	if err != nil {
		return step.Stop, err
	}
	if !required.Signatures {
		return step.Continue, nil
	}
	failed := &signatureError{namespace: s.object.Namespace, parts: parts}
	s.unsigned = failed
	return step.Stop, failed
}

// sourcesIn lists the sources of a namespace that are affected when it begins or ceases to require signatures.
func (r *Reconciler) sourcesIn(ctx context.Context, namespace client.Object) []reconcile.Request {
	var list v1alpha1.BundleSourceList
	if err := r.Client.List(ctx, &list, client.InNamespace(namespace.GetName()), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "sources learn at their interval only that the labels of their namespace changed", "namespace", namespace.GetName())
		return nil
	}
	r.labels.Forget(namespace.GetName())
	var requests []reconcile.Request
	for i := range list.Items {
		source := &list.Items[i]
		if len(source.Spec.UnverifiedParts()) > 0 && r.Shard.Owns(source) {
			r.waiting.forget(client.ObjectKeyFromObject(source))
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(source)})
		}
	}
	return requests
}

// namespaces is the kind whose labels are watched. The cache holds only those that require signatures, so that setting the
// label looks like a creation, and removing it like a deletion.
func namespaces() client.Object { return &corev1.Namespace{} }

// cameOrWent lets through no updates.
func cameOrWent() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
}
