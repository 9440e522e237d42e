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

// Owner is the BundleDeployment on whose behalf objects are written.
type Owner = inventory.Owner

// Options of writing. The zero value of each has the default given here.
type Options struct {
	// Parallelism is how many requests are under way at once: 16.
	Parallelism int
	// Recreate deletes objects that are refused because fields of them cannot change,
	// and creates them anew.
	Recreate bool
	// Pruning says how Remove lets objects go.
	Pruning plan.Pruning
	// Earlier gives the contents of an object that may have been written before: of the
	// last apply, and what the entry says was written or begun since. With them, a field
	// that somebody took from us since is taken back by an upgrade.
	Earlier func(inventory.Entry) []*unstructured.Unstructured
	// EstablishTimeout is how long Apply waits for CRDs to be served: 10 s.
	EstablishTimeout time.Duration
	// Tried tells DryRun of an action that was accepted by an earlier one, and need not be tried again; may be nil.
	Tried func(plan.Action) bool
	// Before is asked before the first of the stages that hooks come before: it says what is waited
	// for, nothing when the apply may go on. Its error ends the apply.
	Before func(ctx context.Context) (waits string, err error)
	// Rules say when the objects of a phase are healthy, so that the next may begin.
	Rules health.Rules
	// MigrationPatience is for how long the resources of a CRD may fail to be written
	// before its conversion webhook goes without that: 10 min.
	MigrationPatience time.Duration
	// Migrations remembers how far the resources of CRDs have been written from one
	// call to the next: more of them than one call writes are only ever done with it.
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

// deleter lets objects of the owner go with these options.
func (o Options) deleter(client *tenant.Client, owner Owner) deleter {
	return deleter{client: client, owner: owner, limit: o.Parallelism, patience: o.MigrationPatience, migrations: o.Migrations}
}

func refOf(id inventory.ID, resource schema.GroupVersionResource) tenant.Ref {
	return tenant.Ref{Resource: resource, Namespace: id.Namespace, Name: id.Name}
}
