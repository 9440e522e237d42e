// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// Owner is the BundleDeployment on whose behalf objects are written.
type Owner = inventory.Owner

// Options of writing. The zero value of each has the default given here.
type Options struct {
	// Parallelism is how many requests are under way at once: 16.
	Parallelism int
	// Previous gives an object as it was rendered for the last apply, or nil. With
	// it, a field that somebody took from us since is taken back by an upgrade.
	Previous func(inventory.ID) *unstructured.Unstructured
	// EstablishTimeout is how long Apply waits for CRDs to be served: 10 s.
	EstablishTimeout time.Duration
}

const (
	defaultParallelism      = 16
	defaultEstablishTimeout = 10 * time.Second
)

func (o Options) defaulted() Options {
	if o.Parallelism <= 0 {
		o.Parallelism = defaultParallelism
	}
	if o.EstablishTimeout <= 0 {
		o.EstablishTimeout = defaultEstablishTimeout
	}
	if o.Previous == nil {
		o.Previous = func(inventory.ID) *unstructured.Unstructured { return nil }
	}
	return o
}

func refOf(id inventory.ID, resource schema.GroupVersionResource) tenant.Ref {
	return tenant.Ref{Resource: resource, Namespace: id.Namespace, Name: id.Name}
}
