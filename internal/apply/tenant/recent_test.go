// SPDX-License-Identifier: Apache-2.0

package tenant_test

import (
	"testing"
	"time"

	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// Deployments of one account that are installed together share what they ask first, for a second; other accounts do not.
func TestRecentAnswersAreShared(t *testing.T) {
	s := newServer(t)
	now := time.Unix(0, 0)
	pool := newPool(t, s, tenant.Options{Now: func() time.Time { return now }})
	ask := func(account, deployment string, wantRecent bool) {
		t.Helper()
		client, err := pool.Client(tenant.Identity{Namespace: "shop", ServiceAccount: account})
		if err != nil {
			t.Fatal(err)
		}
		client = client.For(deployment)
		_, recent, err := client.RecentRules(t.Context(), "shop")
		if err != nil || recent != wantRecent {
			t.Errorf("%s of %s: recent %t, %v, want %t", deployment, account, recent, err, wantRecent)
		}
		before := client.Requests()
		if _, err := client.Namespace(t.Context(), "shop"); err != nil {
			t.Error(err)
		}
		if asked := client.Requests() > before; asked == wantRecent {
			t.Errorf("%s of %s: asked for the namespace: %t", deployment, account, asked)
		}
	}
	ask("installer", "a", false)
	ask("installer", "b", true)
	ask("other", "c", false)
	now = now.Add(999 * time.Millisecond)
	ask("installer", "b", true)
	now = now.Add(2 * time.Millisecond)
	ask("installer", "b", false)

	client, err := pool.Client(tenant.Identity{Namespace: "shop", ServiceAccount: "installer"})
	if err != nil {
		t.Fatal(err)
	}
	before := client.Requests()
	if _, err := client.Rules(t.Context(), "shop"); err != nil || client.Requests() != before+1 {
		t.Errorf("%d requests, %v: Rules always asks", client.Requests()-before, err)
	}
}
