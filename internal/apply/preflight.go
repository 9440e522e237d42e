// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// Preflight finds the permissions that the account lacks for what the plan
// writes: one question a namespace, and one more for each right that the answer
// does not show. A plan that writes nothing costs nothing. The API server's own
// answer to the writes stays decisive.
func Preflight(ctx context.Context, client *tenant.Client, p plan.Plan) ([]plan.Violation, error) {
	needs := needsOf(p, client.Identity())
	rules, err := readRules(ctx, client, needs)
	if err != nil {
		return nil, err
	}
	var open []need
	for _, n := range needs {
		if !granted(rules[n.namespace], n) {
			open = append(open, n)
		}
	}
	type answer struct {
		allowed bool
		err     error
	}
	answers := parallel.Each(ctx, defaultParallelism, open, func(ctx context.Context, n need) answer {
		allowed, err := client.Allowed(ctx, n.attributes())
		return answer{allowed, err}
	})
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("checking permissions: %w", err)
	}
	var lacking []need
	var errs []error
	for i, a := range answers {
		errs = append(errs, a.err)
		if !a.allowed && a.err == nil {
			lacking = append(lacking, open[i])
		}
	}
	if err := firstErrors(errs); err != nil {
		return nil, fmt.Errorf("checking permissions: %w", err)
	}
	return violations(lacking, client.Identity()), nil
}

// need is a right to one verb on one object.
type need struct {
	verb            string
	resource        schema.GroupResource
	namespace, name string
	action          plan.Action
}

// needsOf lists what the writes of a plan need, sorted. Where the plan itself
// grants the account rights, nothing can be said before.
func needsOf(p plan.Plan, id tenant.Identity) []need {
	var needs []need
	for _, action := range p.Actions() {
		if plan.IsAccess(action.ID) && binds(action, id) {
			return nil
		}
		if !action.Writes() {
			continue
		}
		verbs := []string{"get", "patch"}
		if action.Verb == plan.Create || action.Verb == plan.Repair {
			verbs = append(verbs, "create")
		}
		for _, verb := range verbs {
			needs = append(needs, need{
				verb: verb, resource: action.Resource.GroupResource(),
				namespace: action.Namespace, name: action.Name, action: action,
			})
		}
	}
	return needs
}

// binds tells whether a binding grants something to the account.
func binds(action plan.Action, id tenant.Identity) bool {
	subjects, _ := action.Desired.Object["subjects"].([]any)
	return slices.ContainsFunc(subjects, func(subject any) bool {
		fields, _ := subject.(map[string]any)
		namespace, _ := fields["namespace"].(string)
		return fields["kind"] == "ServiceAccount" && fields["name"] == id.ServiceAccount &&
			cmp.Or(namespace, action.Namespace) == id.Namespace
	})
}

// readRules asks what the account may do in each namespace concerned. Objects of
// the cluster are left to single questions: a namespace's rules do not tell.
func readRules(ctx context.Context, client *tenant.Client, needs []need) (map[string][]authorizationv1.ResourceRule, error) {
	names := map[string]bool{}
	for _, n := range needs {
		if n.namespace != "" {
			names[n.namespace] = true
		}
	}
	sorted := slices.Sorted(maps.Keys(names))
	type answer struct {
		rules []authorizationv1.ResourceRule
		err   error
	}
	answers := parallel.Each(ctx, defaultParallelism, sorted, func(ctx context.Context, name string) answer {
		status, err := client.Rules(ctx, name)
		if apierrors.IsForbidden(err) {
			err = nil // then every right is asked for by itself
		}
		return answer{status.ResourceRules, err}
	})
	rules, errs := map[string][]authorizationv1.ResourceRule{}, []error(nil)
	for i, name := range sorted {
		rules[name] = answers[i].rules
		errs = append(errs, answers[i].err)
	}
	if err := firstErrors(errs); err != nil {
		return nil, fmt.Errorf("checking permissions: %w", err)
	}
	return rules, nil
}

// granted tells whether a rule shows the right.
func granted(rules []authorizationv1.ResourceRule, n need) bool {
	has := func(list []string, wanted string) bool {
		return slices.Contains(list, wanted) || slices.Contains(list, "*")
	}
	return slices.ContainsFunc(rules, func(rule authorizationv1.ResourceRule) bool {
		return has(rule.Verbs, n.verb) && has(rule.APIGroups, n.resource.Group) && has(rule.Resources, n.resource.Resource) &&
			(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, n.name))
	})
}

func (n need) attributes() authorizationv1.ResourceAttributes {
	return authorizationv1.ResourceAttributes{
		Namespace: n.namespace, Verb: n.verb, Name: n.name,
		Group: n.resource.Group, Resource: n.resource.Resource,
	}
}

// violations words what is lacking, one violation a resource and namespace.
func violations(lacking []need, id tenant.Identity) []plan.Violation {
	type place struct {
		resource  schema.GroupResource
		namespace string
	}
	byPlace := map[place][]need{}
	for _, n := range lacking {
		at := place{n.resource, n.namespace}
		byPlace[at] = append(byPlace[at], n)
	}
	var found []plan.Violation
	for at, needs := range byPlace {
		verbs, names := map[string]bool{}, map[string]bool{}
		for _, n := range needs {
			verbs[n.verb], names[n.name] = true, true
		}
		wanted := strings.Join(slices.Sorted(maps.Keys(verbs)), ", ")
		where, by := "in the cluster", "by a ClusterRole and a ClusterRoleBinding"
		if at.namespace != "" {
			where, by = fmt.Sprintf("in namespace %q", at.namespace), "by a Role and a RoleBinding there"
		}
		found = append(found, plan.Violation{
			Rule: plan.PermissionMissing, Object: needs[0].action.ID,
			Message: fmt.Sprintf("cannot %s %s %s (%s)", wanted, at.resource, where, few(slices.Sorted(maps.Keys(names)))),
			Remedy:  fmt.Sprintf("grant service account %q the verbs %s on %s %s", id, wanted, at.resource, by),
		})
	}
	return plan.SortViolations(found)
}

// few lists the first names and counts the rest.
func few(names []string) string {
	const enough = 5
	if len(names) > enough {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:enough], ", "), len(names)-enough)
	}
	return strings.Join(names, ", ")
}
