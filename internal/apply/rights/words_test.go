// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/apply/rights"
)

func TestWords(t *testing.T) {
	names := func(count int) []rights.Right {
		var list []rights.Right
		for i := range count {
			list = append(list, rights.Right{Verb: "get", Resource: "pods", Name: fmt.Sprintf("p%d", i)})
		}
		return list
	}
	for name, tc := range map[string]struct {
		reason string
		given  []rights.Right
		want   []string
	}{
		"nothing": {"nothing is said", nil, []string{}},
		"merged": {"what has the same verbs is said together", []rights.Right{
			{Verb: "list", Resource: "pods"}, {Verb: "get", Resource: "pods"}, {Verb: "get", Group: "apps", Resource: "deployments", Name: "web"},
			{Verb: "list", Group: "apps", Resource: "deployments", Name: "web"}, {Verb: "get", URL: "/metrics"},
		}, []string{"get /metrics", "get, list deployments.apps (web), pods"}},
		"many":   {"of many the first are said", names(8), []string{"get pods (p0, p1, p2, p3, p4 and 3 more)"}},
		"hidden": {"a bundle cannot write lines of its own into a condition", []rights.Right{{Verb: "get\nlist", Resource: "pods"}}, []string{`"get\nlist" pods`}},
		"empty":  {"the empty name is not all names", []rights.Right{{Verb: "get", Resource: "pods", Unnamed: true}}, []string{`get pods ("")`}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, rights.Words(tc.given, nil)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	by := map[rights.Right][]string{
		{Verb: "get", Resource: "pods"}: {"Role b", "Role a"}, {Verb: "get", Resource: "secrets"}: {"Role b", "Role c"}, {Verb: "list", Resource: "pods"}: {"Role d"},
	}
	want := []string{"get pods, secrets for Role a, Role b and others", "list nodes"}
	got := rights.Words([]rights.Right{{Verb: "get", Resource: "pods"}, {Verb: "get", Resource: "secrets"}, {Verb: "list", Resource: "nodes"}}, by)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var wide []rights.Right
	for i := range 1000 {
		wide = append(wide, rights.Right{Verb: "get", Resource: fmt.Sprintf("r%03d", i)})
	}
	if words := rights.Words(wide, nil); len(words) != 1 || !strings.HasSuffix(words[0], "r059 and 940 more") {
		t.Errorf("a thousand resources become %v", words)
	}
}

// The most that a bundle may grant is computed in bounded time.
func BenchmarkMostRights(b *testing.B) {
	list := func(prefix string, count int) string {
		var words []string
		for i := range count {
			words = append(words, fmt.Sprintf("%s%d", prefix, i))
		}
		return strings.Join(words, ",")
	}
	r := request(b, fmt.Sprintf("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: a}\nrules: [{apiGroups: [%s], resources: [%s], verbs: [%s]}]",
		list("g", 10), list("r", 200), list("v", 10)))
	for b.Loop() {
		if _, err := rights.Of(r); err != nil {
			b.Fatal(err)
		}
	}
}
