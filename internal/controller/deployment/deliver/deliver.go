// SPDX-License-Identifier: Apache-2.0

// Package deliver writes to the cluster what was decided: it records a plan before its first write, executes it, repairs
// drift that watches reported, prunes what left the bundle, and removes what a deployment installed. All writes to objects
// of a bundle are here and in package hooks, as the ServiceAccount of the deployment.
package deliver

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/internal/apply/drift"
	"github.com/satchel-dev/satchel/internal/apply/storageversion"
	"github.com/satchel-dev/satchel/internal/artifact/lastapplied"
	"github.com/satchel-dev/satchel/internal/artifact/loader"
	"github.com/satchel-dev/satchel/internal/controller/deployment/approval"
	"github.com/satchel-dev/satchel/internal/controller/deployment/handover"
	"github.com/satchel-dev/satchel/internal/controller/deployment/hooks"
	"github.com/satchel-dev/satchel/internal/controller/deployment/snapshot"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
)

// Stage is what delivering needs beside its input.
type Stage struct {
	Hooks      *hooks.Runner
	Events     stage.Events
	Approvals  approval.Approvals
	Artifacts  *loader.Loader
	Snapshots  *lastapplied.Snapshots
	Watches    *drift.Hub
	Migrations *storageversion.Migrations
	// Reader reads the other deployments, and sources, of a namespace from the cache.
	Reader client.Reader
	// Handover knows which objects other deployments want.
	Handover *handover.Index
	// Wake queues a deployment.
	Wake func(types.NamespacedName)
	// Recent reads single objects of Snapshots.
	Recent *snapshot.Recent
}

// Input is what delivering reads: the results of the earlier stages. It writes Delivered, the inventory, the note for the
// next reconcile, and what the status says of the applied revision.
type Input struct {
	*stage.Subject
	Listed    *stage.Listing
	Note      *stage.Note
	Resolved  *stage.Resolved
	Rendered  *stage.Rendered
	Decided   *stage.Decided
	Delivered *stage.Delivered
}

// Operation is the input of the hooks.
func (in *Input) Operation() *hooks.Input {
	return &hooks.Input{
		Subject: in.Subject, Listed: in.Listed, Resolved: in.Resolved, Material: in.Rendered.Material,
		Content: in.Resolved.Inputs.Public(in.Rendered.Content),
		Plan:    in.Decided.Plan, Waited: in.Note.Applying.Hook, Progress: &in.Delivered.Hooks,
	}
}
