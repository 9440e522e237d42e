// SPDX-License-Identifier: Apache-2.0

package tenant_test

import (
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// A client needs the plain name of one ServiceAccount.
func TestT1T2NoClientWithoutAnIdentity(t *testing.T) {
	pool, err := tenant.NewPool(&rest.Config{Host: "https://198.18.0.1"}, tenant.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		reason             string
		namespace, account string
	}{
		"empty":              {"no account at all", "a", ""},
		"blank":              {"a blank is no name", "a", " "},
		"no namespace":       {"an account is in a namespace", "", "deployer"},
		"both empty":         {"the zero value names no account", "", ""},
		"colon":              {"the parts of a user name are separated by colons", "a", "x:y"},
		"other namespace":    {"a path leads elsewhere", "a", "../b"},
		"slash":              {"namespace/name is no name", "a", "b/deployer"},
		"group":              {"a group of the system is no account", "a", "system:masters"},
		"300 characters":     {"longer than any name", "a", strings.Repeat("a", 300)},
		"254 characters":     {"one more than a name may have", "a", strings.Repeat("a", 254)},
		"upper case":         {"names are lower-case", "a", "Deployer"},
		"newline":            {"a header must not be split", "a", "a\nImpersonate-User: system:admin"},
		"trailing newline":   {"nor ended", "a", "deployer\n"},
		"namespace colon":    {"the namespace is part of the user name, too", "a:b", "deployer"},
		"namespace dot":      {"a namespace is a label, not a domain", "a.b", "deployer"},
		"64 characters":      {"a namespace has at most 63", strings.Repeat("a", 64), "deployer"},
		"star":               {"no pattern", "a", "*"},
		"look-alike letters": {"letters of other scripts are not letters of a name", "a", "d\u0435ployer"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			client, err := pool.Client(tenant.Identity{Namespace: tc.namespace, ServiceAccount: tc.account})
			if err == nil || client != nil {
				t.Errorf("%s: got a client for %q", tc.reason, client.Identity())
			}
			if _, err := pool.AccountExists(t.Context(), tenant.Identity{Namespace: tc.namespace, ServiceAccount: tc.account}); err == nil {
				t.Errorf("%s: its existence was asked for", tc.reason)
			}
		})
	}
}

// Names of the maximum length are valid.
func TestT2NamesAtTheLimit(t *testing.T) {
	for _, id := range []tenant.Identity{
		{Namespace: "a", ServiceAccount: "b"},
		{Namespace: strings.Repeat("a", 63), ServiceAccount: strings.Repeat("b", 253)},
		{Namespace: "a-1", ServiceAccount: "dots.are.fine"},
	} {
		if err := id.Validate(); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		if want := "system:serviceaccount:" + id.Namespace + ":" + id.ServiceAccount; id.Username() != want {
			t.Errorf("user %q, want %q", id.Username(), want)
		}
	}
}
