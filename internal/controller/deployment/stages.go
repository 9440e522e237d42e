// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/controller/deployment/catalogs"
	"github.com/satchel-dev/satchel/internal/controller/deployment/decide"
	"github.com/satchel-dev/satchel/internal/controller/deployment/deliver"
	"github.com/satchel-dev/satchel/internal/controller/deployment/hooks"
	"github.com/satchel-dev/satchel/internal/controller/deployment/render"
	"github.com/satchel-dev/satchel/internal/controller/deployment/resolve"
	"github.com/satchel-dev/satchel/internal/controller/deployment/settle"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// connect gives the stages what they need beside their input.
func (r *Reconciler) connect() {
	events, approvals := stage.Events{Recorder: r.Events}, r.Approvals()
	r.resolve = resolve.Stage{
		Reader: r.Client, Live: r.APIReader,
		Accounts:  resolve.Accounts{Tenants: r.Tenants, Remotes: r.Remotes, OwnCluster: r.OwnCluster},
		Sources:   resolve.Sources{Client: r.Client, Live: r.APIReader, Cached: r.cached, Shard: r.Shard, Manager: FieldManager},
		Labels:    &r.labels,
		Approvals: approvals, Snapshots: r.Snapshots, Names: r.names, Scrubs: &r.scrubs, Kinds: r.kinds,
	}
	r.catalogs = catalogs.Stage{Reader: r.Client, Packages: r.Packages, Shared: r.SharedCatalogs, Saw: r.follower.Saw}
	r.render = render.Stage{Renderer: r.renderer, Artifacts: r.Artifacts, Entropy: r.Entropy}
	r.decide = decide.Stage{
		Reader: r.Client, Approvals: approvals, Watches: r.watches, Kinds: r.kinds, Progress: &r.progress, Offers: r.catalogs.Offers, Handover: &r.handover,
		Judge: func(namespace string) decide.Judge { return r.renderer.JudgeUpgrade(namespace) },
	}
	r.hooks = hooks.Runner{
		Live: r.APIReader, Writer: r.writer, Events: events, Approvals: approvals, Snapshots: r.Snapshots, Again: r.hooksAgain,
		Clean: func(ctx context.Context, of *stage.Subject, access stage.Access, message string) string {
			return r.cleaner(ctx, of, access).Text(message)
		},
	}
	r.deliver = deliver.Stage{
		Hooks: &r.hooks, Events: events, Approvals: approvals, Artifacts: r.Artifacts, Snapshots: r.Snapshots,
		Watches: r.watches, Migrations: r.migrations, Recent: &r.recent, Reader: r.Client, Handover: &r.handover,
		Wake: func(key types.NamespacedName) { r.waker.Wake(key, 0) },
	}
	r.settle = settle.Stage{
		Events: events, Approvals: approvals, Watches: r.watches, Names: r.names, Scrubs: &r.scrubs,
		Work: r.Work, Expiry: r.Expiry, Holds: r.Holds,
	}
}

// resolving is the input of the stage resolve.
func (s *state) resolving() *resolve.Input {
	return &resolve.Input{Subject: &s.Subject, Listed: &s.listed, Note: &s.note, Resolved: &s.resolved}
}

// rendering is the input of the stage render.
func (s *state) rendering() *render.Input {
	return &render.Input{Subject: &s.Subject, Listed: &s.listed, Resolved: &s.resolved, Rendered: &s.rendered}
}

// deciding is the input of the stage decide.
func (s *state) deciding() *decide.Input {
	return &decide.Input{Subject: &s.Subject, Listed: &s.listed, Note: &s.note, Resolved: &s.resolved, Rendered: &s.rendered, Decided: &s.decided}
}

// delivering is the input of the stage deliver.
func (s *state) delivering() *deliver.Input {
	return &deliver.Input{
		Subject: &s.Subject, Listed: &s.listed, Note: &s.note,
		Resolved: &s.resolved, Rendered: &s.rendered, Decided: &s.decided, Delivered: &s.delivered,
	}
}

// settling is the input of the stage settle, for a reconcile that ended with an error or none.
func (s *state) settling(err error) *settle.Input {
	in := &settle.Input{
		Subject: &s.Subject, Listed: &s.listed, Note: &s.note,
		Resolved: &s.resolved, Rendered: &s.rendered, Decided: &s.decided, Delivered: &s.delivered, Settled: &s.settled,
		KeepErr: s.keepErr, ComparisonSkipped: s.comparisonSkipped, Condition: declared(err).condition,
	}
	if s.kept != nil {
		in.Kept = s.kept.settling(nil)
	}
	return in
}

// runStep runs a step on what a reconcile has found out so far.
type runStep func(*Reconciler, context.Context, *state) (pipeline.Outcome, error)

func resolves(step func(*resolve.Stage, context.Context, *resolve.Input) (pipeline.Outcome, error)) runStep {
	return func(r *Reconciler, ctx context.Context, s *state) (pipeline.Outcome, error) {
		return step(&r.resolve, ctx, s.resolving())
	}
}

func renders(step func(*render.Stage, context.Context, *render.Input) (pipeline.Outcome, error)) runStep {
	return func(r *Reconciler, ctx context.Context, s *state) (pipeline.Outcome, error) {
		return step(&r.render, ctx, s.rendering())
	}
}

func decides(step func(*decide.Stage, context.Context, *decide.Input) (pipeline.Outcome, error)) runStep {
	return func(r *Reconciler, ctx context.Context, s *state) (pipeline.Outcome, error) {
		return step(&r.decide, ctx, s.deciding())
	}
}

func delivers(step func(*deliver.Stage, context.Context, *deliver.Input) (pipeline.Outcome, error)) runStep {
	return func(r *Reconciler, ctx context.Context, s *state) (pipeline.Outcome, error) {
		return step(&r.deliver, ctx, s.delivering())
	}
}

func settles(step func(*settle.Stage, context.Context, *settle.Input) (pipeline.Outcome, error)) runStep {
	return func(r *Reconciler, ctx context.Context, s *state) (pipeline.Outcome, error) {
		return step(&r.settle, ctx, s.settling(nil))
	}
}
