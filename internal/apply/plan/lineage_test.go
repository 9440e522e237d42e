// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
)

func TestLineage(t *testing.T) {
	deployment := inventory.ID{Group: "satchel.dev", Kind: "BundleDeployment", Namespace: "shop", Name: "web"}
	for name, tc := range map[string]struct {
		reason  string
		id      inventory.ID
		live    *ownership.Live // nil: it does not exist
		depth   int
		refused bool
	}{
		"itself":          {"it would change itself", deployment, &ownership.Live{UID: "self"}, 0, true},
		"itself, ours":    {"labels on it do not matter", deployment, &ownership.Live{UID: "self", Owner: owner, Fields: inventory.Hash{1}}, 0, true},
		"above":           {"each would wait for the other to go", deployment, &ownership.Live{UID: "parent"}, 1, true},
		"another":         {"it is its own to bring", deployment, nil, 1, false},
		"too deep":        {"somewhere it ends", deployment, nil, violation.MostNested, true},
		"as deep":         {"one less is in order", deployment, nil, violation.MostNested - 1, false},
		"deep, no matter": {"only deployments bring more", one, nil, violation.MostNested, false},
	} {
		t.Run(name, func(t *testing.T) {
			in := plan.Input{
				Owner: owner, Desired: []plan.Object{desired(tc.id, "")}, Rules: plan.Rules{
					Protection: ownership.None,
					Lineage:    violation.Lineage{Members: map[types.UID]string{"self": "this deployment itself", "parent": "the deployment shop/parent"}, Depth: tc.depth},
				}, Observed: plan.Observed{Live: map[inventory.ID]ownership.Live{}},
			}
			if tc.live != nil {
				in.Live[tc.id] = *tc.live
			}
			p := plan.Make(in)
			if got := len(p.Violations) == 1 && p.Violations[0].Rule == violation.Recursion && len(p.Stages) == 0; got != tc.refused || !got && len(p.Violations) > 0 {
				t.Errorf("%s: violations %v, stages %v", tc.reason, p.Violations, p.Stages)
			}
		})
	}
}
