// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/health"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/expression"
)

// flux-f10 (F49): a claim that waits for its first consumer is settled; any other that is not bound is not.
func TestF49ClaimThatWaitsForItsConsumer(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "storage.k8s.io", Resource: "storageclasses"}, "late", nil)
	late := `{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: late}, volumeBindingMode: WaitForFirstConsumer}`
	now := `{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: late}, volumeBindingMode: Immediate}`
	unset := `{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: late}}`
	event := func(reason, last, kind string) string {
		return fmt.Sprintf(`{apiVersion: v1, kind: Event, metadata: {name: e}, reason: %s, lastTimestamp: %q, type: %s, message: m}`, reason, last, kind)
	}
	waiting := event("WaitForFirstConsumer", "2026-01-01T00:00:15Z", "Normal")
	claim := func(metadata, spec, status string) string {
		return fmt.Sprintf(`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x, uid: u, %s}, spec: {%s}, status: {%s}}`, metadata, spec, status)
	}
	for name, tc := range map[string]struct {
		claim, class string
		classError   error
		events       []string
		want         health.State // empty: healthy
	}{
		"waits":                      {claim("", "storageClassName: late", "phase: Pending"), late, nil, nil, ""},
		"not seen by its controller": {claim("", "storageClassName: late", ""), late, nil, nil, ""},
		"immediate":                  {claim("", "storageClassName: late", "phase: Pending"), now, nil, []string{waiting}, health.InProgress},
		"default mode":               {claim("", "storageClassName: late", "phase: Pending"), unset, nil, nil, health.InProgress},
		"class is missing":           {claim("", "storageClassName: late", "phase: Pending"), "", nil, []string{waiting}, health.InProgress},
		"no class":                   {claim("", "", "phase: Pending"), late, nil, nil, health.InProgress},
		"static":                     {claim("", `storageClassName: ""`, "phase: Pending"), late, nil, nil, health.InProgress},
		"of a volume":                {claim("", "storageClassName: late, volumeName: v", "phase: Pending"), late, nil, nil, health.InProgress},
		"node selected":              {claim("annotations: {volume.kubernetes.io/selected-node: node-1}", "storageClassName: late", "phase: Pending"), late, nil, nil, health.InProgress},
		"lost":                       {claim("", "storageClassName: late", "phase: Lost"), late, nil, nil, health.InProgress},
		"bound":                      {claim("", "storageClassName: late, volumeName: v", "phase: Bound"), late, nil, nil, ""},
		"being deleted":              {claim(`deletionTimestamp: "2026-01-01T00:00:00Z"`, "storageClassName: late", "phase: Pending"), late, nil, nil, health.Terminating},
		"class forbidden, event":     {claim("", "storageClassName: late", "phase: Pending"), "", forbidden, []string{waiting}, ""},
		"class forbidden, no event":  {claim("", "storageClassName: late", "phase: Pending"), "", forbidden, nil, health.InProgress},
		"class forbidden, provisioning since then": {claim("", "storageClassName: late", "phase: Pending"), "", forbidden, []string{waiting, event("ExternalProvisioning", "2026-01-01T00:01:00Z", "Normal")}, health.InProgress},
		"class forbidden, provisioning failed":     {claim("", "storageClassName: late", "phase: Pending"), "", forbidden, []string{waiting, event("ProvisioningFailed", "2026-01-01T00:01:00Z", "Warning")}, health.InProgress},
		"class forbidden, failed before":           {claim("", "storageClassName: late", "phase: Pending"), "", forbidden, []string{event("ProvisioningFailed", "2026-01-01T00:00:00Z", "Warning"), waiting}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := &cluster{objects: map[string]*unstructured.Unstructured{}, classError: tc.classError}
			if tc.class != "" {
				c.objects["late"] = parse(t, tc.class)
			}
			for _, text := range tc.events {
				c.events = append(c.events, *parse(t, text))
			}
			object := parse(t, tc.claim)
			c.objects["x"] = object
			report, err := health.Check(t.Context(), c, []plan.Object{{ID: inventory.IDOf(object)}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := health.State("")
			if !report.Healthy() {
				got = report.Unhealthy[0].State
			}
			if got != tc.want {
				t.Errorf("got %q (%s), want %q", got, report.Message(), tc.want)
			}
			if looked, _, err := (health.Rules{}).Look(t.Context(), c, object); err != nil || looked != tc.want {
				t.Errorf("what satchel tree shows is %q (%v), want %q", looked, err, tc.want)
			}
		})
	}
}

// The user's word about claims goes before the rule.
func TestF49ClaimWithAnExpression(t *testing.T) {
	rules, err := health.NewRules([]health.Expressions{{Kind: schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"}, Current: "status.phase == 'Bound'"}}, (*expression.Budget)(nil))
	if err != nil {
		t.Fatal(err)
	}
	object := parse(t, `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x, uid: u}, spec: {storageClassName: late}, status: {phase: Pending}}`)
	c := &cluster{objects: map[string]*unstructured.Unstructured{
		"x": object, "late": parse(t, `{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: late}, volumeBindingMode: WaitForFirstConsumer}`),
	}}
	at := plan.Object{ID: inventory.IDOf(object)}
	at.Resource = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	report, err := rules.Check(t.Context(), c, []plan.Object{at}, nil)
	if err != nil || report.Healthy() || !strings.Contains(report.Message(), "expressions") {
		t.Errorf("got %v, %v", report, err)
	}
	if done, err := rules.Complete(t.Context(), c, at, "u"); err != nil || done.Done {
		t.Errorf("a hook: %+v, %v", done, err)
	}
}
