// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/rights"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// nowhere is no namespace: none can have this name. What an account may do in it is
// what it may do in the whole cluster, which the API server tells in no other way.
const nowhere = "-"

// asking finds out as the tenant what it may do.
type asking struct {
	client *tenant.Client
	plan   plan.Plan
}

// missing is what the account lacks of what is wanted.
func (a asking) missing(ctx context.Context, w wanted) (rights.Missing, error) {
	held, sure, err := a.held(ctx, w)
	if err != nil {
		return rights.Missing{}, err
	}
	missing := rights.Lacking(w.needs, w.demands, held)
	if !sure {
		if missing, err = a.oneByOne(ctx, missing); err != nil {
			return rights.Missing{}, err
		}
	}
	if missing.Demands, err = a.tried(ctx, missing); err != nil {
		return rights.Missing{}, err
	}
	missing.Needs = withoutGains(a.plan, a.client.Identity(), missing, w.demands)
	return missing, nil
}

// held asks for the rules of each place. They may be incomplete, where something
// else than RBAC decides, too; then they are not sure.
func (a asking) held(ctx context.Context, w wanted) (rights.Held, bool, error) {
	places := map[string]bool{}
	for _, need := range w.needs {
		places[need.Place()] = true
	}
	for _, demand := range w.demands {
		places[demand.Namespace] = true
	}
	names := slices.Sorted(maps.Keys(places))
	type answer struct {
		status authorizationv1.SubjectRulesReviewStatus
		sure   bool
		err    error
	}
	answers := parallel.Each(ctx, defaultParallelism, names, func(ctx context.Context, name string) answer {
		if name == "" {
			name = nowhere
		}
		status, err := a.client.Rules(ctx, name)
		if apierrors.IsForbidden(err) {
			return answer{}
		}
		return answer{status, !status.Incomplete && status.EvaluationError == "", err}
	})
	held, sure, errs := rights.Held{}, true, []error(nil)
	for i, name := range names {
		held[name] = rights.NewRules(rulesOf(answers[i].status))
		sure = sure && answers[i].sure
		errs = append(errs, answers[i].err)
	}
	return held, sure, firstErrors(errs)
}

func rulesOf(status authorizationv1.SubjectRulesReviewStatus) []rbacv1.PolicyRule {
	rules := make([]rbacv1.PolicyRule, 0, len(status.ResourceRules)+len(status.NonResourceRules))
	for _, rule := range status.ResourceRules {
		rules = append(rules, rbacv1.PolicyRule{
			Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames,
		})
	}
	for _, rule := range status.NonResourceRules {
		rules = append(rules, rbacv1.PolicyRule{Verbs: rule.Verbs, NonResourceURLs: rule.NonResourceURLs})
	}
	return rules
}

// oneByOne asks for each right by itself. Of a demand only the right that stands in
// for the others is asked for: RBAC's escalation check looks at rules alone.
func (a asking) oneByOne(ctx context.Context, missing rights.Missing) (rights.Missing, error) {
	needs, err := a.denied(ctx, missing.Needs)
	if err != nil {
		return rights.Missing{}, err
	}
	instead := make([]rights.Need, 0, len(missing.Demands))
	for _, demand := range missing.Demands {
		instead = append(instead, rights.Need{Object: demand.Object, Namespace: demand.Namespace, Right: demand.Instead})
	}
	open, err := a.denied(ctx, instead)
	if err != nil {
		return rights.Missing{}, err
	}
	left := rights.Missing{Needs: needs}
	for i, demand := range missing.Demands {
		if slices.Contains(open, instead[i]) {
			left.Demands = append(left.Demands, demand)
		}
	}
	return left, nil
}

// denied gives the needs that the account is not allowed. Where it may do something
// to all objects of a resource, the single ones are not asked for.
func (a asking) denied(ctx context.Context, needs []rights.Need) ([]rights.Need, error) {
	var general []rights.Need
	for _, need := range needs {
		general = append(general, generally(need))
	}
	slices.SortFunc(general, func(a, b rights.Need) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	general = slices.Compact(general)
	allowed, err := a.allowed(ctx, general)
	if err != nil {
		return nil, err
	}
	all := map[rights.Need]bool{}
	for i, need := range general {
		all[need] = allowed[i]
	}
	single := slices.DeleteFunc(slices.Clone(needs), func(need rights.Need) bool { return all[generally(need)] })
	if allowed, err = a.allowed(ctx, single); err != nil {
		return nil, err
	}
	var denied []rights.Need
	for i, need := range single {
		if !allowed[i] {
			denied = append(denied, need)
		}
	}
	return denied, nil
}

// generally is the same right to all objects.
func generally(need rights.Need) rights.Need {
	of := rights.Need{Namespace: need.Place(), Right: need.Right}
	of.Right.Name = ""
	return of
}

// allowed asks a question a need.
func (a asking) allowed(ctx context.Context, needs []rights.Need) ([]bool, error) {
	type answer struct {
		allowed bool
		err     error
	}
	answers := parallel.Each(ctx, defaultParallelism, needs, func(ctx context.Context, need rights.Need) answer {
		allowed, err := a.client.Allowed(ctx, authorizationv1.ResourceAttributes{
			Namespace: need.Place(), Verb: need.Right.Verb, Group: need.Right.Group, Resource: need.Right.Resource, Name: need.Right.Name,
		})
		return answer{allowed, err}
	})
	allowed, errs := make([]bool, len(needs)), []error{ctx.Err()}
	for i, answer := range answers {
		allowed[i] = answer.allowed
		errs = append(errs, answer.err)
	}
	return allowed, firstErrors(errs)
}

// tried has the API server try to write what seems to grant too much, for it knows
// more: how it is, and the rules of roles that the account may not read.
func (a asking) tried(ctx context.Context, missing rights.Missing) ([]rights.Demand, error) {
	unwritable := map[inventory.ID]bool{}
	for _, object := range a.plan.Unreadable {
		unwritable[object.ID] = true
	}
	for _, need := range missing.Needs {
		unwritable[need.Object] = unwritable[need.Object] || need.Right.Verb != "delete"
	}
	actions := map[inventory.ID]plan.Action{}
	for _, action := range a.plan.Actions() {
		actions[action.ID] = action
	}
	dry := dryRun{plan: newIn(a.plan), writer: writer{
		client: a.client, manager: a.plan.Owner.Manager(), dryRun: true,
		previous: func(inventory.ID) *unstructured.Unstructured { return nil },
	}}
	type verdict struct {
		lacks bool
		err   error
	}
	verdicts := parallel.Each(ctx, defaultParallelism, missing.Demands, func(ctx context.Context, demand rights.Demand) verdict {
		if unwritable[demand.Object] {
			return verdict{lacks: true}
		}
		lacks, err := lacks(demand, dry.object(ctx, actions[demand.Object]))
		return verdict{lacks, err}
	})
	var lacking []rights.Demand
	errs := []error{ctx.Err()}
	for i, demand := range missing.Demands {
		if verdicts[i].lacks {
			lacking = append(lacking, demand)
		}
		errs = append(errs, verdicts[i].err)
	}
	return lacking, firstErrors(errs)
}

// lacks tells from what came of trying to write an object whether the account lacks
// what the object seems to demand. The first line that holds decides; an object that
// may not be written lacks it in any case.
//
//	it passes                              nothing is lacking
//	the API server is out of order         nobody knows: an error
//	it is forbidden                        the rules, or the right to bind, are lacking
//	it depends on others of the same plan  the rules are lacking, where they are known
//	else                                   the object itself is wrong: the dry run says it
func lacks(demand rights.Demand, answer dryAnswer) (bool, error) {
	switch failed := answer.failed; {
	case failed == nil:
		return false, nil
	case failed.Transient() && !answer.unknown:
		return false, failed
	case failed.Reason == metav1.StatusReasonNotFound:
		return !demand.Unknown, nil
	default:
		return failed.Reason == metav1.StatusReasonForbidden, nil
	}
}
