// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/observe"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/requirement"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/internal/spec/leftout"
)

// Request is what a plan is made of, beside the cluster.
type Request struct {
	Deployment *v1alpha1.BundleDeployment
	Owner      inventory.Owner
	Previous   inventory.Inventory
	// Revision of the bundle; "" for one that no source has published.
	Revision string
	Bundle   Bundle
	// HashKey makes the hashes of the inventory. Without it, each existing object counts as changed: see Made.Forecast.
	HashKey []byte
	Judge   observe.Judge
	// Keeping: the applied revision is compared again while a newer one fails. It has passed all checks before.
	Keeping bool
	// WithoutNamespace: the namespace of spec.target is not created.
	WithoutNamespace bool
	// Room is what the inventory may take in the status.
	Room inventory.Limit
	Neighbours
}

// Bundle is a converted bundle, as far as planning reads it.
type Bundle struct {
	// Objects are to be applied; they may have certificates and CA bundles in addition to what was converted.
	Objects  []*unstructured.Unstructured
	Hooks    []plan.Hook
	Ranks    map[inventory.ID]int
	Requires []convert.Requirement
	Package  convert.Package
	// Files are those that it was read from, and Applied returns those of the applied revision.
	Files   leftout.Bundle
	Applied func(context.Context) leftout.Applied
}

// Made is a plan, and what it was made from.
type Made struct {
	Plan     plan.Plan
	Observed plan.Input
	// Refusing are the names of the deployments that require what the plan would take from them, and because of which it is refused.
	Refusing map[string]bool
	// TooLarge says why the inventory of a plan without violations could not be stored; nil if it can.
	TooLarge error

	request Request
	client  *tenant.Client
}

// Make observes the cluster as the client, and makes the plan. An error means that something could not be read; all that keeps
// the plan from being executed is in the result.
func Make(ctx context.Context, client *tenant.Client, r Request) (*Made, error) {
	asked, err := r.observing(ctx)
	if err != nil {
		return nil, err
	}
	m := &Made{request: r, client: client}
	if m.Observed, err = observe.Cluster(ctx, client, asked); err != nil {
		return nil, err
	}
	if !r.Keeping {
		if needs := spec.Needs(m.Observed); len(needs) > 0 {
			m.Observed.Facts.Offers = r.Offers(ctx, needs)
		}
		if len(r.Bundle.Files.LeftOut) > 0 {
			m.Observed.Withheld = leftout.Hold(r.Bundle.Files, r.Bundle.Applied(ctx), r.Previous)
		}
	}
	return m, m.make(ctx)
}

// LiftHold makes the plan again with the deletions that the plan held.
func (m *Made) LiftHold(ctx context.Context) error {
	m.Observed.Pruning.Limit = nil
	m.Observed.Withheld = nil
	return m.make(ctx)
}

// make makes the plan from what was observed, and checks what it means for other deployments and for the status.
func (m *Made) make(ctx context.Context) error {
	m.Plan = plan.Make(m.Observed)
	m.TooLarge = nil
	if m.request.Keeping {
		return nil
	}
	if err := m.protectDependents(ctx); err != nil {
		return err
	}
	if len(m.Plan.Violations) == 0 {
		m.TooLarge = m.request.Room.CheckPlanned(m.request.Previous, m.Plan.Inventory, leaving(m.Plan))
	}
	return nil
}

// leaving are the objects that the inventory lists until they are deleted.
func leaving(made plan.Plan) map[inventory.ID]bool {
	removed := map[inventory.ID]bool{}
	for _, stages := range [][]plan.DeletionStage{made.PruneFirst, made.Prune} {
		for _, stage := range stages {
			for _, deletion := range stage.Deletions {
				removed[deletion.ID] = true
			}
		}
	}
	if made.Held != nil {
		for _, id := range made.Held.Objects {
			removed[id] = true
		}
	}
	return removed
}

// observing is what is asked of the cluster.
func (r Request) observing(ctx context.Context) (observe.Request, error) {
	asked, err := spec.Observing(r.Deployment, r.Keeping)
	if err != nil {
		return asked, &InvalidError{Err: err}
	}
	asked.Owner = r.Owner
	asked.Previous = r.Previous
	asked.Desired = r.Bundle.Objects
	asked.Hooks = r.Bundle.Hooks
	asked.Ranks = r.Bundle.Ranks
	asked.HashKey = r.HashKey
	asked.Judge = r.Judge
	asked.CreateNamespace = asked.CreateNamespace && !r.WithoutNamespace
	if r.Keeping {
		return asked, nil
	}
	asked.Returning = spec.Returning(r.Deployment, r.Revision)
	if asked.Lineage, err = r.lineage(ctx); err != nil {
		return asked, err
	}
	asked.Requirements = spec.Requirements(r.Bundle.Requires)
	names := requiredPackages(asked.Requirements)
	if len(names) == 0 || asked.RequirementsPolicy == plan.EnforcementNone {
		return asked, nil
	}
	asked.Packages, err = r.packages(ctx, names)
	return asked, err
}

// RequiredPackages are the names of the packages that a bundle requires.
func (b Bundle) RequiredPackages() map[string]bool {
	return requiredPackages(spec.Requirements(b.Requires))
}

func requiredPackages(requirements []requirement.Requirement) map[string]bool {
	names := map[string]bool{}
	for _, one := range requirements {
		if one.Kind == requirement.RequirePackage {
			names[one.Name] = true
		}
		maps.Copy(names, requiredPackages(one.Of))
	}
	return names
}

// InvalidError is about a spec that no plan can be made of.
type InvalidError struct{ Err error }

// Error is the reason.
func (e *InvalidError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *InvalidError) Unwrap() error { return e.Err }
