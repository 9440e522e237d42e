// SPDX-License-Identifier: Apache-2.0

package removal

import (
	"time"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/apply/plan/pruning"
	"github.com/satchel-dev/satchel/internal/apply/storageversion"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// Options are options of Prune and Remove. The zero value of each has the default given here.
type Options struct {
	// Parallelism is how many requests are under way at once: 16.
	Parallelism int
	// Pruning says how Remove deletes or releases objects.
	Pruning pruning.Policy
	// MigrationPatience is how long rewriting the resources of a CRD may fail
	// before its conversion webhook is removed without that: 10 min.
	MigrationPatience time.Duration
	// Migrations remembers how far the resources of CRDs have been rewritten from one
	// call to the next: without it, only as many as one call writes can be migrated.
	Migrations *storageversion.Migrations
	// HandOver returns the deployment to which an object is released instead of its deletion, or what the deletion waits for; nil if
	// all is deleted.
	HandOver func(inventory.ID) (to, waits string)
}

func (o Options) defaulted() Options {
	if o.Parallelism <= 0 {
		o.Parallelism = parallel.Default
	}
	if o.MigrationPatience <= 0 {
		o.MigrationPatience = storageversion.DefaultPatience
	}
	if o.HandOver == nil {
		o.HandOver = func(inventory.ID) (to, waits string) { return "", "" }
	}
	if o.Migrations == nil {
		o.Migrations = &storageversion.Migrations{}
	}
	return o
}

// deleter deletes or releases objects of the owner with these options.
func (o Options) deleter(client *tenant.Client, owner inventory.Owner) deleter {
	return deleter{
		client: client, owner: owner, limit: o.Parallelism, handOver: o.HandOver,
		migrator: storageversion.Migrator{Client: client, Owner: owner, Limit: o.Parallelism, Patience: o.MigrationPatience, Migrations: o.Migrations},
	}
}
