// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/internal/apply/dryrun"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/pruning"
	"github.com/satchel-dev/satchel/tests/workspace"
)

const oldPort = `{apiVersion: v1, kind: Service, metadata: {name: old}, spec: {type: TYPE, ports: [{port: 80, nodePort: PORT}]}}`

// F57: a dry run and a plan that is shown say which object is possible only after which deletion, and which objects are not deleted for
// that: what has data, or an address that cannot be restored. Where deletions come later, they say how to have them first.
func TestF57PlanSaysWhatWaits(t *testing.T) {
	first := pruning.Policy{First: true}
	for name, tc := range map[string]struct {
		port, kind, first string
		pruning           pruning.Policy
		waits, failed     string
	}{
		"first":         {port: "30661", kind: "NodePort", pruning: first, waits: "possible only after the deletion of Service NAMESPACE/old"},
		"later":         {port: "30662", kind: "NodePort", failed: "To have it deleted first, set spec.prune.timing to BeforeApply"},
		"kept":          {port: "30663", kind: "NodePort", pruning: pruning.Policy{First: true, Disabled: true}, failed: "provided port is already allocated"},
		"load balancer": {port: "30664", kind: "LoadBalancer", pruning: first, failed: "Service NAMESPACE/old (its load balancer might get another address)"},
		"with a Secret": {port: "30665", kind: "NodePort", pruning: first, first: "\n---\n{apiVersion: v1, kind: Secret, metadata: {name: old}}", waits: "possible only after the deletion of Service NAMESPACE/old: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, workspace.Everything...)
			old := strings.NewReplacer("TYPE", tc.kind, "PORT", tc.port).Replace(oldPort)
			w.MustApply(old + tc.first)
			p := w.planPruning(strings.ReplaceAll(old, "name: old", "name: new"), tc.pruning)
			check, err := dryrun.Run(t.Context(), w.Client, p, dryrun.Options{})
			if err != nil {
				t.Fatal(err)
			}
			forecasts, err := dryrun.Preview(t.Context(), w.Client, p, dryrun.Options{})
			if err != nil {
				t.Fatal(err)
			}
			shown := forecasts[inventory.ID{Kind: "Service", Namespace: w.Namespace, Name: "new"}]
			waits, failed := strings.ReplaceAll(tc.waits, "NAMESPACE", w.Namespace), strings.ReplaceAll(tc.failed, "NAMESPACE", w.Namespace)
			if waits != "" {
				if len(check.Failed) > 0 || !strings.Contains(check.Successors.String(), waits) || shown.Failed != nil || !strings.Contains(shown.Waits, waits) {
					t.Fatalf("got %v, %q, shown %v, %q", check.Failed, check.Successors.String(), shown.Failed, shown.Waits)
				}
				return
			}
			if len(check.Failed) != 1 || !strings.Contains(check.Failed[0].Message, failed) || shown.Failed == nil || !strings.Contains(shown.Failed.Message, failed) || shown.Waits != "" {
				t.Fatalf("got %v, shown %v, %q", check.Failed, shown.Failed, shown.Waits)
			}
		})
	}
}
