// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/requirement"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
	"github.com/satchel-dev/satchel/internal/apply/tenant/discovery"
)

// Dependent is another deployment of the same namespace and cluster.
type Dependent struct {
	Name string
	// Policy for unmet requirements of its bundle.
	Policy plan.Enforcement
	// Requires is what its healthy revision requires.
	Requires []requirement.Requirement
}

// Others are the other deployments of a namespace on the same cluster: those that require something, and the packages of all.
type Others struct {
	Dependents []Dependent
	Packages   []requirement.Package
}

// served maps the kinds that the cluster serves to their resources.
type served map[schema.GroupVersionKind]schema.GroupVersionResource

// Judge adds to a plan the violations and warnings for what it takes from others. The list is asked only if something changes that
// others may require. It returns the names of those that the plan is refused for.
func (c Change) Judge(ctx context.Context, cache *discovery.Cache, policy plan.Enforcement, list func(context.Context) (Others, error), made *plan.Plan) (map[string]bool, error) {
	if c.IsEmpty() || policy != plan.Enforce && policy != plan.Warn {
		return nil, nil
	}
	of, err := list(ctx)
	if err != nil || len(of.Dependents) == 0 {
		return nil, err
	}
	now, err := look(ctx, cache, c.kinds(of))
	if err != nil {
		return nil, err
	}
	found := c.breaches(policy, of, now)
	made.Violations = violation.SortViolations(append(made.Violations, found.violations...))
	made.Warnings = slices.Sorted(slices.Values(append(made.Warnings, found.warnings...)))
	return found.refusing, nil
}

// kinds are those that the requirements are about which a plan may break, sorted.
func (c Change) kinds(of Others) []schema.GroupVersionKind {
	var concerned []requirement.Requirement
	for _, one := range of.Dependents {
		for _, r := range one.Requires {
			if c.concerns(r) {
				concerned = append(concerned, r)
			}
		}
	}
	kinds, _ := requirement.Asked(concerned)
	return kinds
}

// look finds the kinds that the cluster serves among some.
func look(ctx context.Context, cache *discovery.Cache, kinds []schema.GroupVersionKind) (served, error) {
	found := served{}
	for _, kind := range kinds {
		as, err := find(ctx, cache, kind)
		switch {
		case err == nil:
			found[kind] = as.Resource
		case !discovery.IsNoKind(err):
			return nil, fmt.Errorf("observing what other deployments require: %w", err)
		}
	}
	return found, nil
}

// find looks up a kind; without a version, in any.
func find(ctx context.Context, cache *discovery.Cache, kind schema.GroupVersionKind) (discovery.Kind, error) {
	if kind.Version == "" {
		return cache.Preferred(ctx, kind.GroupKind())
	}
	return cache.Find(ctx, kind)
}

// breaches are what a plan takes from others.
type breaches struct {
	violations []violation.Violation
	warnings   []string
	refusing   map[string]bool // the deployments of the violations
}

// breaches finds the requirements that are met before the plan and not after it. They are violations, and warnings where this
// deployment or the other one only warns. A requirement of several deployments is one breach.
func (c Change) breaches(policy plan.Enforcement, of Others, now served) breaches {
	before, after := c.facts(of, now)
	found := breaches{refusing: map[string]bool{}}
	enforcing, warning := map[string][]string{}, map[string][]string{}
	for _, one := range of.Dependents {
		for _, r := range one.Requires {
			if !c.concerns(r) || !before.Met(r) || after.Met(r) {
				continue
			}
			switch weaker(policy, one.Policy) {
			case plan.Enforce:
				enforcing[r.String()] = append(enforcing[r.String()], one.Name)
				found.refusing[one.Name] = true
			case plan.Warn:
				warning[r.String()] = append(warning[r.String()], one.Name)
			}
		}
	}
	for _, what := range slices.Sorted(maps.Keys(enforcing)) {
		found.violations = append(found.violations, violation.Violation{
			Rule: violation.BreaksDependent, Message: c.message(enforcing[what], what),
			Remedy: "first upgrade or delete what needs it, or, where that does without, set its spec.registryV1.requirements to Warn",
		})
	}
	for _, what := range slices.Sorted(maps.Keys(warning)) {
		found.warnings = append(found.warnings, c.message(warning[what], what))
	}
	return found
}

// Requiring are the deployments that would lose a requirement which they do not ignore, sorted, whether they warn or refuse. Kinds count
// as not served.
func (c Change) Requiring(of Others) []string {
	strict := Others{Packages: of.Packages}
	for _, one := range of.Dependents {
		if weaker(one.Policy, plan.Warn) == plan.Warn {
			one.Policy = plan.Enforce
			strict.Dependents = append(strict.Dependents, one)
		}
	}
	return slices.Sorted(maps.Keys(c.breaches(plan.Enforce, strict, nil).refusing))
}

// facts are what requirements are compared with, before and after the plan.
func (c Change) facts(of Others, now served) (before, after requirement.Facts) {
	before, after = factsOf(of.Packages, c.before), factsOf(of.Packages, c.after)
	for _, kind := range c.kinds(of) {
		before.Kinds[kind] = now[kind].Resource != ""
		after.Kinds[kind] = c.serves(kind, now[kind])
	}
	return before, after
}

// factsOf are facts with the packages of others and an own one.
func factsOf(others []requirement.Package, own requirement.Package) requirement.Facts {
	return requirement.Facts{Kinds: map[schema.GroupVersionKind]bool{}, Packages: append(slices.Clone(others), own)}
}

// weaker is the less strict of two policies.
func weaker(a, b plan.Enforcement) plan.Enforcement {
	for _, policy := range []plan.Enforcement{plan.EnforcementNone, "", plan.Warn} {
		if a == policy || b == policy {
			return policy
		}
	}
	return plan.Enforce
}

// mostNamed is how many deployments a breach names.
const mostNamed = 10

// message says who needs what, and what becomes of the package.
func (c Change) message(names []string, what string) string {
	slices.Sort(names)
	names = slices.Compact(names)
	text, needs := "deployment ", " needs "
	if len(names) > 1 {
		text, needs = "deployments ", " need "
	}
	text += strings.Join(names[:min(len(names), mostNamed)], ", ")
	if more := len(names) - mostNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text + needs + what + ", which is not there after this plan" + c.packageChange()
}

// packageChange says what becomes of the package; "" if it stays.
func (c Change) packageChange() string {
	switch {
	case c.before == c.after || c.before.Name == "":
		return ""
	case c.before.Name != c.after.Name:
		return fmt.Sprintf(" (it removes package %s)", c.before.Name)
	}
	return fmt.Sprintf(" (%s %s becomes %s)", c.before.Name, c.before.Version, c.after.Version)
}
