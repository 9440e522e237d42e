// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/manager"
	"github.com/satchel-dev/satchel/internal/rollout"
	"github.com/satchel-dev/satchel/internal/rollout/revision"
)

// journal is every version of the rollout and of its BundleDeployments, as watches deliver them.
type journal struct {
	mu      sync.Mutex
	entries []entry
	stop    func()
}

// entry is one version of an object: one of both.
type entry struct {
	version    uint64 // in the order of the writes of the API server, for all kinds
	at         time.Time
	rollout    *v1alpha1.BundleRollout
	deployment *v1alpha1.BundleDeployment
}

// record begins to watch.
func (w *World) record(t *testing.T) *journal {
	t.Helper()
	reader, err := client.NewWithWatch(w.ControlPlane.RESTConfig(), client.Options{Scheme: manager.Scheme()})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	j := &journal{}
	var running sync.WaitGroup
	for _, list := range []client.ObjectList{new(v1alpha1.BundleRolloutList), new(v1alpha1.BundleDeploymentList)} {
		watcher, err := reader.Watch(ctx, list, client.InNamespace(Namespace))
		must(t, err)
		running.Go(func() {
			for event := range watcher.ResultChan() {
				j.add(event)
			}
			if ctx.Err() == nil {
				t.Error("a watch of the journal ended early")
			}
		})
	}
	j.stop = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(j.stop)
	return j
}

func (j *journal) add(event watch.Event) {
	object, isObject := event.Object.(client.Object)
	if !isObject {
		return
	}
	one := entry{at: time.Now()}
	one.version, _ = strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	switch typed := object.(type) {
	case *v1alpha1.BundleRollout:
		one.rollout = typed
	case *v1alpha1.BundleDeployment:
		one.deployment = typed
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, one)
}

// history is what is known while the journal is read.
type history struct {
	t        *testing.T
	deadline time.Duration
	waveOf   map[string]int
	most     []int // starts that may be out at once, by wave
	// recorded are all starts that were recorded, by their number.
	recorded map[int64]v1alpha1.RolloutStart
	// started is the last start that was seen on a BundleDeployment, and out are those that have not ended, since when.
	started map[string]int64
	out     map[string]time.Time
	highest []int // most starts that were out at once, by wave
}

// check checks the invariants over all that was written:
//
//	each start of a BundleDeployment was recorded before, with its cluster and revision, and numbers are used once
//	its source is that of the revision which was recorded
//	no start with the revision of the run is recorded for a wave while an earlier one is not complete
//	no more starts of a wave are out at once than maxConcurrency
func (j *journal) check(t *testing.T, clusters int) {
	t.Helper()
	j.stop()
	slices.SortStableFunc(j.entries, func(a, b entry) int { return cmp.Compare(a.version, b.version) })
	h := &history{t: t, waveOf: map[string]int{}, recorded: map[int64]v1alpha1.RolloutStart{}, started: map[string]int64{}, out: map[string]time.Time{}}
	strategy := strategyOf(clusters)
	h.deadline = strategy.ProgressDeadline.Duration
	sizes := make([]int, len(strategy.Waves))
	for i := range clusters {
		wave := int(rings(clusters)(i)[1] - '1')
		h.waveOf[ClusterName(i)] = wave
		sizes[wave]++
	}
	for _, size := range sizes {
		h.most = append(h.most, max((size*25+99)/100, 1)) // maxConcurrency of strategyOf
	}
	h.highest = make([]int, len(sizes))
	for i := range j.entries {
		if one := &j.entries[i]; one.rollout != nil {
			h.readRecord(&one.rollout.Status)
		} else {
			h.readStart(one.deployment, one.at)
		}
	}
	t.Logf("%d versions of objects, %d starts; out at once by wave: %v of %v", len(j.entries), len(h.recorded), h.highest, h.most)
	if len(h.recorded) < 2*clusters {
		t.Errorf("only %d starts were recorded: the journal is not complete", len(h.recorded))
	}
}

// readRecord reads the starts that a status records.
func (h *history) readRecord(status *v1alpha1.BundleRolloutStatus) {
	complete := 0
	for complete < len(status.Waves) && status.Waves[complete].CompletionTime != nil {
		complete++
	}
	for _, start := range status.Starting {
		if known, isKnown := h.recorded[start.Start]; isKnown {
			if known != start {
				h.t.Errorf("start %d was recorded as %+v and as %+v", start.Start, known, start)
			}
			continue
		}
		h.recorded[start.Start] = start
		isUpdate := start.Revision == status.UpdateRevision.Name
		isCurrent := status.CurrentRevision != nil && start.Revision == status.CurrentRevision.Name
		switch wave := h.waveOf[start.Cluster]; {
		case !isUpdate && !isCurrent:
			h.t.Errorf("start %d is of revision %s, which is neither that of the run nor the current one", start.Start, start.Revision)
		case isUpdate && !isCurrent && wave > complete:
			h.t.Errorf("start %d of run %d is for %s of wave %d, and wave %d is not complete", start.Start, status.Run, start.Cluster, wave+1, complete+1)
		}
	}
}

// readStart reads the start that a BundleDeployment shows, and whether it has ended: the cluster is ready with it, failed, out of reach or
// overdue. Then another one may begin.
func (h *history) readStart(d *v1alpha1.BundleDeployment, at time.Time) {
	cluster := d.Labels[v1alpha1.ClusterLabel]
	child := rollout.ChildOf(d)
	if child.Start != h.started[cluster] {
		recorded, isRecorded := h.recorded[child.Start]
		switch {
		case !isRecorded:
			h.t.Errorf("%s shows start %d, which was not recorded before", d.Name, child.Start)
		case recorded.Cluster != cluster || recorded.Revision != child.Revision:
			h.t.Errorf("%s shows start %d of revision %s, recorded was %+v", d.Name, child.Start, child.Revision, recorded)
		case child.Start < h.started[cluster]:
			h.t.Errorf("%s shows start %d after start %d", d.Name, child.Start, h.started[cluster])
		}
		h.started[cluster] = child.Start
		if !child.Unreachable() { // else it takes no place
			h.out[cluster] = at
			h.count(h.waveOf[cluster], at)
		}
		return
	}
	if want := revision.SourceName(Rollout, child.Revision); d.Spec.SourceRef == nil || d.Spec.SourceRef.Name != want {
		h.t.Errorf("%s has the source %+v, and was started with %s", d.Name, d.Spec.SourceRef, want)
	}
	isReady := child.Ready && child.ObservedGeneration == child.Generation && child.Tried == child.Generation
	if isReady || child.Stalled || child.Unreachable() {
		delete(h.out, cluster)
	}
}

// count counts the starts of a wave that are out.
func (h *history) count(wave int, now time.Time) {
	out := 0
	for cluster, since := range h.out {
		if now.Sub(since) > h.deadline {
			delete(h.out, cluster)
			continue
		}
		if h.waveOf[cluster] == wave {
			out++
		}
	}
	h.highest[wave] = max(h.highest[wave], out)
	if out > h.most[wave] {
		h.t.Errorf("%d starts of wave %d are out at once, at most %d may be", out, wave+1, h.most[wave])
	}
}
