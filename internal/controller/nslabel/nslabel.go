// SPDX-License-Identifier: Apache-2.0

// Package nslabel reads the labels by which a namespace requires approval or signatures.
package nslabel

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// Required is what the labels of a namespace require.
type Required struct {
	Approval   bool
	Signatures bool
}

// Of reads the labels of a namespace.
func Of(labels map[string]string) Required {
	return Required{
		Approval:   labels[v1alpha1.RequireApprovalLabel] == v1alpha1.RequireApproval,
		Signatures: labels[v1alpha1.RequireSignaturesLabel] == v1alpha1.RequireSignatures,
	}
}

// Reader reads the labels of namespaces from the API server. The zero value is ready for use.
type Reader struct {
	mu    sync.Mutex
	known map[string]entry
}

type entry struct {
	required Required
	read     time.Time
}

// MaxAge is how long labels are cached: long enough for objects of one namespace that are
// created together.
const MaxAge = 2 * time.Second

// maxEntries bounds how many namespaces are remembered.
const maxEntries = 1000

// Forget drops the cached labels of a namespace.
func (r *Reader) Forget(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, name)
}

// Required is what a namespace requires, read from the API server. A caller that gets an error
// must not accept anything that a label could forbid.
func (r *Reader) Required(ctx context.Context, reader client.Reader, name string) (Required, error) {
	r.mu.Lock()
	found, known := r.known[name]
	r.mu.Unlock()
	if known && time.Since(found.read) < MaxAge {
		return found.required, nil
	}
	found.read = time.Now()
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := reader.Get(ctx, client.ObjectKey{Name: name}, namespace); err != nil {
		return Required{}, fmt.Errorf("reading the labels of namespace %s, which may require approval (%s) or signatures (%s): %w",
			name, v1alpha1.RequireApprovalLabel, v1alpha1.RequireSignaturesLabel, err)
	}
	found.required = Of(namespace.Labels)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil || len(r.known) >= maxEntries {
		r.known = map[string]entry{}
	}
	r.known[name] = found
	return found.required, nil
}
