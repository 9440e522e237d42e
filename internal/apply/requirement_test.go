// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/observe"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/requirement"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
	"github.com/satchel-dev/satchel/tests/workspace"
)

// needy plans one ConfigMap with requirements on the cluster.
func (w *world) needy(policy plan.Enforcement, packages []requirement.Package, requirements ...requirement.Requirement) (plan.Plan, int64) {
	w.T.Helper()
	before := w.Client.Requests()
	in, err := observe.Cluster(w.T.Context(), w.Client, observe.Request{
		Owner: w.Owner, Desired: w.Objects(oneMap), Previous: w.Inventory, InstallNamespace: w.Namespace,
		Rules: plan.Rules{RequirementsPolicy: policy, Requirements: requirements}, Packages: packages,
	})
	if err != nil {
		w.T.Fatal(err)
	}
	return plan.Make(in), w.Client.Requests() - before
}

// A missing CRD is named; when it is installed, the requirement is
// met. The version of the cluster is read; all for one request more than without, and one that is shared.
func TestRequirementsOnTheCluster(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.GrantCluster("installer", definers)
	bundle := w.widgets()
	kind := schema.GroupVersionKind{Group: w.widget().Group, Version: "v1", Kind: "Widget"}
	name := "widgets." + kind.Group
	requirements := []requirement.Requirement{
		{Kind: requirement.RequireCRD, Name: name, GVK: kind},
		{Kind: requirement.RequireCRD, Name: name, GVK: kind.GroupKind().WithVersion("")},
		{Kind: requirement.RequireAPI, GVK: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}},
		{Kind: requirement.RequireAPI, GVK: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}},
		{Kind: requirement.RequireKubeVersion, Versions: "1.30.0"},
		{Kind: requirement.RequirePackage, Name: "etcd", Versions: ">=1.0.0"},
	}
	packages := []requirement.Package{{Name: "etcd", Version: "1.2.3"}}
	refused, asked := w.needy(plan.Enforce, packages, requirements...)
	if len(refused.Violations) != 2 || refused.Violations[0].Rule != violation.RequirementMissing || !strings.Contains(refused.Violations[0].Message, name) {
		t.Errorf("violations %v", refused.Violations)
	}
	if _, without := w.needy(plan.EnforcementNone, packages, requirements...); asked > without+2 { // the version, and the namespace, which the second one need not read
		t.Errorf("%d requests more", asked-without)
	}
	w.ApplyObjects(w.Objects(bundle)[1:2], apply.Options{})
	workspace.Eventually(t, "the requirement to be met", func() error {
		p, _ := w.needy(plan.Enforce, packages, requirements...)
		if len(p.Violations) > 0 {
			return fmt.Errorf("%v", p.Violations)
		}
		return nil
	})
	tooNew, _ := w.needy(plan.Enforce, nil, requirement.Requirement{Kind: requirement.RequireKubeVersion, Versions: "99.0.0"})
	if len(tooNew.Violations) != 1 || !strings.Contains(tooNew.Violations[0].Message, "the cluster has v1.") {
		t.Errorf("violations %v", tooNew.Violations)
	}
}

// Requirements that the bundle itself meets are not required of the cluster.
func TestRequirementsTheBundleMeets(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.GrantCluster("installer", definers)
	kind := schema.GroupVersionKind{Group: w.widget().Group, Version: "v1", Kind: "Widget"}
	in, err := observe.Cluster(t.Context(), w.Client, observe.Request{
		Owner: w.Owner, Desired: w.Objects(w.widgets()), InstallNamespace: w.Namespace, Rules: plan.Rules{
			RequirementsPolicy: plan.Enforce,
			Requirements:       []requirement.Requirement{{Kind: requirement.RequireGVK, GVK: kind}, {Kind: requirement.RequireGVK, GVK: kind.GroupKind().WithVersion("")}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if p := plan.Make(in); len(p.Violations) != 0 {
		t.Errorf("violations %v", p.Violations)
	}
}

// On a hardened cluster not every account may read the version: then the permission is
// missing.
func TestRequirementOfAVersionThatIsHidden(t *testing.T) {
	client := (&authority{}).client(t)
	in, err := observe.Cluster(t.Context(), client, observe.Request{
		Rules: plan.Rules{
			RequirementsPolicy: plan.Enforce,
			Requirements:       []requirement.Requirement{{Kind: requirement.RequireKubeVersion, Versions: "1.30.0"}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	in.Desired = planOf(t, oneMap).Objects()
	if found := plan.Make(in).Violations; len(found) != 1 || !strings.Contains(found[0].String(), "get the URL /version") {
		t.Errorf("violations %v", found)
	}
}
