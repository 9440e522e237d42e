// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/apply/plan"
)

// Options are options of DryRun and Preview. The zero value of each has the default given here.
type Options struct {
	// Parallelism is how many requests are under way at once: 16.
	Parallelism int
	// Recreate: objects that are refused because of immutable fields would be deleted and created again.
	Recreate bool
	// Earlier is that of Options.
	Earlier func(inventory.Entry) []*unstructured.Unstructured
	// Gone are deletions of the same revision that are over, and were to make room for objects that the API server refused.
	Gone []plan.Deletion
	// Tried tells DryRun that an earlier dry run accepted an action, so that it is skipped; may be nil.
	Tried func(plan.Action) bool
}

func (o Options) defaulted() Options {
	if o.Parallelism <= 0 {
		o.Parallelism = parallel.Default
	}
	if o.Earlier == nil {
		o.Earlier = func(inventory.Entry) []*unstructured.Unstructured { return nil }
	}
	if o.Tried == nil {
		o.Tried = func(plan.Action) bool { return false }
	}
	return o
}
