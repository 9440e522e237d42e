// SPDX-License-Identifier: Apache-2.0

package shard_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/shard"
)

func parse(t *testing.T, selector string) shard.Shard {
	t.Helper()
	s, err := shard.Parse(selector)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func labelled(labels map[string]string) *v1alpha1.BundleDeployment {
	return &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
}

func TestOwns(t *testing.T) {
	cases := map[string]struct {
		reason   string
		selector string
		labels   map[string]string
		want     bool
	}{
		"no selector":           {"an installation without shards reconciles everything", "", map[string]string{"k": "a"}, true},
		"no selector, no label": {"with labels or without", "", nil, true},
		"its label":             {"the shard's own", "k=a", map[string]string{"k": "a"}, true},
		"another label":         {"is another's", "k=a", map[string]string{"k": "b"}, false},
		"no label":              {"belongs to the one that takes the rest", "k=a", nil, false},
		"the rest":              {"which is selected by the missing label", "!k", nil, true},
		"not the rest":          {"and has nothing that carries it", "!k", map[string]string{"k": "a"}, false},
		"one of several":        {"a shard may have several values", "k in (a, b)", map[string]string{"k": "b"}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := parse(t, tc.selector).Owns(labelled(tc.labels)); got != tc.want {
				t.Errorf("%v with %q: %v, want %v: %s", tc.labels, tc.selector, got, tc.want, tc.reason)
			}
		})
	}
}

func TestParseRefusesWhatIsNoSelector(t *testing.T) {
	if _, err := shard.Parse("k in a"); err == nil {
		t.Error("a malformed selector was taken; nothing or everything would be reconciled")
	}
}

func TestLeasesDiffer(t *testing.T) {
	seen := map[string]string{}
	for _, selector := range []string{"", "k=a", "k=b", "!k"} {
		lease := parse(t, selector).Lease("bundle-deployment-controller")
		if other, found := seen[lease]; found {
			t.Errorf("%q and %q share the lease %s: only one of them would work", selector, other, lease)
		}
		if wrong := validation.IsDNS1123Subdomain(lease); len(wrong) > 0 {
			t.Errorf("%s is no name of a lease: %v", lease, wrong)
		}
		seen[lease] = selector
	}
	if _, found := seen["bundle-deployment-controller"]; !found {
		t.Errorf("without a selector the lease has the controller's name, which RBAC grants; got %v", seen)
	}
}

func TestCarry(t *testing.T) {
	cases := map[string]struct {
		reason         string
		selector       string
		from, to, want map[string]string
		changed        bool
	}{
		"nothing":    {"without shards no label is anybody's business", "", map[string]string{"k": "a"}, nil, nil, false},
		"added":      {"the inline source goes where its deployment is", "k=a", map[string]string{"k": "a", "x": "y"}, nil, map[string]string{"k": "a"}, true},
		"moved":      {"and follows it", "k=a", map[string]string{"k": "a"}, map[string]string{"k": "b", "own": "1"}, map[string]string{"k": "a", "own": "1"}, true},
		"taken away": {"also to the shard of those without the label", "!k", nil, map[string]string{"k": "b"}, map[string]string{}, true},
		"same":       {"correct labels are not written", "k=a", map[string]string{"k": "a"}, map[string]string{"k": "a"}, map[string]string{"k": "a"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			to := labelled(tc.to)
			if changed := parse(t, tc.selector).CopyLabels(labelled(tc.from), to); changed != tc.changed {
				t.Errorf("changed %v, want %v: %s", changed, tc.changed, tc.reason)
			}
			if diff := cmp.Diff(tc.want, to.Labels); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPredicate(t *testing.T) {
	never := predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
	always := predicate.Funcs{}
	a, b := map[string]string{"k": "a"}, map[string]string{"k": "b"}
	cases := map[string]struct {
		reason        string
		inner         predicate.Predicate
		before, after map[string]string
		want          bool
	}{
		"changed":        {"a change of an object of the shard is looked at", always, a, a, true},
		"not changed":    {"what changed nothing of interest is not", never, a, a, false},
		"another's":      {"objects of other shards neither", always, b, b, false},
		"left":           {"who leaves is forgotten", never, a, b, true},
		"came":           {"an object that enters the shard is reconciled", never, b, a, true},
		"moved within":   {"the inline source must get the new label", never, a, map[string]string{"k": "c"}, true},
		"another label":  {"other labels do not matter", never, a, map[string]string{"k": "a", "x": "y"}, false},
		"others' moving": {"one that goes from another shard to a third", always, b, map[string]string{"k": "d"}, false},
	}
	s := parse(t, "k in (a, c)")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := event.UpdateEvent{ObjectOld: labelled(tc.before), ObjectNew: labelled(tc.after)}
			if got := s.Predicate(tc.inner).Update(e); got != tc.want {
				t.Errorf("%v, want %v: %s", got, tc.want, tc.reason)
			}
		})
	}
	if s.Predicate(always).Create(event.CreateEvent{Object: labelled(b)}) {
		t.Error("an object of another shard is reconciled at the start")
	}
	if !s.Predicate(always).Create(event.CreateEvent{Object: labelled(a)}) {
		t.Error("an object of the shard is not reconciled at the start")
	}
}
