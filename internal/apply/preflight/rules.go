// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/rights"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/apply/tenant/connection"
)

// nowhere is an impossible namespace name. The permissions of an account in it are its
// permissions in the whole cluster, which the API server reports in no other way.
const nowhere = "-"

// Limits of the requests. The author of a bundle decides how many would be needed, and
// all tenants share the API server.
const (
	mostPlaces    = 500  // namespaces of which the rules are requested
	mostQuestions = 1000 // access reviews of single permissions
	mostTries     = 100  // dry runs
	// rulesAtOnce is less than elsewhere: an answer may be some MiB, and takes several
	// times as much memory.
	rulesAtOnce = 4
)

// permissionCheck finds out, as the tenant, which permissions it has.
type permissionCheck struct {
	client *tenant.Client
	plan   plan.Plan
	absent map[string]bool // namespaces
	// rules returns the rules of a namespace, and whether they may be out of date.
	rules func(context.Context, string) (authorizationv1.SubjectRulesReviewStatus, bool, error)

	unasked []string // namespaces, sorted, that were not asked about
	unknown int      // permissions that were not asked about
}

func newPermissionCheck(client *tenant.Client, p plan.Plan) *permissionCheck {
	a := permissionCheck{client: client, plan: p, absent: map[string]bool{}}
	a.rules = a.rulesNow
	if !p.Upgrade { // many may be installed together
		a.rules = client.RecentRules
	}
	for _, name := range p.Absent {
		a.absent[name] = true
	}
	return &a
}

// missing returns the wanted permissions that the account lacks, without those that the
// limits kept from being asked about.
func (a *permissionCheck) missing(ctx context.Context, w wanted) (rights.Missing, error) {
	findings, err := a.byRules(ctx, w)
	if err == nil && slices.ContainsFunc(findings, func(f finding) bool { return f.recent && !f.missing.None() }) {
		a.rules = a.rulesNow
		findings, err = a.byRules(ctx, w)
	}
	if err != nil {
		return rights.Missing{}, err
	}
	var sure, unsure rights.Missing
	for _, found := range findings {
		of := &unsure
		if found.sure {
			of = &sure
		}
		of.Needs, of.Demands = append(of.Needs, found.missing.Needs...), append(of.Demands, found.missing.Demands...)
	}
	if unsure, err = a.oneByOne(ctx, unsure); err != nil {
		return rights.Missing{}, err
	}
	missing := rights.Missing{Needs: slices.Concat(sure.Needs, unsure.Needs)}
	if missing.Demands, err = a.tried(ctx, missing.Needs, sure.Demands, unsure.Demands); err != nil {
		return rights.Missing{}, err
	}
	missing.Needs = withoutGrantedByPlan(a.plan, a.client.Identity(), missing, w.demands)
	return missing, nil
}

// finding lists the permissions that the account lacks at one place, by the rules that the
// API server reports. It is not sure when another authorizer than RBAC decides, too.
type finding struct {
	missing rights.Missing
	sure    bool
	recent  bool
	err     error
}

// byRules requests the rules for the cluster, and then for each namespace where they do not
// suffice; for a single place one request answers both. The rules of a place are dropped after
// the comparison.
func (a *permissionCheck) byRules(ctx context.Context, w wanted) ([]finding, error) {
	places, everywhere := a.places(w), ruling{}
	if _, whole := places[""]; whole || len(places) > 1 {
		var err error
		if everywhere, err = a.ruling(ctx, ""); err != nil {
			return nil, err
		}
		missing := rights.FindMissing(w.needs, w.demands, rights.Held{"": everywhere.rules})
		if everywhere.hidden {
			return []finding{{missing: missing}}, nil
		}
		places = a.places(w.only(missing))
	}
	names := slices.Sorted(maps.Keys(places))
	if len(names) > mostPlaces {
		names, a.unasked = names[:mostPlaces], names[mostPlaces:]
	}
	findings := parallel.Each(ctx, rulesAtOnce, names, func(ctx context.Context, name string) finding {
		here, err := everywhere, error(nil)
		if name != "" {
			here, err = a.ruling(ctx, name)
		}
		of, held := places[name], rights.Held{"": everywhere.rules, name: here.rules}
		return finding{missing: rights.FindMissing(of.needs, of.demands, held), sure: here.sure, recent: here.recent || everywhere.recent, err: err}
	})
	errs := []error{ctx.Err()}
	for _, found := range findings {
		errs = append(errs, found.err)
	}
	return findings, objecterror.Join(errs)
}

// places groups the wanted permissions by where they have to be held; "" is the cluster.
func (a *permissionCheck) places(w wanted) map[string]*wanted {
	places := map[string]*wanted{}
	if len(w.needs) > 0 && len(w.demands) == 0 && a.inOnePlace(w.needs) { // mostly they are, and need not be copied
		places[a.held(w.needs[0].Place())] = &w
		return places
	}
	at := func(name string) *wanted {
		name = a.held(name)
		if places[name] == nil {
			places[name] = &wanted{}
		}
		return places[name]
	}
	for _, need := range w.needs {
		of := at(need.Place())
		of.needs = append(of.needs, need)
	}
	for _, demand := range w.demands {
		of := at(demand.Namespace)
		of.demands = append(of.demands, demand)
	}
	return places
}

// held is where permissions for a namespace have to be held: in a namespace that does not exist only those for the cluster hold.
func (a *permissionCheck) held(namespace string) string {
	if a.absent[namespace] {
		return ""
	}
	return namespace
}

// inOnePlace tells whether all permissions have to be held at one place.
func (a *permissionCheck) inOnePlace(needs []rights.Need) bool {
	first := a.held(needs[0].Place())
	return !slices.ContainsFunc(needs, func(n rights.Need) bool { return a.held(n.Place()) != first })
}

// only returns the wanted permissions that are missing.
func (w wanted) only(missing rights.Missing) wanted {
	objects := map[inventory.ID]bool{}
	for _, demand := range missing.Demands {
		objects[demand.Object] = true
	}
	left := wanted{needs: missing.Needs}
	for _, demand := range w.demands {
		if objects[demand.Object] {
			left.demands = append(left.demands, demand)
		}
	}
	return left
}

// ruling is what the API server reports about the rules at a place.
type ruling struct {
	rules  *rights.Rules
	sure   bool // no other authorizer allows more
	hidden bool // not reported, or larger than the limit
	recent bool // up to a second old
}

func (a *permissionCheck) ruling(ctx context.Context, place string) (ruling, error) {
	status, recent, err := a.rules(ctx, cmp.Or(place, nowhere))
	var large *connection.AnswerTooLargeError
	switch {
	case apierrors.IsForbidden(err), errors.As(err, &large):
		return ruling{hidden: true}, nil
	case err != nil:
		return ruling{}, err
	}
	rules := rights.NewRules(rulesOf(status))
	return ruling{rules: rules, recent: recent, sure: !status.Incomplete && status.EvaluationError == "" && !rules.Partial()}, nil
}

// rulesNow asks for the rules.
func (a *permissionCheck) rulesNow(ctx context.Context, namespace string) (authorizationv1.SubjectRulesReviewStatus, bool, error) {
	status, err := a.client.Rules(ctx, namespace)
	return status, false, err
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

// warnings name what was not asked about because of the limits.
func (a *permissionCheck) warnings() []string {
	var list []string
	if len(a.unasked) > 0 {
		list = append(list, fmt.Sprintf("it is not known whether the ServiceAccount has the permissions that the bundle needs in %s: "+
			"only %d namespaces are checked, and none where cluster-wide permissions suffice", namespaces(a.unasked), mostPlaces))
	}
	if a.unknown > 0 {
		list = append(list, fmt.Sprintf("it is not known whether the ServiceAccount has %d of the permissions that the bundle needs: "+
			"the API server does not report all of its rules, and only %d single permissions are checked", a.unknown, mostQuestions))
	}
	return list
}

// namespaces names the first ones.
func namespaces(names []string) string {
	switch len(names) {
	case 1:
		return fmt.Sprintf("namespace %q", names[0])
	case 2:
		return fmt.Sprintf("namespaces %q and %q", names[0], names[1])
	}
	return fmt.Sprintf("%d namespaces (%s, %s and %d more)", len(names), names[0], names[1], len(names)-2)
}
