// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/crdsafety"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
)

var gadgets = inventory.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "gadgets.example.org"}

// upgrading is a plan's input in which the CRD changes.
func upgrading(enforcement plan.Enforcement, annotations map[string]any, exempt ...string) plan.Input {
	object := desired(gadgets, "")
	object.Desired = &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"annotations": annotations}}}
	entry := confirmed(gadgets)
	entry.Rendered = changed
	return plan.Input{
		Owner: owner, Desired: []plan.Object{object}, Previous: inventory.New("target", entry),
		Observed: plan.Observed{Live: map[inventory.ID]ownership.Live{gadgets: ours()}}, Rules: plan.Rules{UpgradeSafety: enforcement, Exempt: exempt},
	}
}

// Which CRDs are read: a GET each.
func TestToJudge(t *testing.T) {
	off := map[string]any{plan.AnnotationUpgradeSafety: "None"}
	unchanged := upgrading(plan.Enforce, nil)
	unchanged.Previous = inventory.New("target", confirmed(gadgets))
	created := upgrading(plan.Enforce, nil)
	created.Live = nil
	foreign := upgrading(plan.Enforce, nil)
	foreign.Previous, foreign.Live = inventory.Inventory{}, map[inventory.ID]ownership.Live{gadgets: {}}
	orphaned := upgrading(plan.Enforce, nil)
	orphaned.Previous, orphaned.Live = inventory.Inventory{}, map[inventory.ID]ownership.Live{gadgets: {Orphaned: true}}
	tests := map[string]struct {
		reason string
		in     plan.Input
		want   int
	}{
		"enforced":              {"it changes", upgrading(plan.Enforce, nil), 1},
		"warned of":             {"it changes", upgrading(plan.Warn, nil), 1},
		"off":                   {"the check is switched off", upgrading(plan.EnforcementNone, nil), 0},
		"unset":                 {"a removal does not ask", upgrading("", nil), 0},
		"unchanged":             {"nothing happens to it", unchanged, 0},
		"created":               {"nothing uses it", created, 0},
		"of another owner":      {"it is refused anyway", foreign, 0},
		"left behind":           {"its resources are still there", orphaned, 1},
		"exempt by the bundle":  {"its author answers for it", upgrading(plan.Enforce, off), 0},
		"exempt by the spec":    {"the user answers for it", upgrading(plan.Enforce, nil, gadgets.Name), 0},
		"another one is exempt": {"names are compared whole", upgrading(plan.Enforce, nil, "gadgets"), 1},
		"annotated differently": {"only None is off", upgrading(plan.Enforce, map[string]any{plan.AnnotationUpgradeSafety: "off"}), 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tt.in.ToJudge(); len(got) != tt.want {
				t.Errorf("%s: got %d, want %d", tt.reason, len(got), tt.want)
			}
		})
	}
}

// The report about a change, under each enforcement.
func TestUpgradeSafety(t *testing.T) {
	judged := func(enforcement plan.Enforcement, judgement crdsafety.Judgement) plan.Plan {
		in := upgrading(enforcement, nil)
		in.Judgements = map[inventory.ID]crdsafety.Judgement{gadgets: judgement}
		return plan.Make(in)
	}
	breaking := crdsafety.Judgement{Breaking: []crdsafety.Change{{Version: "v1", Path: ".spec.size", What: "field removed"}}}
	refused := judged(plan.Enforce, breaking)
	if len(refused.Violations) != 1 || refused.Violations[0].Rule != violation.CRDUnsafe || len(refused.Warnings) != 0 {
		t.Fatalf("violations %v, warnings %v", refused.Violations, refused.Warnings)
	}
	text := refused.Violations[0].String()
	for _, word := range []string{"gadgets.example.org", "v1 .spec.size: field removed", "spec.apply.crds.upgradeSafetyExemptions", plan.AnnotationUpgradeSafety + ": None", "spec.apply.crds.upgradeSafety to Warn"} {
		if !strings.Contains(text, word) {
			t.Errorf("%q does not say %q", text, word)
		}
	}
	if warned := judged(plan.Warn, breaking); len(warned.Violations) != 0 || len(warned.Warnings) != 1 || !strings.Contains(warned.Warnings[0], "v1 .spec.size: field removed") {
		t.Errorf("under Warn: violations %v, warnings %v", warned.Violations, warned.Warnings)
	}
	if off := judged(plan.EnforcementNone, breaking); len(off.Violations)+len(off.Warnings) != 0 {
		t.Errorf("switched off: violations %v, warnings %v", off.Violations, off.Warnings)
	}
	notable := crdsafety.Judgement{Notable: []crdsafety.Change{{Version: "v1", Path: ".spec.mode", What: "default value changed"}}}
	if told := judged(plan.Enforce, notable); len(told.Violations) != 0 || len(told.Warnings) != 1 {
		t.Errorf("a default: violations %v, warnings %v", told.Violations, told.Warnings)
	}
}

// olm-crdsafe: without a single custom resource only what the API server refuses is refused, and the advice is one
// that the API server can accept.
func TestUpgradeSafetyRemedies(t *testing.T) {
	narrowed := crdsafety.Change{Version: "v1", Path: ".spec.size", What: "field removed"}
	scope := crdsafety.Change{What: "scope changed", Refused: crdsafety.Identity}
	version := crdsafety.Change{What: "stored versions removed: [v1]", Refused: crdsafety.StoredVersion}
	const warn = "upgradeSafety to Warn"
	for name, tt := range map[string]struct {
		judgement crdsafety.Judgement
		unused    bool
		unlisted  string
		refused   []string // what the violation says; none: it passes
		not       string   // what it does not say
		warned    string
	}{
		"narrowed":                     {crdsafety.Judgement{Breaking: []crdsafety.Change{narrowed}}, false, "", []string{warn, "upgradeSafetyExemptions"}, "not known", ""},
		"narrowed, not listed":         {crdsafety.Judgement{Breaking: []crdsafety.Change{narrowed}}, false, "no permission to list gadgets", []string{warn, "no permission to list gadgets"}, "", ""},
		"narrowed, without resources":  {crdsafety.Judgement{Breaking: []crdsafety.Change{narrowed}}, true, "", nil, "", "there is none on the cluster: v1 .spec.size: field removed"},
		"too large, without resources": {crdsafety.Judgement{Unjudged: "has 51 versions"}, true, "", nil, "", "has no resources: has 51 versions"},
		"scope":                        {crdsafety.Judgement{Breaking: []crdsafety.Change{scope}}, false, "", []string{"a CRD of another name", "spec.suspend", "kubectl delete crd gadgets.example.org", "save them first"}, warn, ""},
		"scope, without resources":     {crdsafety.Judgement{Breaking: []crdsafety.Change{scope, narrowed}}, true, "", []string{"scope changed: ", "there is no resource"}, warn, "there is none on the cluster: v1 .spec.size"},
		"stored version":               {crdsafety.Judgement{Breaking: []crdsafety.Change{version}}, false, "", []string{"served: false", "kubectl edit crd gadgets.example.org --subresource=status"}, warn, ""},
		"all of them":                  {crdsafety.Judgement{Breaking: []crdsafety.Change{narrowed, scope, version}}, false, "", []string{"kubectl delete crd", "kubectl edit crd", ".spec.size"}, warn, ""},
		"status":                       {crdsafety.Judgement{Status: []crdsafety.Change{{Path: ".status.old", What: "field removed"}}}, false, "", nil, "", "below .status, which only controllers write"},
	} {
		t.Run(name, func(t *testing.T) {
			in := upgrading(plan.Enforce, nil)
			in.Judgements = map[inventory.ID]crdsafety.Judgement{gadgets: tt.judgement}
			in.Unused = map[inventory.ID]bool{gadgets: tt.unused}
			in.Unlisted = map[inventory.ID]string{gadgets: tt.unlisted}
			made := plan.Make(in)
			if (len(tt.refused) > 0) != (len(made.Violations) == 1) || (tt.warned != "") != (len(made.Warnings) == 1) {
				t.Fatalf("violations %v, warnings %q", made.Violations, made.Warnings)
			}
			for _, word := range tt.refused {
				if text := made.Violations[0].String(); !strings.Contains(text, word) || tt.not != "" && strings.Contains(text, tt.not) {
					t.Errorf("%q: want %q and not %q", text, word, tt.not)
				}
			}
			if tt.warned != "" && !strings.Contains(made.Warnings[0], tt.warned) {
				t.Errorf("warned of %q, want %q", made.Warnings[0], tt.warned)
			}
		})
	}
}

// A CRD that cannot be judged does not count as safe, and the message has a remedy.
func TestUpgradeSafetyOfWhatIsTooLarge(t *testing.T) {
	why := "the desired CRD has 51 versions, and at most 50 can be judged"
	for enforcement, want := range map[plan.Enforcement][2]int{plan.Enforce: {1, 0}, plan.Warn: {0, 1}, plan.EnforcementNone: {0, 0}} {
		in := upgrading(enforcement, nil)
		in.Judgements = map[inventory.ID]crdsafety.Judgement{gadgets: {Unjudged: why}}
		made := plan.Make(in)
		if got := [2]int{len(made.Violations), len(made.Warnings)}; got != want {
			t.Errorf("%s: violations %v, warnings %v", enforcement, made.Violations, made.Warnings)
		}
		for _, violation := range made.Violations {
			for _, word := range []string{"gadgets.example.org", why, "make it smaller", "upgradeSafetyExemptions", plan.AnnotationUpgradeSafety + ": None", "upgradeSafety to Warn"} {
				if !strings.Contains(violation.String(), word) {
					t.Errorf("%q does not say %q", violation, word)
				}
			}
		}
		for _, warning := range made.Warnings {
			if !strings.Contains(warning, why) || !strings.Contains(warning, gadgets.Name) {
				t.Errorf("warned of %q", warning)
			}
		}
	}
}

// A bundle that exempts its own CRD causes a warning: the user who installs it did not exempt it.
func TestUpgradeSafetyTellsOfBundlesExemptions(t *testing.T) {
	off := map[string]any{plan.AnnotationUpgradeSafety: "None"}
	unchanged := upgrading(plan.Enforce, off)
	unchanged.Previous = inventory.New("target", confirmed(gadgets))
	created := upgrading(plan.Enforce, off)
	created.Live = nil
	tests := map[string]struct {
		reason string
		in     plan.Input
		want   bool
	}{
		"by the bundle":              {"the user does not know", upgrading(plan.Enforce, off), true},
		"by the bundle, warned of":   {"it is not compared either", upgrading(plan.Warn, off), true},
		"by the bundle and the spec": {"the user knows", upgrading(plan.Enforce, off, gadgets.Name), false},
		"by the spec":                {"the user knows", upgrading(plan.Enforce, nil, gadgets.Name), false},
		"with everything off":        {"nothing is compared anyway", upgrading(plan.EnforcementNone, off), false},
		"unchanged":                  {"there is nothing to compare", unchanged, false},
		"created":                    {"there is nothing to compare with", created, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			made := plan.Make(tt.in)
			told := len(made.Warnings) == 1 && strings.Contains(made.Warnings[0], gadgets.Name) && strings.Contains(made.Warnings[0], plan.AnnotationUpgradeSafety+": None")
			if told != tt.want || len(made.Violations) > 0 || !tt.want && len(made.Warnings) > 0 {
				t.Errorf("%s: violations %v, warnings %q", tt.reason, made.Violations, made.Warnings)
			}
		})
	}
}

// The message is bounded: ten changes of a CRD are named.
func TestUpgradeSafetyIsBounded(t *testing.T) {
	var many crdsafety.Judgement
	for i := range 1000 {
		many.Breaking = append(many.Breaking, crdsafety.Change{Version: "v1", Path: fmt.Sprintf(".spec.f%d", i), What: "field removed"})
	}
	in := upgrading(plan.Enforce, nil)
	in.Judgements = map[inventory.ID]crdsafety.Judgement{gadgets: many}
	message := plan.Make(in).Violations[0].Message
	if got := strings.Count(message, "field removed"); got != 10 || !strings.HasSuffix(message, "and 990 more") {
		t.Errorf("%d changes named in %q", got, message)
	}
}
