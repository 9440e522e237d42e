// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
)

const ordered = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      volumes: [{name: a, emptyDir: {}}, {name: b, emptyDir: {}}, {name: c, emptyDir: {}}]
      initContainers: [{name: first, image: example.org/a}, {name: second, image: example.org/b}]
      containers:
      - name: main
        image: example.org/main
        env: [{name: HOST, value: h}, {name: PORT, value: "1"}, {name: URL, value: "$(HOST):$(PORT)"}]
`

// F38: another client changes the order of a list by PUT. The managed fields do not show
// that, and the status that the Deployment's controller writes right after must not hide it.
// The order of what changed is put back, again and again; scaling goes on as before.
func TestF38OrderOfLists(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	role := "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: reader}\nrules:\n" +
		"- {apiGroups: [''], resources: [pods], verbs: [get, list]}\n- {apiGroups: [''], resources: [configmaps], verbs: [get]}\n"
	published := r.publish(t, namespace, "app", "v1", fstest.MapFS{"web.yaml": file(ordered), "role.yaml": file(role)})
	key := r.deploy(t, namespace, "app", rarely)
	r.ready(t, key, published.Revision)
	template := []string{"spec", "template", "spec"}
	lists := map[string]struct {
		of   *unstructured.Unstructured
		path []string
	}{
		"volumes":        {object("apps/v1", "Deployment", namespace, "web"), append(slices.Clone(template), "volumes")},
		"initContainers": {object("apps/v1", "Deployment", namespace, "web"), append(slices.Clone(template), "initContainers")},
		"env":            {object("apps/v1", "Deployment", namespace, "web"), append(slices.Clone(template), "containers", "env")},
		"rules":          {object("rbac.authorization.k8s.io/v1", "Role", namespace, "reader"), []string{"rules"}},
	}
	for _, name := range []string{"env", "volumes", "initContainers", "rules", "env"} {
		of, path := lists[name].of, lists[name].path
		want := fmt.Sprint(listAt(t, r.must(t, of), path))
		err := retry.RetryOnConflict(wait.Backoff{Steps: 200, Duration: 20 * time.Millisecond}, func() error { // its status is written, too
			slices.Reverse(listAt(t, r.must(t, of), path))
			return r.admin.Update(t.Context(), of)
		})
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(listAt(t, r.must(t, of), path)) == want {
			t.Fatalf("the order of %s was not changed", name)
		}
		r.eventually(t, t.Context(), "the order of "+name+" is put back", func(context.Context) (bool, string) {
			got := fmt.Sprint(listAt(t, r.must(t, of), path))
			return got == want, got
		})
	}
	r.ready(t, key, published.Revision)
}

// listAt is a list of an object itself, not a copy; below a list its first item is meant.
func listAt(t *testing.T, of *unstructured.Unstructured, path []string) []any {
	t.Helper()
	var at any = of.Object
	for _, part := range path {
		if list, ok := at.([]any); ok {
			at = list[0]
		}
		fields, ok := at.(map[string]any)
		if !ok {
			t.Fatalf("%s: not a mapping: %v", part, at)
		}
		at = fields[part]
	}
	list, ok := at.([]any)
	if !ok {
		t.Fatalf("%v is no list", path)
	}
	return list
}
