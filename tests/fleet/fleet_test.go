// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/installation"
)

// clustersVariable says how many clusters are simulated: 20 without it, 1000 for figures.
const clustersVariable = "SATCHEL_FLEET"

// smallest is how many clusters have at least one of each fault.
const smallest = 20

func size(t *testing.T) int {
	t.Helper()
	text := os.Getenv(clustersVariable)
	if text == "" {
		return smallest
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < smallest || n > 5000 {
		t.Fatalf("%s is %q: it has to be a number from %d to 5000", clustersVariable, text, smallest)
	}
	return n
}

// limit bounds each wait: seconds a cluster on a busy machine.
func limit(clusters int) time.Duration { return 3*time.Minute + time.Duration(clusters)*2*time.Second }

// rings are five waves: 2 %, 8 %, 20 %, 30 % and 40 % of the clusters.
func rings(clusters int) func(int) string {
	return func(index int) string {
		for ring, percent := range []int{2, 10, 30, 60} {
			if index*100 < percent*clusters {
				return fmt.Sprintf("w%d", ring+1)
			}
		}
		return "w5"
	}
}

// TestFleet installs a bundle of four objects on simulated clusters, and upgrades them in five waves, while 1 % of the clusters do not
// answer, 1 % refuse connections and 2 % deny the upgrade.
func TestFleet(t *testing.T) {
	if os.Getenv("SATCHEL_FULL") == "" && os.Getenv(clustersVariable) == "" {
		t.Skip("takes two minutes: for the release suite, SATCHEL_FULL=1, or with " + clustersVariable + "=NUMBER of clusters")
	}
	ctrl.SetLogger(logr.Discard())
	n, kinds := size(t), kindsOfBundle(t)
	w := startWorld(t, Options{Clusters: n})
	ctx := t.Context()
	must(t, w.Publish(ctx, "v1", kinds.manifests("v1")...))
	strategy := strategyOf(n)
	strategy.Waves[0].Soak.Duration = max(strategy.Waves[0].Soak.Duration, time.Duration(kinds)*2*time.Second)
	must(t, w.Create(ctx, strategy))

	began := time.Now()
	installed := must1(w.Await(ctx, "the installation", limit(n), completeWith(1)))(t)
	t.Logf("installed on %s clusters in %s, %.1f requests a cluster", installed.Status.Progress, time.Since(began).Round(100*time.Millisecond), w.perCluster())

	faults := breakSome(w, n)
	before := w.perCluster()
	began = time.Now()
	must(t, w.Publish(ctx, "v2", kinds.manifests("v2")...))
	soaking(t, w, n, kinds)
	upgraded := must1(w.Await(ctx, "the upgrade", limit(n), completeWith(2)))(t)
	t.Logf("upgraded %s clusters in %s, %.1f requests a cluster; %d do not answer, %d refuse, %d deny", upgraded.Status.Progress,
		time.Since(began).Round(100*time.Millisecond), w.perCluster()-before, faults.silent, faults.refuse, faults.deny)
	checkUpgraded(t, w, faults)
	status, err := json.Marshal(upgraded.Status)
	must(t, err)
	t.Logf("the status has %d bytes", len(status))
	if len(status) > 20_000 {
		t.Errorf("the status has %d bytes, more than 20,000", len(status))
	}
	for _, p := range w.Controllers {
		peak, err := p.PeakMiB()
		must(t, err)
		t.Logf("%s: at most %.0f MiB", p.Name, peak)
	}
	decisions(t, w)
	watches := must1(w.process(t, "bundle-deployment-controller").Sum(ctx, "satchel_watches"))(t)
	gaps := must1(w.process(t, "bundle-deployment-controller").Sum(ctx, "satchel_watch_gaps"))(t)
	t.Logf("%d kinds a cluster: %.0f watches, %.0f collections are compared at the interval", kinds, watches, gaps)
	if n > smallest {
		atRest(t, w)
	}
}

// decisions wants nearly all decisions of the rollout controller to take at most a tenth of a second, rendering and reading included. The bounds
// of the metric allow no exact percentile: the one above a tenth of a second is half a second.
func decisions(t *testing.T, w *World) {
	t.Helper()
	took := must1(w.process(t, "bundle-rollout-controller").Histogram(t.Context(), "satchel_rollout_decision_seconds"))(t)
	if took.GetSampleCount() == 0 {
		t.Error("no decision was measured")
		return
	}
	for _, bucket := range took.GetBucket() {
		if share := float64(bucket.GetCumulativeCount()) / float64(took.GetSampleCount()); share >= 0.99 {
			t.Logf("%d decisions, %.1f ms on average, 99 %% within %.0f ms", took.GetSampleCount(), 1000*took.GetSampleSum()/float64(took.GetSampleCount()), 1000*bucket.GetUpperBound())
			if bucket.GetUpperBound() > 0.6 {
				t.Errorf("99 %% of the decisions need as much as %.0f ms", 1000*bucket.GetUpperBound())
			}
			return
		}
	}
	t.Error("decisions take longer than the metric has bounds for")
}

// startWorld builds the controllers and starts the simulation.
func startWorld(t *testing.T, o Options) *World {
	t.Helper()
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", dir+"/", "./cmd/bundle-source-controller", "./cmd/bundle-deployment-controller", "./cmd/bundle-rollout-controller")
	build.Dir = installation.Root()
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the controllers: %v\n%s", err, output)
	}
	o.Ring, o.Dir, o.Bin, o.Progress = rings(o.Clusters), dir, dir, os.Stderr
	w, err := Start(t.Context(), o)
	t.Cleanup(func() {
		if t.Failed() {
			for _, p := range w.Controllers {
				showEnd(t, p)
			}
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	must(t, err)
	return w
}

// showEnd logs the end of the log of a controller.
func showEnd(t *testing.T, p *Process) {
	t.Helper()
	const most = 4000
	text, err := os.ReadFile(p.Log)
	if err != nil {
		t.Error(err)
	}
	t.Logf("%s: ...%s", p.Name, text[max(0, len(text)-most):])
}

// strategyOf tolerates the failures that the test makes, in each wave.
func strategyOf(n int) v1alpha1.RolloutStrategy {
	tolerant := func(w *v1alpha1.RolloutWave) {
		w.MaxConcurrency = new(intstr.FromString("25%"))
		w.MaxFailures = new(intstr.FromString("50%"))
	}
	first := func(w *v1alpha1.RolloutWave) {
		tolerant(w)
		w.Soak = v1alpha1.Duration{Duration: 5 * time.Second}
	}
	s := v1alpha1.RolloutStrategy{
		Waves:    []v1alpha1.RolloutWave{Wave("w1", first), Wave("w2", tolerant), Wave("w3", tolerant), Wave("w4", tolerant), Wave("w5", tolerant)},
		MinReady: v1alpha1.Duration{Duration: time.Second}, ProgressDeadline: v1alpha1.Duration{Duration: 15 * time.Second},
		Unreachable: v1alpha1.UnreachableClusters{Policy: v1alpha1.UnreachableSkip, After: v1alpha1.Duration{Duration: 5 * time.Second}},
	}
	if n > 2*smallest { // a slow machine makes nothing overdue
		s.ProgressDeadline = v1alpha1.Duration{Duration: time.Minute}
	}
	return s
}

// completeWith wants the newest revision to be the one of so many runs, on all clusters that can get it.
func completeWith(run int64) func(*v1alpha1.BundleRollout) bool {
	return func(o *v1alpha1.BundleRollout) bool {
		return o.Status.Run == run && o.Status.CurrentRevision != nil && o.Status.CurrentRevision.Digest == o.Status.UpdateRevision.Digest
	}
}

// broken counts clusters with faults, and holds the names of those that keep the former version.
type broken struct {
	silent, refuse, deny int
	former               map[string]bool
}

// breakSome gives 1 % of the clusters no answer, 1 % no connection, and 2 % a policy that denies v2: of the later waves, at least one each.
func breakSome(w *World, n int) broken {
	b := broken{silent: max(n/100, 1), refuse: max(n/100, 1), deny: max(n/50, 1), former: map[string]bool{}}
	last := n - 2 // the last cluster stays whole, for the test of drift
	take := func(count int, f Fault) {
		for range count {
			w.Clusters[last].Break(f)
			b.former[w.Clusters[last].Name] = true
			last -= max(n/(2*(b.silent+b.refuse+b.deny)), 1)
		}
	}
	take(b.silent, Fault{Silent: true})
	take(b.refuse, Fault{Refuses: true})
	take(b.deny, Fault{Denies: "v2"})
	return b
}

// soaking deletes an object of each kind on the last cluster while the first wave soaks, and wants it back in the version of that cluster.
func soaking(t *testing.T, w *World, n int, kinds kindCount) {
	t.Helper()
	must1(w.Await(t.Context(), "the first wave to soak", limit(n), func(o *v1alpha1.BundleRollout) bool {
		return o.Status.Run == 2 && Reason(o) == v1alpha1.ReasonSoaking
	}))(t)
	var took []time.Duration
	for _, object := range kinds.objects(w.Clusters[n-1].Name) {
		must(t, w.Client.Delete(t.Context(), object))
		began := time.Now()
		for w.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object) != nil {
			if time.Since(began) > time.Minute {
				t.Fatalf("the drift of a late wave (%s) was not corrected while the first one soaked", object.GetKind())
			}
			time.Sleep(5 * time.Millisecond) //nolint:forbidigo // the time until an object is back is measured
		}
		took = append(took, time.Since(began).Round(time.Millisecond))
		if got := versionOf(object); got != "v1" {
			t.Errorf("the cluster of a late wave got %s (%s) while the first wave soaked", got, object.GetKind())
		}
	}
	if got := must1(w.Get(t.Context()))(t); Reason(got) != v1alpha1.ReasonSoaking {
		t.Errorf("the first wave does not soak any more: %s", Reason(got))
	}
	slices.Sort(took)
	t.Logf("drift of a late wave was corrected while the first wave soaked: %s", took)
}

// checkUpgraded wants the new version on all clusters but those with faults.
func checkUpgraded(t *testing.T, w *World, b broken) {
	t.Helper()
	for _, c := range w.Clusters {
		want := "v2"
		if b.former[c.Name] {
			want = "v1"
		}
		if got, err := w.VersionOn(t.Context(), c.Name); err != nil || got != want {
			t.Errorf("cluster %s has version %s (%v), want %s", c.Name, got, err, want)
		}
	}
}

// perCluster is how many requests a cluster got so far, on average.
func (w *World) perCluster() float64 {
	var all int64
	for _, c := range w.Clusters {
		all += c.Requests()
	}
	return float64(all) / float64(len(w.Clusters))
}

// atRest repairs all clusters, and counts the requests of a minute when all have the version.
func atRest(t *testing.T, w *World) {
	t.Helper()
	for _, c := range w.Clusters {
		c.Break(Fault{})
	}
	must1(w.Await(t.Context(), "the late clusters", limit(len(w.Clusters)), func(o *v1alpha1.BundleRollout) bool {
		return o.Status.Clusters != nil && int(o.Status.Clusters.Updated) == len(w.Clusters)
	}))(t)
	const minute = time.Minute
	time.Sleep(minute / 6) //nolint:forbidigo // what was under way ends
	asked := w.Proxy.Asked()
	time.Sleep(minute) //nolint:forbidigo // a rate is measured
	var watches, others int64
	for what, count := range w.Proxy.Asked() {
		if count -= asked[what]; count == 0 {
			continue
		}
		t.Logf("at rest: %d times %s", count, what)
		if strings.HasPrefix(what, "WATCH ") {
			watches += count
		} else {
			others += count
		}
	}
	t.Logf("at rest: %.3f watches of a cluster are reopened in a minute", float64(watches)/float64(len(w.Clusters)))
	if others > 0 {
		t.Errorf("at rest: %d requests in a minute are no watches", others)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// must1 is must for a call with a result.
func must1[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		must(t, err)
		return value
	}
}
