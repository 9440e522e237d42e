// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

const (
	// chaosSeed is the variable with the seed of TestR35Chaos; it is taken from the clock without it.
	chaosSeed = "SATCHEL_SEED"
	// chaosClusters is how many clusters it has without SATCHEL_FLEET, and chaosTurns how often something happens.
	chaosClusters = 30
	chaosTurns    = 24
)

// TestR35Chaos kills both controllers at random, cuts 30 % of the clusters off for some time, and publishes versions meanwhile. When that ends
// the rollout converges, and the invariants hold over all that was written.
func TestR35Chaos(t *testing.T) {
	if os.Getenv("SATCHEL_FULL") == "" {
		t.Skip("takes three minutes: for the release suite, SATCHEL_FULL=1")
	}
	ctrl.SetLogger(logr.Discard())
	n := chaosClusters
	if os.Getenv(clustersVariable) != "" {
		n = size(t)
	}
	random, _ := chaosRandom(t)
	w := startWorld(t, Options{Clusters: n, Args: []string{
		"--leader-election-lease-duration", "10s", "--leader-election-renew-deadline", "8s", "--leader-election-retry-period", "1s",
	}})
	journal := w.record(t)
	ctx := t.Context()
	must(t, w.Publish(ctx, "v1"))
	must(t, w.Create(ctx, strategyOf(n)))
	must1(w.Await(ctx, "the installation", limit(n), completeWith(1)))(t)

	c := &chaos{World: w, t: t, random: random, version: 1}
	for range chaosTurns {
		c.turn()
		time.Sleep(time.Duration(1+random.IntN(4)) * time.Second) //nolint:forbidigo // faults last for some time
	}
	c.heal()
	c.publish()
	began := time.Now()
	last := must1(w.Await(ctx, "all clusters to have the last version", limit(n), func(o *v1alpha1.BundleRollout) bool {
		return Reason(o) == v1alpha1.ReasonComplete && o.Status.Clusters != nil && int(o.Status.Clusters.Updated) == n && c.isNewest(o)
	}))(t)
	t.Logf("%d kills, %d partitions, %d versions; it converged in %s: %s, %d starts, %d runs", c.kills, c.partitions, c.version,
		time.Since(began).Round(100*time.Millisecond), last.Status.Progress, last.Status.Starts, last.Status.Run)
	for _, cluster := range w.Clusters {
		if got, err := w.VersionOn(ctx, cluster.Name); err != nil || got != c.name() {
			t.Errorf("cluster %s has version %s (%v), want %s", cluster.Name, got, err, c.name())
		}
	}
	journal.check(t, n)
}

// chaosRandom is random by the seed in SATCHEL_SEED, or that of the clock.
func chaosRandom(t *testing.T) (random *rand.Rand, seed uint64) {
	t.Helper()
	seed = uint64(time.Now().UnixNano()) //nolint:gosec // any number
	if text := os.Getenv(chaosSeed); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s is %q: it has to be a number", chaosSeed, text)
		}
	}
	t.Logf("%s=%d", chaosSeed, seed)
	return rand.New(rand.NewPCG(seed, 1)), seed
}

// chaos does harm.
type chaos struct {
	*World
	t       *testing.T
	random  *rand.Rand
	version int
	revised string // status.updateRevision before the last version

	kills, partitions int
}

func (c *chaos) name() string { return fmt.Sprintf("v%d", c.version) }

// turn does one thing at random.
func (c *chaos) turn() {
	c.t.Helper()
	switch c.random.IntN(8) {
	case 0, 1:
		c.kill("bundle-rollout-controller")
	case 2:
		c.kill("bundle-deployment-controller")
	case 3:
		c.kill("bundle-rollout-controller")
		c.kill("bundle-deployment-controller")
	case 4, 5:
		c.heal()
		c.partition()
	case 6:
		c.heal()
	case 7:
		c.publish()
	}
}

func (c *chaos) kill(name string) {
	c.t.Helper()
	for _, p := range c.Controllers {
		if p.Name == name {
			must(c.t, p.Kill(c.t.Context()))
			c.kills++
		}
	}
}

// partition cuts 30 % of the clusters off: half of them do not answer, the others refuse connections.
func (c *chaos) partition() {
	for at, i := range c.random.Perm(len(c.Clusters))[:len(c.Clusters)*3/10] {
		c.Clusters[i].Break(Fault{Silent: at%2 == 0, Refuses: at%2 == 1})
	}
	c.partitions++
}

func (c *chaos) heal() {
	for _, cluster := range c.Clusters {
		cluster.Break(Fault{})
	}
}

// publish edits the source.
func (c *chaos) publish() {
	c.t.Helper()
	object := must1(c.Get(c.t.Context()))(c.t)
	c.revised = object.Status.UpdateRevision.Name
	c.version++
	must(c.t, c.Publish(c.t.Context(), c.name()))
}

// isNewest tells whether the rollout has taken the last version up.
func (c *chaos) isNewest(o *v1alpha1.BundleRollout) bool {
	version, err := c.VersionOn(c.t.Context(), c.Clusters[0].Name)
	return err == nil && version == c.name() && o.Status.UpdateRevision.Name != c.revised
}
