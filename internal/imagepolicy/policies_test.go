// SPDX-License-Identifier: Apache-2.0

package imagepolicy_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/imagepolicy"
)

type rules = []v1alpha1.ImageRule

func policy(namespace, name string, items ...v1alpha1.ImageRule) v1alpha1.BundleImagePolicy {
	return v1alpha1.BundleImagePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1alpha1.BundleImagePolicySpec{Images: items}}
}

// policiesOf are the policies of a namespace "team" with the shared namespace "platform".
func policiesOf(shared, local rules) imagepolicy.Policies {
	p := imagepolicy.Policies{Namespace: "team", SharedNamespace: "platform"}
	if shared != nil {
		p.Shared = []v1alpha1.BundleImagePolicy{policy("platform", "site", shared...)}
	}
	if local != nil {
		p.Local = []v1alpha1.BundleImagePolicy{policy("team", "own", local...)}
	}
	return p
}

// decided is what tests compare.
type decided struct {
	Denied   string // namespace and prefix
	Only     bool
	Mirrors  []string
	Verified []string // namespaces of the demands
	Logins   []string // namespaces of the rules with a login
}

func decide(t interface{ Helper() }, p imagepolicy.Policies, name string) decided {
	t.Helper()
	var got decided
	d := p.Decide(name)
	if d.Denied != nil {
		got.Denied = d.Denied.Namespace + " " + d.Denied.Prefix
	}
	got.Only = d.MirrorsOnly
	for _, r := range d.Rules {
		got.Mirrors = append(got.Mirrors, r.Mirrors...)
		if r.Verify != nil {
			got.Verified = append(got.Verified, r.Namespace)
		}
		if r.SecretRef != nil && r.Login {
			got.Logins = append(got.Logins, r.Namespace)
		}
	}
	return got
}

// C57 to C61: which rules count, and what they say together.
func TestC57Decide(t *testing.T) {
	const app = "quay.io/org/app"
	never := v1alpha1.ImageSourceNever
	verify := &v1alpha1.ImageVerification{Provider: "cosign"}
	login := &v1alpha1.LocalReference{Name: "pull"}
	tests := map[string]struct {
		reason        string
		shared, local rules
		name          string
		want          decided
	}{
		"nothing":        {"no policy", nil, nil, app, decided{}},
		"host":           {"all of a registry", nil, rules{{Prefix: "quay.io", Mirrors: []string{"m.example.org/quay"}}}, app, decided{Mirrors: []string{"m.example.org/quay/org/app"}}},
		"whole name":     {"one repository", nil, rules{{Prefix: app, Mirrors: []string{"m.example.org"}}}, app, decided{Mirrors: []string{"m.example.org"}}},
		"component":      {"org is no prefix of organization", nil, rules{{Prefix: "quay.io/org", Deny: true}}, "quay.io/organization/app", decided{}},
		"host component": {"quay.io is no prefix of quay.io.example.org", nil, rules{{Prefix: "quay.io", Deny: true}}, "quay.io.example.org/app", decided{}},
		"longest": {"the longest prefix alone counts", nil, rules{{Prefix: "quay.io/org", Mirrors: []string{"b.example.org"}}, {Prefix: "quay.io", Deny: true}, {Prefix: "", Deny: true}}, app,
			decided{Mirrors: []string{"b.example.org/app"}}},
		"closed":        {"what no rule permits", rules{{Prefix: "quay.io/org"}, {Prefix: "", Deny: true}}, nil, "ghcr.io/x/y", decided{Denied: "platform "}},
		"other port":    {"is another registry", rules{{Prefix: "quay.io", Deny: true}}, nil, "quay.io:8443/org/app", decided{}},
		"local denies":  {"a namespace may be stricter", rules{{Prefix: "quay.io"}}, rules{{Prefix: "quay.io", Deny: true}}, app, decided{Denied: "team quay.io"}},
		"shared denies": {"a longer local prefix is no way around", rules{{Prefix: "quay.io", Deny: true}}, rules{{Prefix: app, Mirrors: []string{"m.example.org"}}}, app, decided{Denied: "platform quay.io", Mirrors: []string{"m.example.org"}}},
		"both verify":   {"each demand has to be met", rules{{Prefix: "quay.io", Verify: verify}}, rules{{Prefix: app, Verify: verify}}, app, decided{Verified: []string{"platform", "team"}}},
		"not unverified": {"a local rule without verify removes nothing", rules{{Prefix: "", Verify: verify}}, rules{{Prefix: app}}, app,
			decided{Verified: []string{"platform"}}},
		"both mirrors": {"shared mirrors first", rules{{Prefix: "quay.io", Mirrors: []string{"s.example.org"}}}, rules{{Prefix: "quay.io/org", Mirrors: []string{"l.example.org"}}}, app,
			decided{Mirrors: []string{"s.example.org/org/app", "l.example.org/app"}}},
		"local never": {"a namespace may be stricter", rules{{Prefix: "quay.io", Mirrors: []string{"s.example.org"}}}, rules{{Prefix: "quay.io", Source: never, Mirrors: []string{"l.example.org"}}}, app,
			decided{Only: true, Mirrors: []string{"s.example.org/org/app", "l.example.org/org/app"}}},
		"shared never": {"with it, only shared mirrors are contacted", rules{{Prefix: "quay.io", Source: never, Mirrors: []string{"s.example.org"}}},
			rules{{Prefix: app, Source: v1alpha1.ImageSourceFallback, Mirrors: []string{"quay.io/org/app", "evil.example.org"}}}, app, decided{Only: true, Mirrors: []string{"s.example.org/org/app"}}},
		"mirror in a closed place": {"a denied registry is not contacted as a mirror either", rules{{Prefix: "quay.io"}, {Prefix: "", Deny: true}},
			rules{{Prefix: "quay.io", Mirrors: []string{"evil.example.org", "quay.io/copy"}}}, app, decided{Mirrors: []string{"quay.io/copy/org/app"}}},
		"mirror with port": {"the default ports of a denied registry are the registry", rules{{Prefix: "evil.example.org", Deny: true}},
			rules{{Prefix: "quay.io", Insecure: true, Mirrors: []string{"evil.example.org:80", "evil.example.org:443/x"}}}, app, decided{}},
		"no tenant":         {"a shared login is for those who are named", rules{{Prefix: "quay.io", SecretRef: login}}, nil, app, decided{}},
		"another tenant":    {"and for no other", rules{{Prefix: "quay.io", SecretRef: login, Tenants: []string{"teams", "other"}}}, nil, app, decided{}},
		"tenant":            {"by name", rules{{Prefix: "quay.io", SecretRef: login, Tenants: []string{"other", "team"}}}, nil, app, decided{Logins: []string{"platform"}}},
		"all tenants":       {"if that is said", rules{{Prefix: "quay.io", SecretRef: login, Tenants: []string{v1alpha1.AllTenants}}}, nil, app, decided{Logins: []string{"platform"}}},
		"own login":         {"of one's own policy", nil, rules{{Prefix: "quay.io", SecretRef: login, Tenants: []string{"other"}}}, app, decided{Logins: []string{"team"}}},
		"Docker Hub":        {"its registry has several names", nil, rules{{Prefix: "docker.io/library", Deny: true}}, "docker.io/library/nginx", decided{Denied: "team docker.io/library"}},
		"Docker Hub, alias": {"in prefixes, too", nil, rules{{Prefix: "index.docker.io", Deny: true}}, "docker.io/library/nginx", decided{Denied: "team index.docker.io"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, decide(t, policiesOf(tc.shared, tc.local), tc.name)); diff != "" {
				t.Errorf("%s:\n%s", tc.reason, diff)
			}
		})
	}
}

// Several policies of a namespace are one list of rules; equal prefixes count together.
func TestC57SeveralPolicies(t *testing.T) {
	p := imagepolicy.Policies{Namespace: "team", Local: []v1alpha1.BundleImagePolicy{
		policy("team", "b", v1alpha1.ImageRule{Prefix: "quay.io", Mirrors: []string{"second.example.org"}}),
		policy("team", "a", v1alpha1.ImageRule{Prefix: "quay.io", Mirrors: []string{"first.example.org"}}),
		policy("team", "c", v1alpha1.ImageRule{Prefix: "", Deny: true}),
	}}
	want := decided{Mirrors: []string{"first.example.org/a", "second.example.org/a"}}
	if diff := cmp.Diff(want, decide(t, p, "quay.io/a")); diff != "" {
		t.Error(diff)
	}
}

// In the shared namespace its policies are its own.
func TestTenantsOfTheSharedNamespace(t *testing.T) {
	p := policiesOf(rules{{Prefix: "quay.io", SecretRef: &v1alpha1.LocalReference{Name: "pull"}}}, nil)
	p.Namespace = "platform"
	if got := decide(t, p, "quay.io/a"); len(got.Logins) != 1 {
		t.Errorf("the shared namespace itself may not use its login: %+v", got)
	}
}

// C61: a login goes to the prefix and the mirrors of its rule.
func TestC61Permits(t *testing.T) {
	rule := imagepolicy.Rule{ImageRule: &v1alpha1.ImageRule{Prefix: "docker.io/org", Mirrors: []string{"m.example.org:5000/hub"}}}
	everywhere := imagepolicy.Rule{ImageRule: &v1alpha1.ImageRule{}}
	tests := map[string]struct {
		rule             imagepolicy.Rule
		host, repository string
		want             bool
	}{
		"prefix":             {rule, "index.docker.io", "org/app", true},
		"prefix itself":      {rule, "index.docker.io", "org", true},
		"beside the prefix":  {rule, "index.docker.io", "organization/app", false},
		"mirror":             {rule, "m.example.org:5000", "hub/app", true},
		"beside the mirror":  {rule, "m.example.org:5000", "other/app", false},
		"another port":       {rule, "m.example.org", "hub/app", false},
		"another host":       {rule, "evil.example.org", "hub/app", false},
		"token server":       {rule, "m.example.org:5000", "", true},
		"other token server": {rule, "evil.example.org", "", false},
		"no host":            {everywhere, "evil.example.org", "a", false},
	}
	for name, tc := range tests {
		if got := tc.rule.Permits(tc.host, tc.repository); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

var hosts = []string{"quay.io", "docker.io", "a.example.org", "b.example.org:5000", "localhost:5000"}

// drawPlace draws from few parts, so that prefixes and names meet.
func drawPlace(r *rand.Rand, least int) string {
	parts := []string{hosts[r.IntN(len(hosts))]}
	for range least + r.IntN(4-least) {
		parts = append(parts, []string{"a", "ab", "b"}[r.IntN(3)])
	}
	return strings.Join(parts, "/")
}

func drawRules(r *rand.Rand) rules {
	var items rules
	for range r.IntN(6) {
		var item v1alpha1.ImageRule
		if r.IntN(5) > 0 {
			item.Prefix = drawPlace(r, 0)
			for range r.IntN(3) {
				item.Mirrors = append(item.Mirrors, drawPlace(r, 0))
			}
			item.Tags = len(item.Mirrors) > 0 && r.IntN(2) == 0
			if len(item.Mirrors) > 0 && r.IntN(2) == 0 {
				item.Source = v1alpha1.ImageSourceNever
			}
			item.SecretRef = &v1alpha1.LocalReference{Name: "pull"}
		}
		if r.IntN(2) == 0 {
			item.Verify = &v1alpha1.ImageVerification{Provider: "cosign"}
		}
		item.Deny = r.IntN(4) == 0
		items = append(items, item)
	}
	return items
}

// TestLocalNeverLoosens: whatever a local policy says, what the shared one demands still holds.
func TestLocalNeverLoosens(t *testing.T) {
	for seed := range uint64(20_000) {
		r := rand.New(rand.NewPCG(seed, 0))
		shared, local, name := drawRules(r), drawRules(r), drawPlace(r, 1)
		alone, both := policiesOf(shared, nil).Decide(name), policiesOf(shared, local).Decide(name)
		if problem := loosened(policiesOf(shared, nil), alone, both); problem != "" {
			t.Fatalf("seed %d: %s\nshared %+v\nlocal %+v\nimage %s", seed, problem, shared, local, name)
		}
	}
}

// loosened says what a local policy permits that the shared one forbids; "" for nothing.
func loosened(shared imagepolicy.Policies, alone, both imagepolicy.Decision) string {
	demands := func(d imagepolicy.Decision) int {
		return len(slices.DeleteFunc(slices.Clone(d.Rules), func(r imagepolicy.Rule) bool { return r.Namespace != "platform" || r.Verify == nil }))
	}
	switch {
	case alone.Denied != nil && both.Denied == nil:
		return "a denied image is permitted"
	case alone.MirrorsOnly && !both.MirrorsOnly:
		return "the source is contacted"
	case demands(both) != demands(alone):
		return "a demanded verification is gone"
	}
	for _, r := range both.Rules {
		if r.Namespace == "platform" && r.Login {
			return "a shared login is used for a namespace that is not named"
		}
		for _, mirror := range r.Mirrors {
			there := shared.Decide(mirror)
			if r.Namespace != "platform" && (alone.MirrorsOnly || there.Denied != nil || there.MirrorsOnly) {
				return mirror + " is contacted, which the shared policies forbid"
			}
		}
	}
	return ""
}
