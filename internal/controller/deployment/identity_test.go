// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/satchel-dev/satchel/tests/controlplane"
)

// ownRequests reads the requests that the controller may make as itself.
func ownRequests(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile("testdata/own-requests.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return slices.DeleteFunc(lines, func(line string) bool { return line == "" || strings.HasPrefix(line, "#") })
}

// requestOf is a request as the list has it: verb, resource.group, subresource.
func requestOf(e controlplane.AuditEvent) string {
	if e.Resource == "" {
		return e.Verb + " " + strings.SplitN(e.RequestURI, "?", 2)[0]
	}
	words := e.Verb + " " + e.Resource
	if e.APIGroup != "" {
		words += "." + e.APIGroup
	}
	if e.Subresource != "" {
		words += "/" + e.Subresource
	}
	return words
}

// TestT7NothingAsTheController lives a whole life with drift, failure and removal,
// and then reads from the audit log who did it.
func TestT7NothingAsTheController(t *testing.T) {
	r := newRig(t)
	mark := r.mark(t)
	namespace := r.namespace(t)
	group := r.group(t, namespace)
	bundle := func(version string) fstest.MapFS {
		return fstest.MapFS{
			"a.yaml": configMap("a", version), "b.yaml": workload("web", "example.org/web:"+version), "c.yaml": crd(group), "d.yaml": gadget(group, "g"),
			"e.yaml": file("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: b}"),
			"f.yaml": file("apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r}\nrules: [{apiGroups: [''], resources: [pods], verbs: [get]}]"),
			"g.yaml": configMap("only-in-"+version, version),
			"h.yaml": file("apiVersion: v1\nkind: Namespace\nmetadata: {name: " + namespace + "-own}"),
		}
	}
	first := r.publish(t, namespace, "app", "v1", bundle("one"))
	key := r.deploy(t, namespace, "app", quick)
	r.ready(t, key, first.Revision)
	r.delete(t, aConfigMap(namespace, "a"))
	r.holds(t, namespace, "a", "one")
	r.publish(t, namespace, "app", "v2", fstest.MapFS{"a.yaml": file("kind: [broken")})
	r.unready(t, key, "ConversionFailed")
	r.delete(t, aConfigMap(namespace, "a"))
	r.holds(t, namespace, "a", "one")
	third := r.publish(t, namespace, "app", "v3", bundle("three"))
	r.ready(t, key, third.Revision)
	r.gone(t, aConfigMap(namespace, "only-in-one"))
	r.remove(t, key)

	allowed, used := ownRequests(t), map[string]bool{}
	impersonated := 0
	for _, e := range r.audit(t, mark, func(e controlplane.AuditEvent) bool { return e.User == controllerUser }) {
		if e.ImpersonatedUser != "" {
			impersonated++
			if want := "system:serviceaccount:" + namespace + ":installer"; e.ImpersonatedUser != want {
				t.Errorf("not as %s: %s", want, e)
			}
			continue
		}
		request := requestOf(e)
		used[request] = true
		if !slices.Contains(allowed, request) {
			t.Errorf("as the controller itself: %s (%s)", request, e)
		}
		if e.Resource == "secrets" || e.Resource == "events" && e.Namespace != namespace && e.Namespace != "default" {
			t.Errorf("as the controller itself: %s", e)
		}
	}
	if impersonated < 30 || !used["get serviceaccounts"] {
		t.Errorf("%d impersonated requests, own ones %v: the audit log is not what it should be", impersonated, used)
	}
	t.Logf("%d requests as the tenant; as itself: %v", impersonated, used)
}
