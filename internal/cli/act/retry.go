// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"fmt"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/internal/view"
)

// retry reconciles a deployment that failed as if it were new, with its source if it is blocked by that.
func retry(ctx context.Context, a *kit.App, c *kit.Cluster, o ReconcileOptions, t kit.Target) error {
	found, err := c.Get(ctx, t)
	if err != nil {
		return err
	}
	if err := refuseSuspended(a, t, found); err != nil {
		return err
	}
	d, _ := found.(*v1alpha1.BundleDeployment)
	if s := view.Summarize(d); s.IsReady() && d.Status.Rejected.Revision == "" {
		fmt.Fprintf(a.Streams.Out, "%s: Ready with %s, so there is nothing to retry\n", t, s.RevisionName())
		return nil
	}
	p, err := c.ReadPipeline(ctx, t, a)
	if err != nil {
		return err
	}
	sayWhatFailed(a, t, d, p)
	o.withSource = o.withSource || atSource(p) && effective.SourceName(d) != ""
	return reconcileAll(ctx, a, c, o, t)
}

// sayWhatFailed says what is retried.
func sayWhatFailed(a *kit.App, t kit.Target, d *v1alpha1.BundleDeployment, p view.Pipeline) {
	switch {
	case d.Status.Rejected.Revision != "":
		fmt.Fprintf(a.Streams.ErrOut, "%s: revision %s was rejected, and is retried\n", t, view.ShortRevision(view.Inline(d.Status.Rejected.Revision)))
	case p.Problem != nil:
		fmt.Fprintf(a.Streams.ErrOut, "%s: %s failed (%s), and is retried\n", t, p.Problem.Step, view.Inline(p.Problem.Reason))
	}
}

// atSource tells whether a deployment is blocked by its source.
func atSource(p view.Pipeline) bool {
	return p.Problem != nil && p.Problem.Step == v1alpha1.SourceReadyCondition
}
