// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/crds"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/crdsafety"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/apply/webhookserver"
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
		judged
		found bool
		err   error
	}
	answers := parallel.Each(ctx, judgedAtOnce, objects, func(ctx context.Context, object plan.Object) answer {
		judged, found, err := judgeDefinition(ctx, client, judge, object, in.Desired)
		return answer{judged, found, err}
	})
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("observing the CRDs: %w", err)
	}
	in.Judgements, in.Unfit = map[inventory.ID]crdsafety.Judgement{}, map[inventory.ID]string{}
	in.Unused, in.Unlisted = map[inventory.ID]bool{}, map[inventory.ID]string{}
	var errs []error
	for i, a := range answers {
		errs = append(errs, a.err)
		if a.found {
			in.Judgements[objects[i].ID] = a.judgement
			in.Unfit[objects[i].ID] = a.unfit
			in.Unused[objects[i].ID] = a.unused
			in.Unlisted[objects[i].ID] = a.unlisted
		}
	}
	return objecterror.Join(errs)
}

// judged is the judgement about a CRD, and why its bundle cannot work with the one on the cluster.
type judged struct {
	judgement crdsafety.Judgement
	unfit     string
	unused    bool   // there is no custom resource
	unlisted  string // why that is not known
}

// judgeDefinition judges one CRD; false when it was deleted meanwhile.
func judgeDefinition(ctx context.Context, client *tenant.Client, judge Judge, object plan.Object, desired []plan.Object) (judged, bool, error) {
	live, err := client.Get(ctx, tenant.RefTo(object.ID, object.Resource))
	if apierrors.IsNotFound(err) {
		return judged{}, false, nil
	}
	if err != nil {
		return judged{}, false, fmt.Errorf("observing %s: %w", object.ID, err)
	}
	found := judged{unfit: crds.Unfit(live, object.Desired)}
	if judge == nil {
		found.judgement.Unjudged = "nothing judges upgrades here"
		return found, true, nil
	}
	if found.judgement, err = judge(ctx, live, object.Desired); err != nil {
		return judged{}, true, fmt.Errorf("judging the upgrade of %s: %w", object.ID, err)
	}
	found.judgement.Switched = webhookserver.AtOnce(live, object.Desired, desired)
	found.judgement.Restored = crds.StoredBefore(live, object.Desired)
	if len(found.judgement.Breaking) > 0 || found.judgement.Unjudged != "" {
		found.unused, found.unlisted = resources(ctx, client, live)
	}
	return found, true, ctx.Err()
}

// resources tells whether a CRD has no custom resource in any namespace, from one LIST of at most one, or why that is not
// known.
func resources(ctx context.Context, client *tenant.Client, crd *unstructured.Unstructured) (unused bool, unlisted string) {
	resource := crds.Resources(crd)
	if resource.Version == "" {
		return false, "none of its versions is served"
	}
	page, err := client.ListMetadata(ctx, tenant.Ref{Resource: resource}, metav1.ListOptions{Limit: 1})
	switch {
	case apierrors.IsForbidden(err):
		return false, fmt.Sprintf("the ServiceAccount has no permission to list %s in all namespaces", resource.GroupResource())
	case err != nil:
		return false, objecterror.OneLine(err.Error())
	}
	return len(page.Items) == 0 && page.Continue == "", ""
}
