// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/health"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// Owner is the BundleDeployment that the objects belong to.
type Owner = inventory.Owner

// Options of writing. The zero value of each has the default given here.
type Options struct {
	// Parallelism is how many requests are under way at once: 16.
	Parallelism int
	// Recreate deletes objects that are refused because of immutable fields, and creates
	// them again.
	Recreate bool
	// Pruning says how Remove deletes or releases objects.
	Pruning plan.Pruning
	// Earlier returns contents of an object that may have been written before: that of the
	// last apply, and those that the inventory entry says were written or begun since. With
	// them an upgrade takes back a field of ours that another manager took since.
	Earlier func(inventory.Entry) []*unstructured.Unstructured
	// EstablishTimeout is how long Apply waits for CRDs to be served: 10 s.
	EstablishTimeout time.Duration
	// Tried tells DryRun that an earlier dry run accepted an action, so that it is skipped; may be nil.
	Tried func(plan.Action) bool
	// Before is called before the first of the stages that hooks precede: it says what the apply
	// waits for; empty when the apply may go on. Its error ends the apply.
	Before func(ctx context.Context) (waits string, err error)
	// Rules say when the objects of a phase are healthy, so that the next may begin.
	Rules health.Rules
	// MigrationPatience is how long rewriting the resources of a CRD may fail
	// before its conversion webhook is removed without that: 10 min.
	MigrationPatience time.Duration
	// Migrations remembers how far the resources of CRDs have been rewritten from one
	// call to the next: without it, only as many as one call writes can be migrated.
	Migrations *Migrations
}

const (
	defaultParallelism      = 16
	defaultEstablishTimeout = 10 * time.Second
	// defaultMigrationPatience is enough for the Pod of an operator to be moved to
	// another node, and its image to be pulled there.
	defaultMigrationPatience = 10 * time.Minute
)

func (o Options) defaulted() Options {
	if o.Parallelism <= 0 {
		o.Parallelism = defaultParallelism
	}
	if o.EstablishTimeout <= 0 {
		o.EstablishTimeout = defaultEstablishTimeout
	}
	if o.MigrationPatience <= 0 {
		o.MigrationPatience = defaultMigrationPatience
	}
	if o.Migrations == nil {
		o.Migrations = &Migrations{}
	}
	if o.Earlier == nil {
		o.Earlier = func(inventory.Entry) []*unstructured.Unstructured { return nil }
	}
	if o.Tried == nil {
		o.Tried = func(plan.Action) bool { return false }
	}
	return o
}

// deleter deletes or releases objects of the owner with these options.
func (o Options) deleter(client *tenant.Client, owner Owner) deleter {
	return deleter{client: client, owner: owner, limit: o.Parallelism, patience: o.MigrationPatience, migrations: o.Migrations}
}

func refOf(id inventory.ID, resource schema.GroupVersionResource) tenant.Ref {
	return tenant.Ref{Resource: resource, Namespace: id.Namespace, Name: id.Name}
}
