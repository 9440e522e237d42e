// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/controller/approvals"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/controller/rollout/approval"
	"github.com/satchel-dev/satchel/internal/controller/rollout/figures"
	"github.com/satchel-dev/satchel/internal/controller/rollout/fleet"
	"github.com/satchel-dev/satchel/internal/controller/shard"
	"github.com/satchel-dev/satchel/internal/controller/timeline"
)

// Options are the flags of the rollout controller's process.
type Options struct {
	// MaxClusters is how many clusters a rollout may have.
	MaxClusters int
	// ApprovalRetention is how long BundleApprovals of rollouts are kept after they have ended; 0 for ever.
	ApprovalRetention approvals.Retention
}

// BindFlags adds the flags to a set.
func (o *Options) BindFlags(fs *pflag.FlagSet) {
	fs.IntVar(&o.MaxClusters, "max-clusters", 5000, "How many clusters one BundleRollout may have.")
	o.ApprovalRetention.BindFlags(fs, approval.RetentionUsage)
}

// Setup adds the controller to a manager, for the rollouts of a shard, running the given number of reconciles at once.
func (o *Options) Setup(mgr ctrl.Manager, concurrent int, part shard.Shard) error {
	if o.MaxClusters < 1 {
		return fmt.Errorf("--max-clusters is %d: it has to be at least 1", o.MaxClusters)
	}
	deps, err := o.deps(mgr, part)
	if err == nil {
		marker := approval.Marker{Client: deps.Client, Live: deps.APIReader, Manager: FieldManager}
		err = o.ApprovalRetention.Collect(mgr, marker.Collector(part))
	}
	if err != nil {
		return err
	}
	return NewReconciler(deps).SetupWithManager(mgr, concurrent)
}

func (o *Options) deps(mgr ctrl.Manager, part shard.Shard) (Deps, error) {
	tenants, err := tenant.NewPool(mgr.GetConfig(), tenant.Options{})
	if err != nil {
		return Deps{}, fmt.Errorf("preparing clients: %w", err)
	}
	measures, err := pipeline.NewMetrics(metrics.Registry)
	counts, failed := figures.New(metrics.Registry)
	running := pipeline.NewRunning()
	if err := errors.Join(err, failed, running.Register(metrics.Registry), metrics.Registry.Register(figures.Census{Reader: mgr.GetCache(), Shard: part.Listed(), Leads: mgr.Elected()})); err != nil {
		return Deps{}, fmt.Errorf("registering metrics: %w", err)
	}
	if err := mgr.AddHealthzCheck("reconciles", running.Check); err != nil {
		return Deps{}, fmt.Errorf("preparing the health check: %w", err)
	}
	return Deps{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Events: mgr.GetEventRecorder(FieldManager),
		Shard: part, Metrics: measures, Running: running, Figures: counts, Clusters: fleet.Lister{Tenants: tenants, Most: o.MaxClusters},
		Now: timeline.Of(mgr).Now,
	}, nil
}
