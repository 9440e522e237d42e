// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"context"
	"maps"

	"github.com/satchel-dev/satchel/internal/apply/dependents"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/controller/deployment/dependency"
	"github.com/satchel-dev/satchel/internal/spec"
)

// protectDependents adds to a plan what it would take from other deployments of the namespace. A deployment with a plan that is refused for
// that is woken when one of them changes what it requires.
func (st *Stage) protectDependents(ctx context.Context, in *Input, policy plan.Enforcement, made *plan.Plan) error {
	if in.Keeping {
		return nil
	}
	change := spec.ChangeOf(*made, in.Object, in.Resolved.Revision(), in.Rendered.Contains)
	target := in.Listed.Current().Target()
	refusing, err := change.Judge(ctx, in.Resolved.Access.Client.Kinds(), policy, func(ctx context.Context) (of dependents.Others, err error) {
		requiring, err := dependency.Requiring(ctx, st.Reader, in.Object.Namespace)
		if err != nil {
			return of, err
		}
		if of.Dependents = spec.Dependents(requiring, in.Object, target); len(of.Dependents) == 0 {
			return of, nil
		}
		names := map[string]bool{}
		for _, one := range of.Dependents {
			maps.Copy(names, namesOf(one.Requires))
		}
		of.Packages, err = st.packages(ctx, in.Object, target, names)
		return of, err
	}, made)
	st.Blocked.Set(in.Key(), refusing)
	return err
}
