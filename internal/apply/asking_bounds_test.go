// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/preflight"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

const (
	manyPlaces = 1000
	// atMost of computing is for what takes one or two seconds. Time to wait on a busy machine does not count.
	atMost = 15 * time.Second
)

func placeName(i int) string { return fmt.Sprintf("place-%03d", i) }

func placeNames() []string {
	var names []string
	for i := range manyPlaces {
		names = append(names, placeName(i))
	}
	return names
}

func creating(resource schema.GroupVersionResource, kind, namespace, name string, fields map[string]any) plan.Action {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	for field, value := range fields {
		object.Object[field] = value
	}
	object.SetAPIVersion(resource.GroupVersion().String())
	object.SetKind(kind)
	object.SetNamespace(namespace)
	object.SetName(name)
	return plan.Action{Verb: plan.Create, Object: plan.Object{
		ID: inventory.IDOf(object), Desired: object, Kind: plan.Kind{Resource: resource, Namespaced: namespace != ""},
	}}
}

// spread is a plan that creates ten ConfigMaps in each of a thousand namespaces.
func spread() plan.Plan {
	stage := plan.Stage{Name: "all"}
	for i := range manyPlaces {
		for j := range 10 {
			stage.Actions = append(stage.Actions, creating(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
				"ConfigMap", placeName(i), fmt.Sprintf("c%d", j), nil))
		}
	}
	return plan.Plan{Owner: inventory.Owner{Namespace: "team", Name: "app"}, Stages: []plan.Stage{stage}}
}

func rulesOn(groups, resources string, verbs ...string) authorizationv1.ResourceRule {
	return authorizationv1.ResourceRule{Verbs: verbs, APIGroups: []string{groups}, Resources: []string{resources}}
}

// counted is how many reviews were requested.
func (a *authority) counted() (rules, questions, writes int) {
	for _, what := range a.asked {
		switch {
		case what == "selfsubjectrulesreviews":
			rules++
		case strings.Contains(what, " "):
			questions++
		default:
			writes++
		}
	}
	return rules, questions, writes
}

// However many namespaces and objects a bundle names, the cost of a preflight for the API server
// is bounded; and for an account that plainly may do everything one
// request is enough.
func TestPreflightOfTenThousandObjects(t *testing.T) {
	type answer = authorizationv1.SubjectRulesReviewStatus
	all, maps := rulesOn("*", "*", "*"), rulesOn("", "configmaps", "create", "delete", "get", "patch")
	status := func(rules ...authorizationv1.ResourceRule) answer { return answer{ResourceRules: rules} }
	in := func(namespace string, rules ...authorizationv1.ResourceRule) map[string]answer {
		return map[string]answer{namespace: status(rules...)}
	}
	incomplete, huge := answer{Incomplete: true}, answer{EvaluationError: strings.Repeat("x", 3<<20)}
	always := func(authorizationv1.ResourceAttributes) bool { return true }
	never := func(authorizationv1.ResourceAttributes) bool { return false }
	byName := func(of authorizationv1.ResourceAttributes) bool { return of.Name != "" }
	absent := placeNames()
	for name, tc := range map[string]struct {
		reason           string
		authority        *authority
		absent           []string
		rules, questions int
		violations       int
		warning          string
	}{
		"administrator":     {"what the cluster allows is not asked for elsewhere", &authority{rules: status(all)}, nil, 1, 0, 0, ""},
		"all maps":          {"no more is needed", &authority{rules: status(), at: in("-", maps)}, nil, 1, 0, 0, ""},
		"new namespaces":    {"only cluster-wide permissions hold there", &authority{rules: status(all), at: in("-")}, absent, 1, 0, 51, ""},
		"nothing":           {"so many are asked for, and fewer worded", &authority{}, nil, 501, 0, 51, "needs in 500 namespaces (place-500, place-501 and 498 more)"},
		"each by itself":    {"what is not known is not held against the account", &authority{rules: status(maps), at: in("-")}, nil, 501, 0, 0, "needs in 500 namespaces"},
		"others decide":     {"one question a verb for all namespaces", &authority{rules: incomplete, allowed: always}, nil, 501, 4, 0, "needs in 500 namespaces"},
		"others say no":     {"so many questions", &authority{rules: incomplete, allowed: never}, nil, 501, 1000, 13, "has 19502 of the permissions"},
		"more than is read": {"the other answers would be as large", &authority{rules: huge, allowed: byName}, nil, 1, 1000, 0, "has 39502 of the permissions"},
	} {
		t.Run(name, func(t *testing.T) {
			p := spread()
			p.Absent = tc.absent
			found, took, _ := measured(t, tc.authority.client(t), p)
			rules, questions, writes := tc.authority.counted()
			t.Logf("%s, %d reviews of rules, %d questions", took, rules, questions)
			if rules != tc.rules || questions != tc.questions || writes != 0 || len(found.Violations) != tc.violations {
				t.Errorf("%s: %d violations, %.300v", tc.reason, len(found.Violations), found.Violations)
			}
			if warned := strings.Join(found.Warnings, "\n"); !strings.Contains(warned, tc.warning) || (warned == "") != (tc.warning == "") {
				t.Errorf("%s: warned of %q, want %q", tc.reason, warned, tc.warning)
			}
			if took > atMost {
				t.Errorf("it took %s", took)
			}
		})
	}
}

var accessResource = schema.GroupVersion{Group: accessGroup, Version: "v1"}.WithResource

// granting is a plan that binds one role, with as many permissions as a bundle may grant,
// so many times in each of the namespaces.
func granting(often int, namespaces ...string) plan.Plan {
	var names []any
	for i := range 20_000 {
		names = append(names, fmt.Sprintf("name-%d", i))
	}
	role := creating(accessResource("clusterroles"), "ClusterRole", "", "r", map[string]any{"rules": []any{map[string]any{
		"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get"}, "resourceNames": names,
	}}})
	bindings, later := plan.Stage{Name: "bindings"}, plan.Stage{Name: "later"}
	for _, namespace := range namespaces {
		for j := range often {
			bindings.Actions = append(bindings.Actions, creating(accessResource("rolebindings"), "RoleBinding", namespace, fmt.Sprintf("b%d", j), map[string]any{
				"roleRef": map[string]any{"apiGroup": accessGroup, "kind": "ClusterRole", "name": "r"},
			}))
		}
		later.Actions = append(later.Actions, creating(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "ConfigMap", namespace, "c", nil))
	}
	return plan.Plan{Owner: inventory.Owner{Namespace: "team", Name: "app"}, Stages: []plan.Stage{{Name: "foundations", Actions: []plan.Action{role}}, bindings, later}}
}

// A role with many permissions and many bindings is neither tried nor listed
// for each of them.
func TestPreflightOfTenThousandBindings(t *testing.T) {
	writers := []authorizationv1.ResourceRule{
		rulesOn(accessGroup, "clusterroles", "create", "delete", "get", "patch"), rulesOn(accessGroup, "rolebindings", "create", "delete", "get", "patch"),
		rulesOn("", "configmaps", "create", "delete", "get", "patch"),
	}
	some := authorizationv1.ResourceRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}, ResourceNames: []string{"name-7"}}
	absent := placeNames()
	for name, tc := range map[string]struct {
		reason     string
		rules      []authorizationv1.ResourceRule
		incomplete bool
		absent     []string
		asked      int // for rules
		tried      int
		violations int
	}{
		"forbidden":      {"what its role grants is said once; the rules tell of those that are not tried", append(writers, some), false, nil, 500, 100, 1},
		"may escalate":   {"the bindings are left", append(writers, rulesOn(accessGroup, "clusterroles", "escalate")), false, nil, 501, 100, 51},
		"holds it":       {"nothing is tried", append(writers, rulesOn("", "pods", "get")), false, nil, 1, 0, 0},
		"administrator":  {"nothing is tried", append(writers, rulesOn("*", "*", "*")), false, nil, 1, 0, 0},
		"not sure":       {"those that are not tried are unknown", append(writers, some), true, nil, 500, 100, 1},
		"new namespaces": {"what the API server would say is known", append(writers, rulesOn(accessGroup, "clusterroles", "escalate")), false, absent, 1, 0, 51},
		"may not write":  {"what may not be written is not tried", []authorizationv1.ResourceRule{some}, false, nil, 500, 0, 52},
	} {
		t.Run(name, func(t *testing.T) {
			status := authorizationv1.SubjectRulesReviewStatus{ResourceRules: tc.rules, Incomplete: tc.incomplete}
			a := &authority{rules: status, allowed: func(authorizationv1.ResourceAttributes) bool { return false }}
			p, client := granting(10, placeNames()...), a.client(t)
			p.Absent = tc.absent
			found, took, bytes := measured(t, client, p)
			rules, questions, writes := a.counted()
			t.Logf("%s, %d MiB allocated, %d reviews of rules, %d questions, %d writes", took, bytes>>20, rules, questions, writes)
			if rules != tc.asked || writes != tc.tried || questions > 1000 || len(found.Violations) != tc.violations {
				t.Errorf("%s: %d violations, %.300v", tc.reason, len(found.Violations), found.Violations)
			}
			if said := fmt.Sprint(found.Violations); tc.violations > 0 != strings.Contains(said, "and more, which satchel rbac prints") {
				t.Errorf("%s: got %.600s", tc.reason, said)
			}
			if took > atMost || bytes > 2<<30 {
				t.Errorf("it took %s and %d MiB", took, bytes>>20)
			}
		})
	}
}

// The message about a namespace names the permissions of a role once, however often it is bound.
func TestPreflightOfManyBindingsInOneNamespace(t *testing.T) {
	a := &authority{rules: authorizationv1.SubjectRulesReviewStatus{ResourceRules: []authorizationv1.ResourceRule{
		rulesOn("", "configmaps", "*"), rulesOn(accessGroup, "rolebindings", "*"), rulesOn(accessGroup, "clusterroles", "create", "delete", "get", "patch", "escalate"),
	}}}
	found, took, bytes := measured(t, a.client(t), granting(5_000, "team"))
	t.Logf("%s, %d MiB allocated", took, bytes>>20)
	if said := fmt.Sprint(found.Violations); len(found.Violations) != 1 || !strings.Contains(said, "for RoleBinding team/b0, RoleBinding team/b1 and others") {
		t.Errorf("got %.600s", said)
	}
	if took > atMost || bytes > 1<<30 {
		t.Errorf("it took %s and %d MiB", took, bytes>>20)
	}
}

// Only the API server knows the roles outside of the bundle: a limited number is
// tried, and the others do not count as missing; in a new namespace none does.
func TestPreflightOfManyRolesOutside(t *testing.T) {
	for absent, lacking := range map[string]int{"": 100, "team": 0} {
		stage := plan.Stage{Name: "bindings"}
		for i := range 300 {
			name := fmt.Sprintf("n%03d", i)
			stage.Actions = append(stage.Actions, creating(accessResource("rolebindings"), "RoleBinding", "team", name, map[string]any{
				"roleRef": map[string]any{"apiGroup": accessGroup, "kind": "ClusterRole", "name": name},
			}))
		}
		p := plan.Plan{Owner: inventory.Owner{Namespace: "team", Name: "app"}, Stages: []plan.Stage{stage}, Absent: []string{absent}}
		a := &authority{rules: authorizationv1.SubjectRulesReviewStatus{
			ResourceRules: []authorizationv1.ResourceRule{rulesOn(accessGroup, "rolebindings", "create", "delete", "get", "patch")},
		}}
		found, _, _ := measured(t, a.client(t), p)
		_, _, writes := a.counted()
		said := fmt.Sprint(found.Violations)
		if writes != lacking || strings.Contains(said, "n004 and 95 more") != (lacking > 0) || len(found.Violations) > 0 != (lacking > 0) {
			t.Errorf("absent %q: %d writes, and got %s", absent, writes, said)
		}
	}
}

// measured is a preflight with its CPU time and allocated bytes.
func measured(t *testing.T, client *tenant.Client, p plan.Plan) (preflight.Result, time.Duration, uint64) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := computed(t)
	found, err := preflight.Check(t.Context(), client, p)
	took := computed(t) - start
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	return found, took, after.TotalAlloc - before.TotalAlloc
}

// computed is the CPU time of this process, without its children.
func computed(t *testing.T) time.Duration {
	t.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// The permissions that an account gains by binding itself are computed for a few roles; with more
// bindings the decision is left to the API server.
func TestPreflightOfManyBindingsToItself(t *testing.T) {
	subjects := []any{map[string]any{"kind": "ServiceAccount", "name": "installer", "namespace": "team"}}
	for roles, refused := range map[int]bool{10: true, 11: false, 8_000: false} {
		var stages [3]plan.Stage
		for i := range 8_000 {
			name := fmt.Sprintf("n%d", i)
			stages[2].Actions = append(stages[2].Actions, creating(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "ConfigMap", "team", name, nil))
			if i >= roles {
				continue
			}
			stages[0].Actions = append(stages[0].Actions, creating(accessResource("roles"), "Role", "team", name, map[string]any{"rules": []any{map[string]any{
				"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get"}, "resourceNames": []any{name},
			}}}))
			stages[1].Actions = append(stages[1].Actions, creating(accessResource("rolebindings"), "RoleBinding", "team", name, map[string]any{
				"roleRef": map[string]any{"apiGroup": accessGroup, "kind": "Role", "name": name}, "subjects": subjects,
			}))
		}
		a := &authority{rules: authorizationv1.SubjectRulesReviewStatus{ResourceRules: []authorizationv1.ResourceRule{rulesOn(accessGroup, "*", "*")}}}
		p := plan.Plan{Owner: inventory.Owner{Namespace: "team", Name: "app"}, Stages: stages[:]}
		found, took, _ := measured(t, a.client(t), p)
		t.Logf("%d roles: %s", roles, took)
		if len(a.asked) != 1 || len(found.Violations) > 0 != refused || took > atMost {
			t.Errorf("%d roles: %d requests, %s, %.300v", roles, len(a.asked), took, found.Violations)
		}
	}
}

// When the caller stops waiting, no more requests are sent; and never many at once.
func TestPreflightEndsWithItsContext(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		status authorizationv1.SubjectRulesReviewStatus
		after  string // what is asked for the twentieth time
		atOnce int64
	}{
		"rules":     {"in the midst of the namespaces", authorizationv1.SubjectRulesReviewStatus{}, "rules", 4},
		"questions": {"in the midst of single rights", authorizationv1.SubjectRulesReviewStatus{Incomplete: true}, "access", 16},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var asked, now, most atomic.Int64
			a := &authority{rules: tc.status, allowed: func(authorizationv1.ResourceAttributes) bool { return false }}
			a.begin = func(r *http.Request) func() {
				if !strings.HasSuffix(r.URL.Path, tc.after+"reviews") {
					return func() {}
				}
				for at := now.Add(1); ; {
					if seen := most.Load(); at <= seen || most.CompareAndSwap(seen, at) {
						break
					}
				}
				if asked.Add(1) == 20 {
					cancel()
				}
				select { // an API server that takes its time, so that requests meet
				case <-time.After(10 * time.Millisecond):
				case <-r.Context().Done():
				}
				return func() { now.Add(-1) }
			}
			_, err := preflight.Check(ctx, a.client(t), spread())
			if !errors.Is(err, context.Canceled) || asked.Load() > 40 || most.Load() > tc.atOnce {
				t.Errorf("%s: %d requests, %d at once, and %v", tc.reason, asked.Load(), most.Load(), err)
			}
		})
	}
}
