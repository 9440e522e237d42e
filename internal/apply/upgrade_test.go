// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"errors"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/apply/observe"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/crdsafety"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
	"github.com/satchel-dev/satchel/tests/workspace"
)

// safePlan plans with the CRDs of the bundle judged, and counts the requests.
func (w *world) safePlan(objects []*unstructured.Unstructured, enforcement plan.Enforcement, exempt ...string) (plan.Plan, int64) {
	w.T.Helper()
	before := w.Client.Requests()
	in, err := observe.Cluster(w.T.Context(), w.Client, observe.Request{
		Owner: w.Owner, Desired: objects, Previous: w.Inventory, InstallNamespace: w.Namespace,
		Rules: plan.Rules{UpgradeSafety: enforcement, Exempt: exempt}, Judge: crdsafety.Judge,
	})
	if err != nil {
		w.T.Fatal(err)
	}
	return plan.Make(in), w.Client.Requests() - before
}

// The CRD of an upgrade is judged against the live one, with
// its stored versions, for one request; an upgrade that does not change it sends none.
func TestUpgradeSafetyOnTheCluster(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.GrantCluster("installer", definers)
	bundle := w.widgets()
	w.MustApply(bundle)
	workspace.Eventually(t, "discovery", func() error { // else the kind is looked for in its CRD, which is one more request
		_, err := w.Client.Kinds().Preferred(t.Context(), schema.GroupKind{Group: w.widget().Group, Kind: "Widget"})
		return err
	})
	unchanged, off := w.safePlan(w.Objects(bundle), plan.Enforce)
	if len(unchanged.Violations)+len(unchanged.Warnings) != 0 {
		t.Errorf("unchanged: %v %v", unchanged.Violations, unchanged.Warnings)
	}
	if _, requests := w.safePlan(w.Objects(bundle), plan.EnforcementNone); requests != off {
		t.Errorf("%d requests for judging what does not change", off-requests)
	}
	changes := map[string]struct {
		from, to string
		want     string // of the violation; empty: none
	}{
		"field dropped":        {"size: {type: integer}", "bulk: {type: integer}", "v1 .spec.size: field removed"},
		"type narrowed":        {"size: {type: integer}", "size: {type: integer, maximum: 3}", "v1 .spec.size: maximum constraint added when there was none previously: 3"},
		"stored version gone":  {"- name: v1\n", "- name: v2\n", "stored versions removed: [v1]"},
		"scope changed":        {"scope: Namespaced", "scope: Cluster", "scope changed"},
		"optional field added": {"size: {type: integer}", "size: {type: integer}, bulk: {type: integer}", ""},
	}
	for name, c := range changes {
		t.Run(name, func(t *testing.T) {
			objects := w.Objects(strings.Replace(bundle, c.from, c.to, 1))[1:] // a Widget of the old kind would be missing its version
			warned, _ := w.safePlan(objects, plan.Warn)
			refused, requests := w.safePlan(objects, plan.Enforce)
			exempt, without := w.safePlan(objects, plan.Enforce, "widgets."+w.Namespace+".example.org")
			if c.want == "" {
				if len(refused.Violations) != 0 {
					t.Errorf("refused: %v", refused.Violations)
				}
				return
			}
			if len(refused.Violations) != 1 || refused.Violations[0].Rule != violation.CRDUnsafe || !strings.Contains(refused.Violations[0].Message, c.want) {
				t.Errorf("violations %v, want %q", refused.Violations, c.want)
			}
			if len(warned.Violations) != 0 || len(warned.Warnings) != 1 || !strings.Contains(warned.Warnings[0], c.want) {
				t.Errorf("under Warn: violations %v, warnings %v", warned.Violations, warned.Warnings)
			}
			if len(exempt.Violations)+len(exempt.Warnings) != 0 || requests != without+2 {
				t.Errorf("exempt: %v %v; judging took %d requests", exempt.Violations, exempt.Warnings, requests-without)
			}
		})
	}
}

func (w *world) narrowed(bundle string) string {
	return strings.Replace(bundle, "size: {type: integer}", "size: {type: string}", 1)
}

// olm-crdsafe: with no custom resource nothing breaks, for one LIST of at most one as the tenant; without the permission for
// it the check refuses, and says so.
func TestUpgradeSafetyWithoutResources(t *testing.T) {
	t.Run("not permitted", func(t *testing.T) {
		w := newWorld(t, workspace.Everything...)
		w.GrantCluster("installer", definers)
		bundle := w.widgets()
		w.MustApply(bundle)
		refused, _ := w.safePlan(w.Objects(w.narrowed(bundle))[1:], plan.Enforce)
		if len(refused.Violations) != 1 || !strings.Contains(refused.Violations[0].String(), "no permission to list widgets") {
			t.Fatalf("violations %v", refused.Violations)
		}
	})
	w := newWorld(t, workspace.Everything...)
	group := w.Namespace + ".example.org"
	w.GrantCluster("installer", definers, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{"widgets"}, Verbs: []string{"list"}})
	bundle := w.widgets()
	w.MustApply(bundle)
	objects := w.Objects(w.narrowed(bundle))[1:]
	if refused, _ := w.safePlan(objects, plan.Enforce); len(refused.Violations) != 1 || strings.Contains(refused.Violations[0].String(), "no permission") {
		t.Fatalf("with a resource: violations %v", refused.Violations)
	}
	if err := w.Dynamic.Resource(w.widget()).Namespace(w.Namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	workspace.Eventually(t, "the resource goes", func() error {
		left, err := w.Dynamic.Resource(w.widget()).List(t.Context(), metav1.ListOptions{})
		if err == nil && len(left.Items) > 0 {
			err = errors.New("it is still there")
		}
		return err
	})
	passes, _ := w.safePlan(objects, plan.Enforce)
	if len(passes.Violations) != 0 || len(passes.Warnings) != 1 || !strings.Contains(passes.Warnings[0], "there is none on the cluster") {
		t.Errorf("without a resource: violations %v, warnings %v", passes.Violations, passes.Warnings)
	}
}

// An annotation exempts a CRD in the bundle, and has no effect on the live CRD.
func TestUpgradeSafetyExemptionIsTheBundles(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.GrantCluster("installer", definers)
	bundle := w.widgets()
	w.MustApply(bundle)
	annotate := []byte(`{"metadata":{"annotations":{"` + plan.AnnotationUpgradeSafety + `":"None"}}}`)
	if _, err := w.Dynamic.Resource(definitions).Patch(t.Context(), "widgets."+w.Namespace+".example.org", types.MergePatchType, annotate, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	narrowed := strings.Replace(bundle, "size: {type: integer}", "size: {type: string}", 1)
	if p, _ := w.safePlan(w.Objects(narrowed), plan.Enforce); len(p.Violations) != 1 {
		t.Errorf("annotated on the cluster: violations %v", p.Violations)
	}
	annotated := strings.Replace(narrowed, "{name: widgets.", "{annotations: {"+plan.AnnotationUpgradeSafety+`: "None"}, name: widgets.`, 1)
	if p, _ := w.safePlan(w.Objects(annotated), plan.Enforce); len(p.Violations) != 0 || len(p.Warnings) != 1 {
		t.Errorf("annotated in the bundle: violations %v, warnings %v", p.Violations, p.Warnings)
	}
}
