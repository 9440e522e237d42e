// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/apply/plan"
)

func deletionOf(kind, resource, namespace, name string) plan.Deletion {
	return plan.Deletion{ID: inventory.ID{Kind: kind, Namespace: namespace, Name: name}, Kind: plan.Kind{Resource: schema.GroupVersionResource{Version: "v1", Resource: resource}}, How: plan.Delete}
}

// F57: which refusals may end with the deletion of a Service a/old, and which have nothing to do with it.
func TestF57RefusalsThatADeletionMayEnd(t *testing.T) {
	const ingress = `admission webhook "validate.nginx.ingress.kubernetes.io" denied the request: `
	for name, tc := range map[string]struct {
		kind, namespace string
		reason          metav1.StatusReason
		message         string
		ends            bool
	}{
		"port":                        {"Service", "b", metav1.StatusReasonInvalid, `Service "new" is invalid: spec.ports[0].nodePort: Invalid value: 30100: provided port is already allocated`, true},
		"address":                     {"Service", "b", metav1.StatusReasonInvalid, `Service "new" is invalid: spec.clusterIPs: Invalid value: ["10.0.0.9"]: failed to allocate IP 10.0.0.9: provided IP is already allocated`, true},
		"port out of range":           {"Service", "a", metav1.StatusReasonInvalid, `Service "new" is invalid: spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range`, false},
		"words in another kind":       {"ConfigMap", "a", metav1.StatusReasonInvalid, `ConfigMap "new" is invalid: x: provided port is already allocated`, false},
		"quota":                       {"Service", "a", metav1.StatusReasonForbidden, `services "new" is forbidden: exceeded quota: q, requested: services=1, used: services=1, limited: services=1`, true},
		"quota of another namespace":  {"Service", "b", metav1.StatusReasonForbidden, `services "new" is forbidden: exceeded quota: q, requested: services=1, used: services=1, limited: services=1`, false},
		"quota without requests":      {"Service", "a", metav1.StatusReasonForbidden, `pods "new" is forbidden: failed quota: q: must specify requests.cpu`, false},
		"webhook, host":               {"Ingress", "b", metav1.StatusReasonBadRequest, ingress + `host "x.org" and path "/" is already defined in ingress a/other`, true},
		"webhook names it":            {"Ingress", "b", metav1.StatusReasonForbidden, `admission webhook "x.org" denied the request: see a/old`, true},
		"webhook, a policy":           {"Ingress", "b", metav1.StatusReasonForbidden, `admission webhook "unique.policies.org" denied the request: the image tag latest is not permitted`, false},
		"webhook, the object's name":  {"Ingress", "b", metav1.StatusReasonForbidden, `admission webhook "x.org" denied the request: new has no label`, false},
		"webhook cannot be reached":   {"Ingress", "b", metav1.StatusReasonInternalError, `Internal error occurred: failed calling webhook "already.org": connection refused`, false},
		"admission policy":            {"Ingress", "a", metav1.StatusReasonInvalid, `ingresses "new" is forbidden: ValidatingAdmissionPolicy 'old' with binding 'old' denied request: already`, false},
		"second default class":        {"PriorityClass", "", metav1.StatusReasonForbidden, `priorityclasses.scheduling.k8s.io "new" is forbidden: PriorityClass old is already marked as default. Only one default can exist`, true},
		"permission":                  {"Service", "a", metav1.StatusReasonForbidden, `services "new" is forbidden: User "x" cannot patch resource "services" in API group "" in the namespace "a"`, false},
		"immutable":                   {"Service", "a", metav1.StatusReasonInvalid, `Service "new" is invalid: spec.clusterIP: may not change once set`, false},
		"schema, with the same words": {"Service", "a", metav1.StatusReasonInvalid, `Service "new" is invalid: spec.ports[1].name: Duplicate value: "old"`, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := &objecterror.Error{ID: inventory.ID{Kind: tc.kind, Namespace: tc.namespace, Name: "new"}, Reason: tc.reason, Message: tc.message}
			if endsWith(f, []plan.Deletion{deletionOf("Service", "services", "a", "old")}) != tc.ends {
				t.Errorf("want %v for %s", tc.ends, tc.message)
			}
			if endsWith(f, nil) {
				t.Error("nothing is deleted")
			}
		})
	}
}

// F57: the name of the refused object in what a webhook says is no word of the webhook, and a short name leaves other words whole.
func TestF57NamesInRefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		object, said string
		ends         bool
	}{
		"a, in another word":       {"a", `host "x.org" is already defined`, true},
		"in, in another word":      {"in", `the port is in use, its line is taken`, true},
		"in, twice in a row":       {"in", `in in already`, true},
		"no name":                  {"", `host "x.org" is already defined`, true},
		"a word of the webhook":    {"unique", `unique has no label`, false},
		"quoted":                   {"unique", `"unique" has no label`, false},
		"at the end":               {"unique", `no label: unique`, false},
		"end of a sentence":        {"unique", `no label has unique.`, false},
		"before a colon":           {"unique", `unique: no label`, false},
		"of a role":                {"x:unique", `x:unique may not be bound`, false},
		"twice":                    {"unique", `unique unique has no label`, false},
		"with its namespace":       {"unique", `b/unique has no label`, false},
		"part of another name":     {"app", `already-app exists, as conflict-app.x.org`, true},
		"with a dot, as a pattern": {"a.c", `abc is already defined`, true},
		"with a dot":               {"unique.x", `unique.x has no label`, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := &objecterror.Error{ID: inventory.ID{Kind: "Ingress", Namespace: "b", Name: tc.object}, Reason: metav1.StatusReasonBadRequest, Message: `admission webhook "x.org" denied the request: ` + tc.said}
			if endsWith(f, []plan.Deletion{deletionOf("Service", "services", "a", "old")}) != tc.ends {
				t.Errorf("want %v for %q: without the name it says %q", tc.ends, tc.said, withoutNames(f))
			}
		})
	}
}

// F57: what a deletion frees of a quota is calculated, for all refused objects together. What is not known does not suffice.
func TestF57QuotaThatADeletionFrees(t *testing.T) {
	one := deletionOf("ConfigMap", "configmaps", "a", "old")
	for name, tc := range map[string]struct {
		messages []string
		first    []plan.Deletion
		want     bool
	}{
		"enough":            {[]string{"configmaps=1, used: configmaps=3, limited: configmaps=3"}, []plan.Deletion{one}, true},
		"by count":          {[]string{"count/configmaps=1, used: count/configmaps=3, limited: count/configmaps=3"}, []plan.Deletion{one}, true},
		"two for one":       {[]string{"configmaps=1, used: configmaps=3, limited: configmaps=3", "configmaps=1, used: configmaps=3, limited: configmaps=3"}, []plan.Deletion{one}, false},
		"two for two":       {[]string{"configmaps=1, used: configmaps=3, limited: configmaps=3", "configmaps=1, used: configmaps=3, limited: configmaps=3"}, []plan.Deletion{one, deletionOf("ConfigMap", "configmaps", "a", "b")}, true},
		"too much is used":  {[]string{"configmaps=1, used: configmaps=5, limited: configmaps=3"}, []plan.Deletion{one}, false},
		"another namespace": {[]string{"configmaps=1, used: configmaps=3, limited: configmaps=3"}, []plan.Deletion{deletionOf("ConfigMap", "configmaps", "b", "old")}, false},
		"another kind":      {[]string{"secrets=1, used: secrets=3, limited: secrets=3"}, []plan.Deletion{one}, false},
		"two resources":     {[]string{"configmaps=1,pods=1, used: configmaps=3,pods=2, limited: configmaps=3,pods=2"}, []plan.Deletion{one}, false},
		"not understood":    {[]string{"configmaps=x, used: configmaps=3, limited: configmaps=3"}, []plan.Deletion{one}, false},
		"exponent":          {[]string{"configmaps=1e2147483647, used: configmaps=1, limited: configmaps=3"}, []plan.Deletion{one}, false},
		"many digits":       {[]string{"configmaps=1, used: configmaps=3, limited: configmaps=" + strings.Repeat("9", 900)}, []plan.Deletion{one}, false},
		"another refusal":   {[]string{""}, []plan.Deletion{one}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var failed []*objecterror.Error
			for _, message := range tc.messages {
				if message != "" {
					message = "exceeded quota: q, requested: " + message
				}
				failed = append(failed, &objecterror.Error{ID: inventory.ID{Kind: "ConfigMap", Namespace: "a", Name: "new"}, Reason: metav1.StatusReasonForbidden, Message: message})
			}
			if got := suffices(t.Context(), nil, failed, tc.first); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
