// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/controller/upstream/failure"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// signatureRequired says that the namespace requires signatures, and that the source does not for these parts.
func signatureRequired(namespace string, parts []string) error {
	return failure.SignatureRequired(fmt.Errorf("namespace %s has the label %s=%s, and no signature is required of %s: set verify there, or install from another namespace; "+
		"a Helm repository, configMap or upload has no signature",
		namespace, v1alpha1.RequireSignaturesLabel, v1alpha1.RequireSignatures, strings.Join(parts, ", ")))
}

// requireSignatures stops a source in a namespace that requires signatures if the source does not require one of all its
// parts. Deployments that run its published artifact keep it, and it is not offered to others. An unreadable label stops it
// as well.
func (r *Reconciler) requireSignatures(ctx context.Context, s *state) (pipeline.Outcome, error) {
	parts := effective.UnverifiedParts(&s.object.Spec)
	if len(parts) == 0 {
		return pipeline.Continue, nil
	}
	required, err := r.labels.Required(ctx, r.APIReader, s.object.Namespace)
	if err != nil {
		return pipeline.Stop, err
	}
	if !required.Signatures {
		return pipeline.Continue, nil
	}
	s.unsigned = signatureRequired(s.object.Namespace, parts)
	return pipeline.Stop, s.unsigned
}

// sourcesIn lists the sources of a namespace that are affected when its label for required signatures is set or
// removed.
func (r *Reconciler) sourcesIn(ctx context.Context, namespace client.Object) []reconcile.Request {
	var list v1alpha1.BundleSourceList
	if err := r.Client.List(ctx, &list, client.InNamespace(namespace.GetName()), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot queue sources after a change of the labels of their namespace: each one is reconciled at its interval", "namespace", namespace.GetName())
		return nil
	}
	r.labels.Forget(namespace.GetName())
	var requests []reconcile.Request
	for i := range list.Items {
		source := &list.Items[i]
		if len(effective.UnverifiedParts(&source.Spec)) > 0 && r.Shard.Owns(source) {
			r.waiting.Forget(client.ObjectKeyFromObject(source))
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(source)})
		}
	}
	return requests
}

// namespaces is the kind that is watched for labels. The cache holds only namespaces that require signatures, so that
// setting the label is a creation event, and removing it a deletion event.
func namespaces() client.Object { return &corev1.Namespace{} }
