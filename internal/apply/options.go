// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/health"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/apply/storageversion"
)

// Options of Apply. The zero value of each has the default given here.
type Options struct {
	// Parallelism is how many requests are under way at once: 16.
	Parallelism int
	// Recreate deletes objects that are refused because of immutable fields, and creates
	// them again.
	Recreate bool
	// Earlier returns contents of an object that may have been written before: that of the
	// last apply, and those that the inventory entry says were written or begun since. With
	// them an upgrade takes back a field of ours that another manager took since.
	Earlier func(inventory.Entry) []*unstructured.Unstructured
	// EstablishTimeout is how long Apply waits for CRDs to be served: 10 s.
	EstablishTimeout time.Duration
	// Before is called before the first of the stages that hooks precede: it says what the apply
	// waits for; empty when the apply may go on. Its error ends the apply.
	Before func(ctx context.Context) (waits string, err error)
	// Rules say when the objects of a phase are healthy, so that the next may begin.
	Rules health.Rules
	// Migrations remembers how far the resources of CRDs have been rewritten from one
	// call to the next: without it, only as many as one call writes can be migrated.
	Migrations *storageversion.Migrations
}

const defaultEstablishTimeout = 10 * time.Second

func (o Options) defaulted() Options {
	if o.Parallelism <= 0 {
		o.Parallelism = parallel.Default
	}
	if o.EstablishTimeout <= 0 {
		o.EstablishTimeout = defaultEstablishTimeout
	}
	if o.Migrations == nil {
		o.Migrations = &storageversion.Migrations{}
	}
	if o.Earlier == nil {
		o.Earlier = func(inventory.Entry) []*unstructured.Unstructured { return nil }
	}
	return o
}
