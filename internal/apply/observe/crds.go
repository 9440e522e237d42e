// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/crdsafety"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// Judge compares a CRD on the cluster with the one that is to replace it, as crdsafety.Judge does, and within limits of CPU
// time and memory.
type Judge = func(ctx context.Context, live, desired *unstructured.Unstructured) (crdsafety.Judgement, error)

// judgedAtOnce bounds how many live CRDs, each up to a few megabytes, are held.
const judgedAtOnce = 2

// judgeDefinitions reads each CRD that the plan would change, and judges the change.
func judgeDefinitions(ctx context.Context, client *tenant.Client, judge Judge, in *plan.Input) error {
	objects := in.ToJudge()
	if len(objects) == 0 {
		return nil
	}
	type answer struct {
		judgement crdsafety.Judgement
		found     bool
		err       error
	}
	answers := parallel.Each(ctx, judgedAtOnce, objects, func(ctx context.Context, object plan.Object) answer {
		judgement, found, err := judgeDefinition(ctx, client, judge, object)
		return answer{judgement, found, err}
	})
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("observing the CRDs: %w", err)
	}
	in.Judgements = map[inventory.ID]crdsafety.Judgement{}
	var errs []error
	for i, a := range answers {
		errs = append(errs, a.err)
		if a.found {
			in.Judgements[objects[i].ID] = a.judgement
		}
	}
	return objecterror.Join(errs)
}

// judgeDefinition judges one CRD; false when it was deleted meanwhile.
func judgeDefinition(ctx context.Context, client *tenant.Client, judge Judge, object plan.Object) (crdsafety.Judgement, bool, error) {
	live, err := client.Get(ctx, tenant.RefTo(object.ID, object.Resource))
	if apierrors.IsNotFound(err) {
		return crdsafety.Judgement{}, false, nil
	}
	if err != nil {
		return crdsafety.Judgement{}, false, fmt.Errorf("observing %s: %w", object.ID, err)
	}
	if judge == nil {
		return crdsafety.Judgement{Unjudged: "nothing judges upgrades here"}, true, nil
	}
	judgement, err := judge(ctx, live, object.Desired)
	if err != nil {
		return crdsafety.Judgement{}, true, fmt.Errorf("judging the upgrade of %s: %w", object.ID, err)
	}
	return judgement, true, nil
}
