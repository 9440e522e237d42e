// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/digest"
	"github.com/satchel-dev/satchel/internal/apply/plan/ignore"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/plan/pruning"
	"github.com/satchel-dev/satchel/internal/format"
	"github.com/satchel-dev/satchel/tests/formats"
)

func TestF56Digests(t *testing.T) {
	objects := parsed(t, settings, password, web)
	content := contentOf(t, "shop", objects...)
	material, err := digest.Material(content, "inputs", objects, []byte("key"))
	if err != nil {
		t.Fatal(err)
	}
	none, err := plan.Terms{}.Digest()
	if err != nil {
		t.Fatal(err)
	}
	all := plan.Terms{
		Account: "installer", RemoteAccount: "remote", KubeConfig: "kubeconfig", KubeConfigReach: "a.b.c", Target: "uid", CreateNamespace: true,
		Pruning:    pruning.Policy{Disabled: true, First: true, Limit: &pruning.Limit{Most: 7, Percent: true}, Orphan: true, Definitions: true, Recreates: true},
		Protection: ownership.Prevent, Recreate: true, UpgradeSafety: plan.Warn, Exempt: []string{"widgets.example.org"},
		Ignore: []ignore.Rule{{Paths: []string{"/data"}, Target: ignore.Selector{Kind: "ConfigMap"}}}, InstallNamespace: "shop",
	}
	terms, err := all.Digest()
	if err != nil {
		t.Fatal(err)
	}
	key := digest.Key(material, terms)
	id := inventory.ID{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}
	lines := []string{
		"content " + content, "material " + material, "terms " + terms, "no terms " + none, "key " + key,
		"plan " + digest.Plan("uid", key, "base", []inventory.ID{id}), "first plan " + digest.Plan("uid", key, "", nil),
	}
	formats.Golden(t, format.Plan, []byte(strings.Join(lines, "\n")+"\n"))
}

// A setting that another version adds must not change the digest of those who do not use it.
func TestF56TermsThatAreNotUsed(t *testing.T) {
	for _, of := range []reflect.Type{reflect.TypeFor[plan.Terms](), reflect.TypeFor[pruning.Policy]()} {
		for field := range of.Fields() {
			if tag := field.Tag.Get("json"); !strings.Contains(tag, "omit") {
				t.Error(fmt.Sprintf("%s.%s", of, field.Name), "is in the digest where it is not used: add omitempty to its tag")
			}
		}
	}
}
