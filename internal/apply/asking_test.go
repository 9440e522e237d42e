// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
	"github.com/satchel-dev/satchel/internal/apply/preflight"
	"github.com/satchel-dev/satchel/internal/apply/rights"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/tests/answers"
	"github.com/satchel-dev/satchel/tests/workspace"
)

// authority is an API server of which only the authorization answers.
type authority struct {
	rules   authorizationv1.SubjectRulesReviewStatus
	at      map[string]authorizationv1.SubjectRulesReviewStatus // instead of rules, by namespace; "-" is the cluster
	status  int                                                 // of an answer to a review of rules, when it is not 201
	allowed func(authorizationv1.ResourceAttributes) bool
	refusal metav1.Status                    // of writes; forbidden when it is empty
	begin   func(*http.Request) (end func()) // when it is not nil

	lock  sync.Mutex
	asked []string
}

func (a *authority) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if a.begin != nil {
		defer a.begin(r)()
	}
	w.Header().Set("Content-Type", "application/json")
	what := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	var answer any
	switch what {
	case "selfsubjectrulesreviews":
		if a.status != 0 {
			w.WriteHeader(a.status)
			answer = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": a.status, "reason": "Forbidden"}
			break
		}
		var review authorizationv1.SelfSubjectRulesReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		review.Status = a.rules
		if rules, found := a.at[review.Spec.Namespace]; found {
			review.Status = rules
		}
		answer = review
	case "selfsubjectaccessreviews":
		var review authorizationv1.SelfSubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		of := *review.Spec.ResourceAttributes
		what = strings.Join([]string{of.Verb, of.Resource, of.Name}, " ")
		review.Status.Allowed = a.allowed(of)
		answer = review
	default:
		status := a.refusal
		if status.Code == 0 {
			status.Code, status.Reason = http.StatusForbidden, metav1.StatusReasonForbidden
		}
		status.Kind, status.APIVersion, status.Status = "Status", "v1", metav1.StatusFailure
		w.WriteHeader(int(status.Code))
		answer = status
	}
	a.lock.Lock()
	defer a.lock.Unlock()
	a.asked = append(a.asked, what)
	_ = json.NewEncoder(w).Encode(answer)
}

// preflightAt asks an authority about a plan that creates everything.
func preflightAt(t *testing.T, a *authority, manifests string) []violation.Violation {
	t.Helper()
	violations, err := a.preflight(t, planOf(t, manifests))
	if err != nil {
		t.Fatal(err)
	}
	return violations
}

func (a *authority) preflight(t *testing.T, p plan.Plan) ([]violation.Violation, error) {
	t.Helper()
	found, err := preflight.Check(t.Context(), a.client(t), p)
	return found.Violations, err
}

func (a *authority) client(t *testing.T) *tenant.Client {
	t.Helper()
	return answers.Client(t, a)
}

// planOf is a plan that creates workspace.Everything, in one namespace.
func planOf(t *testing.T, manifests string) plan.Plan {
	t.Helper()
	p := plan.Plan{Owner: inventory.Owner{Namespace: "team", Name: "app"}}
	stage := plan.Stage{Name: "all"}
	for document := range strings.SplitSeq(manifests, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		object.SetNamespace("team")
		gvk := object.GroupVersionKind()
		stage.Actions = append(stage.Actions, plan.Action{Verb: plan.Create, Object: plan.Object{
			ID: inventory.IDOf(object), Desired: object,
			Kind: plan.Kind{Resource: gvk.GroupVersion().WithResource(rights.Plural(gvk.Kind)), Namespaced: true},
		}})
	}
	p.Stages = []plan.Stage{stage}
	return p
}

// With other authorizers beside RBAC the rules are incomplete: single access reviews decide, and
// permissions for all objects are not checked object by object.
func TestPreflightOfIncompleteRules(t *testing.T) {
	maps := []authorizationv1.ResourceRule{{Verbs: []string{"*"}, APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"one"}}}
	many := strings.Split(strings.Repeat("x", 100), "")
	for name, tc := range map[string]struct {
		reason    string
		authority *authority
		lacks     string
		asked     []string // questions about single rights, sorted
	}{
		"all in general": {"one question a verb", &authority{
			rules: authorizationv1.SubjectRulesReviewStatus{Incomplete: true}, allowed: func(authorizationv1.ResourceAttributes) bool { return true },
		}, "", []string{"create configmaps ", "delete configmaps ", "get configmaps ", "patch configmaps "}},
		"one by name": {"a rule shows one of them, questions tell of the other", &authority{
			rules:   authorizationv1.SubjectRulesReviewStatus{Incomplete: true, ResourceRules: maps},
			allowed: func(of authorizationv1.ResourceAttributes) bool { return of.Verb != "delete" && of.Name == "two" },
		}, "delete configmaps (two)", []string{"create configmaps two", "delete configmaps two", "get configmaps two", "patch configmaps two"}},
		"rules refused": {"then everything is asked for", &authority{
			status: http.StatusForbidden, allowed: func(of authorizationv1.ResourceAttributes) bool { return of.Verb != "patch" },
		}, "patch configmaps (one, two)", []string{
			"create configmaps ", "delete configmaps ", "get configmaps ", "patch configmaps ", "patch configmaps one", "patch configmaps two",
		}},
		"an error in the rules": {"a binding to a role that is gone leaves a doubt", &authority{
			rules:   authorizationv1.SubjectRulesReviewStatus{EvaluationError: "x"},
			allowed: func(authorizationv1.ResourceAttributes) bool { return true },
		}, "", []string{"create configmaps ", "delete configmaps ", "get configmaps ", "patch configmaps "}},
		"too many rules": {"those that are not kept leave a doubt", &authority{
			rules:   authorizationv1.SubjectRulesReviewStatus{ResourceRules: []authorizationv1.ResourceRule{{Verbs: many, APIGroups: many, Resources: many}}},
			allowed: func(authorizationv1.ResourceAttributes) bool { return true },
		}, "", []string{"create configmaps ", "delete configmaps ", "get configmaps ", "patch configmaps "}},
		"complete": {"nothing more is asked", &authority{
			rules: authorizationv1.SubjectRulesReviewStatus{ResourceRules: maps},
		}, "create, delete, get, patch configmaps (two)", nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := tc.authority
			found := preflightAt(t, a, workspace.TwoMaps)
			if tc.lacks == "" && len(found) > 0 || tc.lacks != "" && (len(found) != 1 || !strings.Contains(found[0].Message, ": "+tc.lacks)) {
				t.Errorf("%s: got %v", tc.reason, found)
			}
			asked := slices.DeleteFunc(a.asked, func(what string) bool { return what == "selfsubjectrulesreviews" })
			slices.Sort(asked)
			if !slices.Equal(asked, tc.asked) {
				t.Errorf("%s: asked for %q, want %q", tc.reason, asked, tc.asked)
			}
		})
	}
}

// For the permissions that a role grants only the rules of RBAC count, whatever other authorizers
// allow; the permission to escalate may come from them.
func TestPreflightOfIncompleteRulesAndRoles(t *testing.T) {
	role := "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r}\nrules: [{apiGroups: [''], resources: [pods], verbs: [get]}]"
	for verb, lacks := range map[string]bool{"get": true, "escalate": false} {
		a := &authority{
			rules: authorizationv1.SubjectRulesReviewStatus{Incomplete: true},
			allowed: func(of authorizationv1.ResourceAttributes) bool {
				return of.Verb == verb || of.Resource == "roles" && of.Verb != "escalate"
			},
		}
		if found := preflightAt(t, a, role); len(found) > 0 != lacks {
			t.Errorf("may %s: got %v", verb, found)
		}
	}
}

// Only the reason Forbidden of the API server means that a permission is missing.
func TestPreflightOfWritesThatFail(t *testing.T) {
	const (
		role    = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r}\nrules: [{apiGroups: [''], resources: [pods], verbs: [get]}]"
		outside = "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: b}\nroleRef: {kind: ClusterRole, name: view}"
	)
	writing := authorizationv1.SubjectRulesReviewStatus{ResourceRules: []authorizationv1.ResourceRule{{
		Verbs: []string{"create", "delete", "get", "patch"}, APIGroups: []string{accessGroup}, Resources: []string{"*"},
	}}}
	type outcome struct {
		lacks string // of what is refused
		err   bool
	}
	for name, tc := range map[string]struct {
		reason         string
		refusal        metav1.Status
		known, unknown outcome
	}{
		"forbidden": {"what the rules say is true", metav1.Status{Code: 403, Reason: metav1.StatusReasonForbidden}, outcome{lacks: "get pods"}, outcome{lacks: "bind "}},
		"not found": {"the namespace is new: the rules alone tell", metav1.Status{Code: 404, Reason: metav1.StatusReasonNotFound}, outcome{lacks: "get pods"}, outcome{}},
		"time-out":  {"nothing is known", metav1.Status{Code: 504, Reason: metav1.StatusReasonTimeout}, outcome{err: true}, outcome{err: true}},
		"broken":    {"nothing is known", metav1.Status{Code: 500, Reason: metav1.StatusReasonInternalError}, outcome{err: true}, outcome{err: true}},
		"webhook": {"the dry run says of it what there is to say", metav1.Status{Code: 500, Reason: metav1.StatusReasonInternalError,
			Message: "failed calling webhook \"x\""}, outcome{}, outcome{}},
		"no dry run": {"the dry run says of it what there is to say", metav1.Status{Code: 400, Reason: metav1.StatusReasonBadRequest,
			Message: "admission webhook \"x\" does not support dry run"}, outcome{}, outcome{}},
		"invalid": {"the dry run refuses it", metav1.Status{Code: 422, Reason: metav1.StatusReasonInvalid}, outcome{}, outcome{}},
	} {
		t.Run(name, func(t *testing.T) {
			for manifest, want := range map[string]outcome{role: tc.known, outside: tc.unknown} {
				found, err := (&authority{rules: writing, refusal: tc.refusal}).preflight(t, planOf(t, manifest))
				if (err != nil) != want.err || (len(found) > 0) != (want.lacks != "") || want.lacks != "" && !strings.Contains(found[0].Message, ": "+want.lacks) {
					t.Errorf("%s: for %.90q got %v, %v", tc.reason, manifest, found, err)
				}
			}
		})
	}
}
