// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/health"
)

// The health of an object that the caller has read needs no request.
func TestLook(t *testing.T) {
	rules, err := health.NewRules([]health.Expressions{{Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Current: "data.state == 'done'"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	crashing := `{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {}, status: {phase: Running, containerStatuses: [
		{name: main, image: i, ready: false, restartCount: 3, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1}}}]}}`
	for name, tc := range map[string]struct {
		reason, object string
		rules          health.Rules
		want           health.State
		says           string
	}{
		"always current":   {reason: "it exists", object: `{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}`},
		"by an expression": {reason: "unless the user says otherwise", rules: rules, object: `{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {state: begun}}`, want: health.InProgress, says: "none of its expressions"},
		"being deleted":    {reason: "whatever its kind", object: `{apiVersion: v1, kind: ConfigMap, metadata: {name: x, deletionTimestamp: "2026-01-01T00:00:00Z"}}`, want: health.Terminating, says: "it is being deleted"},
		"a Pod's cause":    {reason: "what its containers say is more than that they are not ready", object: crashing, want: health.Failed, says: "container main keeps crashing with exit code 1"},
		"a workload":       {reason: "by its status", object: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: x, generation: 1}, spec: {replicas: 1}, status: {observedGeneration: 1}}`, want: health.InProgress, says: "0"},
	} {
		state, message, err := tc.rules.Look(t.Context(), &cluster{}, parse(t, tc.object))
		if err != nil || state != tc.want || !strings.Contains(message, tc.says) || tc.want == "" && message != "" {
			t.Errorf("%s: %s: %q %q %v", name, tc.reason, state, message, err)
		}
	}
	if selector, found := health.Selector(parse(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, spec: {selector: {matchLabels: {a: b}}}}`)); !found || selector != "a=b" {
		t.Errorf("got %q %v", selector, found)
	}
	if _, found := health.Selector(parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}`)); found {
		t.Error("a ConfigMap selects Pods")
	}
}
