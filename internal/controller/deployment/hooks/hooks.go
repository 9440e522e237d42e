// SPDX-License-Identifier: Apache-2.0

// Package hooks runs the hooks of an operation on a bundle: an installation, an adoption, an upgrade or a deletion. It
// decides which operation it is, and stores each action before it happens, so that it is known after a crash. No function
// waits for a hook: it returns which one is waited for. internal/apply/hooks runs a single hook.
package hooks

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/artifact/lastapplied"
	"github.com/satchel-dev/satchel/internal/controller/deployment/approval"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// Runner is what hooks need beside their input.
type Runner struct {
	Live      client.Reader // reads namespaces
	Writer    pipeline.StatusWriter
	Events    stage.Events
	Approvals approval.Approvals
	Snapshots *lastapplied.Snapshots
	// Again converts the applied revision again for its hooks, because what was kept of it cannot be used.
	Again func(ctx context.Context, in *Input, cause error) ([]plan.Hook, error)
	// Clean removes secret values from a message.
	Clean func(ctx context.Context, of *stage.Subject, access stage.Access, message string) string
}

// Input is the operation with the hooks to run.
type Input struct {
	*stage.Subject
	Listed   *stage.Listing
	Resolved *stage.Resolved
	Material string              // digest of the rendered revision
	Content  string              // the same without values of Secrets; empty if these went into the conversion
	Plan     *plan.Plan          // nil when none was made
	Waited   *stage.HookWait     // the hook that an earlier apply waited for; nil for none
	Progress *stage.HookProgress // changed by each function
}
