// SPDX-License-Identifier: Apache-2.0

package tenant_test

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"

	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// While all clusters fit in, an upgrade of them makes no new connection and asks for no kinds. One cluster too many, and
// access in turn has all of them connected and discovered again: that is what the limit is for.
func TestKeptClustersAreNeitherConnectedNorDiscoveredAgain(t *testing.T) {
	const clusters = 6
	for limit, again := range map[int]bool{clusters: false, clusters - 1: true, clusters / 2: true} {
		t.Run(fmt.Sprint("limit ", limit), func(t *testing.T) {
			dials := atomic.Int64{}
			remotes := tenant.NewRemotes(func(ctx context.Context, network, address string) (net.Conn, error) {
				dials.Add(1)
				return dialAnywhere(ctx, network, address)
			}, tenant.Options{Clients: limit})
			servers := make([]*server, clusters)
			kubeconfigs := make([]*tenant.Kubeconfig, clusters)
			for i := range clusters {
				servers[i] = &server{kinds: []string{"ConfigMap"}}
				kubeconfigs[i] = secured(t, servers[i], fmt.Sprint("token-", i))
			}
			upgrade := func() {
				for _, of := range kubeconfigs {
					client := remoteClient(t, remotes, of, "shop", "installer")
					if _, err := client.Kinds().Find(t.Context(), configMap); err != nil {
						t.Fatal(err)
					}
					if _, err := client.Target(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			}
			discoveries := func() (count int) {
				for _, s := range servers {
					count += len(s.seen("GET /api ")) + len(s.seen("GET /apis ")) + len(s.seen("GET /api/v1 "))
				}
				return count
			}
			upgrade()
			connected, discovered := dials.Load(), discoveries()
			upgrade()
			connected, discovered = dials.Load()-connected, discoveries()-discovered
			t.Logf("the second upgrade of %d clusters: %d connections, %d requests for kinds", clusters, connected, discovered)
			if !again && (connected != 0 || discovered != 0) {
				t.Error("clusters that are kept were connected or discovered again")
			}
			if again && (connected != clusters || discovered < clusters) {
				t.Error("the limit is not applied: the test shows nothing")
			}
		})
	}
}
