// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
)

// certified are the objects of an operator with a certificate.
const certified = `
apiVersion: v1
kind: Secret
metadata: {name: serving, labels: {satchel.dev/certificate: serving}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: hooks, annotations: {satchel.dev/inject-ca-from: team/serving}}
webhooks: [{name: a.example.org, clientConfig: {service: {name: s, namespace: team}, caBundle: eA==}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: operator}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
`

// rulesToChange let an account change existing objects, and nothing else.
var rulesToChange = authorizationv1.SubjectRulesReviewStatus{ResourceRules: []authorizationv1.ResourceRule{
	{Verbs: []string{"get", "patch"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
}}

// keptPlan is a plan for objects that were applied before: some of them are written.
func keptPlan(t *testing.T, verbs map[int]plan.Verb) plan.Plan {
	t.Helper()
	p := planOf(t, certified)
	for i := range p.Stages[0].Actions {
		action := &p.Stages[0].Actions[i]
		action.Verb, action.Previous = plan.Unchanged, inventory.Entry{ID: action.ID, Fields: inventory.Hash{1}}
		if verb, found := verbs[i]; found {
			action.Verb = verb
		}
	}
	return p
}

// Drift correction and renewal need only the verbs that they use: when the permission to delete
// was removed after the install, certificates are still renewed.
func TestPreflightOfARenewal(t *testing.T) {
	const secret, hooks, role, settings = 0, 1, 2, 3 // of the bundle
	const everything = "create, delete "
	for name, tc := range map[string]struct {
		reason string
		verbs  map[int]plan.Verb
		change func(*plan.Plan)
		lacks  string
	}{
		"certificate": {reason: "it is rewritten", verbs: map[int]plan.Verb{secret: plan.Update}},
		"successor":   {reason: "it is trusted, too", verbs: map[int]plan.Verb{secret: plan.Update, hooks: plan.Update}},
		"and a drift": {reason: "the role is written again, and may be gone", verbs: map[int]plan.Verb{secret: plan.Update, role: plan.Repair},
			lacks: "create clusterroles.rbac.authorization.k8s.io (operator)"},
		"new content": {reason: "it is the time to say what is lacking", verbs: map[int]plan.Verb{secret: plan.Update, settings: plan.Update}, lacks: everything},
		"new object":  {reason: "it is the time to say what is lacking", verbs: map[int]plan.Verb{settings: plan.Create}, lacks: everything},
		"first time": {reason: "an install that was killed", verbs: map[int]plan.Verb{secret: plan.Update}, lacks: everything,
			change: func(p *plan.Plan) { p.Stages[0].Actions[secret].Previous = inventory.Entry{} }},
		"trusts another": {reason: "the annotation alone means nothing", verbs: map[int]plan.Verb{hooks: plan.Update}, lacks: everything,
			change: func(p *plan.Plan) {
				p.Stages[0].Actions[hooks].Desired.SetAnnotations(map[string]string{"satchel.dev/inject-ca-from": "team/other"})
			}},
		"care": {reason: "what was applied last is kept while a newer revision fails", verbs: map[int]plan.Verb{secret: plan.Update, settings: plan.Update},
			change: func(p *plan.Plan) { p.Keeping = true }},
		"care of what is gone": {reason: "it is created", verbs: map[int]plan.Verb{settings: plan.Create}, lacks: "create configmaps (settings)",
			change: func(p *plan.Plan) { p.Keeping = true }},
	} {
		t.Run(name, func(t *testing.T) {
			p := keptPlan(t, tc.verbs)
			if tc.change != nil {
				tc.change(&p)
			}
			found, err := (&authority{rules: rulesToChange}).preflight(t, p)
			if err != nil || (len(found) > 0) != (tc.lacks != "") || tc.lacks != "" && !strings.Contains(found[0].Message, ": "+tc.lacks) {
				t.Errorf("%s: got: %v, %v", tc.reason, found, err)
			}
		})
	}
}
