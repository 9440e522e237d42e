// SPDX-License-Identifier: Apache-2.0

package waiting_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/controller/deployment/waiting"
)

func TestNamesThatDeploymentsWaitFor(t *testing.T) {
	var names waiting.Names
	set := func(namespace, name string, awaited ...string) {
		all := map[string]bool{}
		for _, one := range awaited {
			all[one] = true
		}
		names.Set(types.NamespacedName{Namespace: namespace, Name: name}, all)
	}
	expect := func(step, namespace, name string, want ...string) {
		t.Helper()
		var got []string
		for _, key := range names.By(namespace, name) {
			got = append(got, key.String())
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step, diff)
		}
	}
	expect("at first", "a", "db")
	set("a", "app", "db", "cache")
	set("a", "web", "db")
	set("b", "app", "db")
	expect("in their namespace", "a", "db", "a/app", "a/web")
	expect("in another one", "b", "db", "b/app")
	set("a", "app", "cache")
	expect("a name that one does not wait for any more", "a", "db", "a/web")
	expect("a name that it still waits for", "a", "cache", "a/app")
	set("a", "app")
	set("a", "web")
	expect("none waits any more", "a", "db")
	expect("none waits any more", "a", "cache")
}
