// SPDX-License-Identifier: Apache-2.0

// Package deployment reconciles BundleDeployments: it converts the artifact of
// a source, plans, applies as the tenant, watches health, prunes, and keeps the
// result from drifting.
package deployment

import (
	"fmt"
	"sync"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/health"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/fetch/artifact"
)

// state is what one reconcile finds out. Steps record facts here; status.go
// turns them into conditions.
type state struct {
	object   *v1alpha1.BundleDeployment
	stored   *v1alpha1.BundleDeployment // as the API server has it
	owner    inventory.Owner
	previous inventory.Inventory // what the status lists, and later what the cluster holds
	note     note
	noted    bool // note is of this process

	client   *tenant.Client
	source   *v1alpha1.BundleSource
	artifact *meta.Artifact

	// due: the objects are to be compared with the cluster, not only their health.
	due bool
	// keeping: this is about the last applied revision, while a newer one fails.
	keeping bool
	content *artifact.Content
	// desired are the objects of the revision, once converted.
	desired []*unstructured.Unstructured
	plan    *plan.Plan
	applied *apply.Result
	// waitsFor says what an unfinished apply waits for, such as a CRD that is not
	// established yet.
	waitsFor string
	health   *health.Report
	pruned   *apply.Pruned
	removed  *apply.Removed
	warnings []string

	// reached names the conditions whose step succeeded in this reconcile.
	reached map[string]bool
	// kept tells how the last applied revision fares while a newer one fails, and
	// careErr why it could not be cared for.
	kept    *state
	careErr error

	loadOnce sync.Once
	last     map[inventory.ID]*unstructured.Unstructured

	now time.Time
}

// close removes the unpacked artifact.
func (s *state) close() {
	if s.content != nil {
		_ = s.content.Close() // what stays is removed at the next start
		s.content = nil
	}
}

// record puts an inventory into the status.
func (s *state) record(current inventory.Inventory) error {
	encoded, err := current.Encode()
	if err != nil {
		return fmt.Errorf("storing the inventory: %w", err)
	}
	s.previous, s.object.Status.Inventory = current, encoded
	return nil
}

// revision of the artifact that is installed or tried.
func (s *state) revision() string {
	if s.artifact == nil {
		return ""
	}
	return s.artifact.Revision
}

// did records that the step behind a condition succeeded.
func (s *state) did(condition string) {
	if s.reached == nil {
		s.reached = map[string]bool{}
	}
	s.reached[condition] = true
}

// full tells whether the objects must be compared with the cluster: something
// asked for it, or the interval is over.
func (s *state) full() bool {
	switch {
	case !s.noted, s.note.generation != s.object.Generation, s.note.artifact != s.artifact.Digest:
		return true
	case s.note.requested != requested(s.object):
		return true
	}
	return s.now.Sub(s.note.checked) >= s.object.Spec.IntervalOrDefault()*9/10
}
