// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/rollout/windows"
)

// member is a cluster of a simulated fleet: every version of its BundleDeployment, the newest last, and what becomes of revisions.
type member struct {
	name     string
	order    string
	wave     int
	label    int // changes the rendered spec
	selected bool
	versions []version
	fails    map[string]bool // revisions that stall
	sleeps   map[string]bool // revisions that never become ready
	refuses  bool            // it cannot be reached
	invalid  bool            // its labels give no spec
	leads    []int           // the clusters that its kubeconfigs lead to; the last one is in the spec of the rollout
	object   int             // which object stands for it
	created  time.Time       // since when
}

// version is the BundleDeployment at a time; nil before it exists.
type version struct {
	child *Child
	away  time.Time // since when it cannot be reached
	on    int       // the cluster that its objects are in; 0 while there are none
	kube  int       // the index of its kubeconfig
	// startedAt is when it was started last, and changedAt when it became ready or ceased to be, by fleet.passed.
	startedAt, changedAt time.Duration
	with                 int // the object that stood for it when it was ready last
}

func (m *member) newest() version { return m.versions[len(m.versions)-1] }

// change writes a version.
func (m *member) change(edit func(*version)) {
	next := m.newest()
	if next.child != nil {
		copied := *next.child
		next.child = &copied
	}
	edit(&next)
	m.versions = append(m.versions, next)
}

// fleet is a simulated fleet: what is true, and the processes that watch it.
type fleet struct {
	random    *rand.Rand
	now       time.Time
	passed    time.Duration // whatever the clock says
	gained    time.Duration // by which the clock was set forward
	clockSets int
	wentBack  bool // the clock was set back
	members   []*member
	strategy  *Strategy
	status    v1alpha1.BundleRolloutStatus
	version   int // of the status
	wanted    string
	suspended bool
	finish    bool
	retries   bool
	approvals bool
	abandon   bool
	unlisted  bool // clusters cannot be listed: the last ones are used
	processes []*process
	// completed are the waves that were completed, by run.
	completed map[string]bool
	// succeeded are those that succeeded, and when: passed and gained.
	succeeded map[string]time.Duration
	decisions int
	replaced  int
	moved     int  // clusters out of reach with a start that has not ended, at the end
	halted    bool // no cluster is started because too many have failed
	why       map[string]int
	lastWhy   string
	problem   string
}

// process is a rollout controller: it sees versions late, and may have an old status.
type process struct {
	began   time.Time
	beganAt time.Duration  // by fleet.passed
	seen    map[string]int // the index of the version that its cache has
	status  v1alpha1.BundleRolloutStatus
	version int
	wrote   int                     // the version of the status that it wrote last
	toDo    []v1alpha1.RolloutStart // what it recorded and did not carry out yet
}

var (
	testStart  = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	neverOpen  = mustWindows(v1alpha1.RolloutWindow{Name: "never", Kind: v1alpha1.WindowAllow, Schedule: "0 0 30 2 *", Duration: v1alpha1.Duration{Duration: time.Hour}})
	testStages = []string{"r1", "r2", "r3"}
)

// setWindows sets the windows of all waves.
func (s *Strategy) setWindows(list windows.List) {
	s.Waves = slices.Clone(s.Waves)
	for i := range s.Waves {
		s.Waves[i].windows = list
	}
}

func (s *Strategy) hasWindows() bool {
	return slices.ContainsFunc(s.Waves, func(w Wave) bool { return len(w.windows) > 0 })
}

func mustWindows(from ...v1alpha1.RolloutWindow) windows.List {
	read, err := windows.Read("windows", from)
	if err != nil {
		panic(err)
	}
	return read
}

func contentOf(revision string) string { return "sha256:content-" + revision }

func (m *member) specOf(revision string) string {
	return fmt.Sprintf("%s-%d-%d", revision, m.label, m.kubeConfig())
}

// kubeConfig is the index of the kubeconfig in the spec of the rollout.
func (m *member) kubeConfig() int { return len(m.leads) - 1 }

// reached is the cluster that the BundleDeployment reaches.
func (m *member) reached() int { return m.leads[m.newest().kube] }

// leadsAway tells whether the kubeconfig in the spec of the rollout leads to another cluster than the one with the objects.
func (m *member) leadsAway() bool {
	return m.newest().on != 0 && m.newest().on != m.leads[m.kubeConfig()]
}

func newFleet(seed uint64) *fleet {
	random := rand.New(rand.NewPCG(seed, 1))
	f := &fleet{random: random, now: testStart, wanted: "r1", retries: true, completed: map[string]bool{}, succeeded: map[string]time.Duration{}, why: map[string]int{}}
	f.strategy = f.randomStrategy()
	for i := range 1 + random.IntN(8) {
		m := &member{
			name: fmt.Sprintf("c%d", i), order: fmt.Sprint(random.IntN(3)), wave: random.IntN(len(f.strategy.Waves)), selected: f.chance(90),
			versions: []version{{}}, fails: map[string]bool{}, sleeps: map[string]bool{}, leads: []int{1}, object: 1, created: testStart.Add(-time.Hour),
		}
		for _, revision := range testStages {
			m.fails[revision], m.sleeps[revision] = f.chance(12), f.chance(6)
		}
		f.members = append(f.members, m)
	}
	f.processes = []*process{f.newProcess()}
	return f
}

func (f *fleet) chance(percent int) bool { return f.random.IntN(100) < percent }

func (f *fleet) randomStrategy() *Strategy {
	actions := []v1alpha1.RolloutFailureAction{v1alpha1.RolloutPause, v1alpha1.RolloutRollback, v1alpha1.RolloutContinue}
	policies := []v1alpha1.UnreachablePolicy{v1alpha1.UnreachableSkip, v1alpha1.UnreachableWait, v1alpha1.UnreachableFail}
	approvals := []v1alpha1.WaveApproval{v1alpha1.WaveApprovalNone, v1alpha1.WaveApprovalBefore, v1alpha1.WaveApprovalAfter, v1alpha1.WaveApprovalBoth}
	s := &Strategy{
		minReady: 30 * time.Second, progressDeadline: 15 * time.Minute, unreachableAfter: 5 * time.Minute,
		unreachable: policies[f.random.IntN(3)], onFailure: actions[f.random.IntN(3)],
	}
	for i := range 1 + f.random.IntN(3) {
		s.Waves = append(s.Waves, Wave{
			Name:           fmt.Sprintf("w%d", i),
			maxConcurrency: amount{value: 1 + f.random.IntN(3)}, maxUnavailable: amount{value: 1 + f.random.IntN(4)}, maxFailures: amount{value: f.random.IntN(2)},
			soak: time.Duration(f.random.IntN(2)) * 10 * time.Minute, approval: approvals[f.random.IntN(4)],
		})
	}
	return s
}

// newProcess lists everything once past the cache, as the contract of the package says.
func (f *fleet) newProcess() *process {
	p := &process{began: f.now, beganAt: f.passed, seen: map[string]int{}}
	f.refresh(p)
	f.list(p)
	return p
}

// list reads all BundleDeployments past the cache.
func (f *fleet) list(p *process) {
	for _, m := range f.members {
		p.seen[m.name] = len(m.versions) - 1
	}
	p.wrote = p.version
}

func (f *fleet) refresh(p *process) {
	p.status, p.version = *f.status.DeepCopy(), f.version
}

// perturb changes the world at random.
func (f *fleet) perturb() {
	m := f.members[f.random.IntN(len(f.members))]
	switch f.random.IntN(22) {
	case 0:
		f.suspended = !f.suspended
	case 1:
		f.wanted = testStages[f.random.IntN(len(testStages))]
	case 2:
		f.approvals = !f.approvals
	case 3:
		if f.strategy.hasWindows() {
			f.strategy.setWindows(nil)
		} else {
			f.strategy.setWindows(neverOpen)
		}
	case 4:
		f.join(m, !m.selected)
	case 5:
		m.refuses = !m.refuses
	case 6:
		m.label++
	case 7:
		m.wave = f.random.IntN(len(f.strategy.Waves))
		m.label++
	case 8:
		m.fails[testStages[f.random.IntN(3)]] = false
	case 9:
		f.hold(m)
	case 10:
		wave := &f.strategy.Waves[f.random.IntN(len(f.strategy.Waves))]
		wave.maxFailures.value = f.random.IntN(3)
		wave.maxUnavailable.value = 1 + f.random.IntN(4)
		wave.maxConcurrency.value = 1 + f.random.IntN(3)
	case 11:
		f.finish = !f.finish
	case 12: // it gets sick
		if m.newest().child != nil && m.newest().child.Ready {
			m.change(func(v *version) { v.child.Ready, v.child.ReadySince, v.changedAt = false, f.now, f.passed })
		}
	case 13, 14:
		if len(f.processes) == 1 {
			f.processes = append(f.processes, f.newProcess())
		} else {
			f.processes = f.processes[1:]
		}
	case 16:
		m.invalid = !m.invalid
	case 17: // another control plane, with or without another object that stands for it
		m.leads[m.newest().kube] = 1 + f.random.IntN(3)
		if f.chance(50) {
			m.object, m.created = m.object+1, f.now
		}
	case 18:
		m.object, m.created = m.object+1, f.now
	case 19:
		f.abandon, f.unlisted = f.chance(70), f.chance(20)
	case 20: // another kubeconfig in the spec of the rollout
		m.leads = append(m.leads, 1+f.random.IntN(3))
	case 21:
		f.setClock()
	case 15:
		f.processes = []*process{f.newProcess()}
	}
}

func (f *fleet) hold(m *member) {
	if m.newest().child != nil {
		m.change(func(v *version) { v.child.Suspended = !v.child.Suspended })
	}
}

// join selects a cluster, or makes it vanish with its BundleDeployment.
func (f *fleet) join(m *member, selected bool) {
	m.selected = selected
	if selected {
		return
	}
	m.change(func(v *version) { *v = version{} })
	for _, p := range f.processes {
		p.toDo = slices.DeleteFunc(p.toDo, func(s v1alpha1.RolloutStart) bool { return s.Cluster == m.name })
		p.seen[m.name] = len(m.versions) - 1
	}
	f.status.Starting = slices.DeleteFunc(f.status.Starting, func(s v1alpha1.RolloutStart) bool { return s.Cluster == m.name })
	f.version++
}

// pass lets time pass, in which the BundleDeployments reconcile.
func (f *fleet) pass(longest time.Duration) {
	by := time.Second + time.Duration(f.random.Int64N(int64(longest))).Truncate(time.Second)
	f.now, f.passed = f.now.Add(by), f.passed+by
	for _, m := range f.members {
		if m.newest().child != nil {
			f.reconcile(m)
		}
	}
}

// reconcile is what the deployment controller does.
func (f *fleet) reconcile(m *member) {
	c := m.newest().child
	switch {
	case m.refuses && m.newest().away.IsZero():
		m.change(func(v *version) {
			v.away, v.child.Ready, v.child.ReadySince, v.child.Reason, v.changedAt = f.now, false, f.now, v1alpha1.ReasonClusterUnreachable, f.passed
			v.child.OtherTarget = false
		})
	case m.refuses:
	case m.newest().on != 0 && m.newest().on != m.reached():
		if !c.OtherTarget || c.ObservedGeneration != c.Generation {
			m.change(func(v *version) {
				v.child.OtherTarget, v.child.Ready, v.child.ReadySince, v.child.Reason, v.child.Stalled = true, false, f.now, v1alpha1.ReasonTargetChanged, true
				v.child.ObservedGeneration, v.changedAt = c.Generation, f.passed
			})
		}
	case c.OtherTarget: // it leads to the former cluster again
		m.change(func(v *version) { v.child.OtherTarget, v.child.Reason, v.child.Stalled = false, "", false })
	case !m.newest().away.IsZero():
		m.change(func(v *version) { v.away, v.child.Reason = time.Time{}, "" })
	case c.Suspended:
	case c.ObservedGeneration != c.Generation, c.Tried != c.Generation:
		m.change(func(v *version) {
			v.on = m.reached()
			v.child.ObservedGeneration, v.child.Tried, v.child.Outcome = c.Generation, c.Generation, ""
			v.child.Content, v.child.Ready, v.child.ReadySince, v.child.Stalled, v.changedAt = contentOf(c.Revision), false, f.now, false, f.passed
		})
	case m.fails[c.Revision] && !c.Stalled:
		m.change(func(v *version) { v.child.Stalled = true })
	case !m.fails[c.Revision] && c.Stalled:
		m.change(func(v *version) { v.child.Stalled = false })
	case !c.Ready && !m.fails[c.Revision] && !m.sleeps[c.Revision] && f.chance(60):
		m.change(func(v *version) {
			v.child.Ready, v.child.ReadySince, v.child.Outcome, v.child.Finished = true, f.now, v1alpha1.OutcomeHealthy, f.now
			v.child.LastHealthy, v.with, v.changedAt = f.now, m.object, f.passed
		})
	}
	if handled := f.now.UTC().Format(time.RFC3339); c.Handled != handled && f.chance(50) {
		m.change(func(v *version) { v.child.Handled = handled })
	}
}

// input is what a process decides on.
func (f *fleet) input(p *process) *Input {
	in := &Input{
		Namespace: "fleet", Rollout: "apps", Now: f.now, Began: p.began, Strategy: f.strategy, Suspended: f.suspended,
		Update: testRevision(p.status.UpdateRevision.Name), Return: Returns(&p.status), Run: p.status.Run, Starts: p.status.Starts,
		Starting: p.status.Starting, Waves: p.status.Waves, Abandon: f.abandon, Known: !f.unlisted,
	}
	if current := p.status.CurrentRevision; current != nil {
		in.Current = new(testRevision(current.Name))
	}
	for _, m := range f.members {
		if !m.selected {
			continue
		}
		seen := m.versions[p.seen[m.name]]
		fact := Fact{Name: m.name, Wave: m.wave, Order: m.order, Child: seen.child, UnreachableSince: seen.away, Wanted: m.specOf(in.Update.Name), ClusterUID: fmt.Sprint(m.object), ClusterCreated: m.created}
		fact.OtherKubeConfig = seen.child != nil && seen.kube != m.kubeConfig()
		if m.invalid {
			fact.Invalid = "the variable region has no value"
		}
		if in.Current != nil {
			fact.WantedCurrent = m.specOf(in.Current.Name)
		}
		in.Clusters = append(in.Clusters, fact)
	}
	if f.approvals {
		in.Approvals = f.allApprovals(in)
	}
	return in
}

func (f *fleet) allApprovals(in *Input) []Approval {
	var found []Approval
	for i := range f.strategy.Waves {
		for _, when := range []string{beforeWave, afterWave} {
			found = append(found, Approval{Name: "a", Plan: planOf(in, i, when)})
		}
	}
	return found
}

func planOf(in *Input, wave int, when string) string {
	plan := wavePlan{Namespace: in.Namespace, Rollout: in.Rollout, UID: in.UID, Wave: in.Strategy.Waves[wave].Name, When: when, Revision: in.Update.Digest, Run: in.Run}
	if in.Current != nil {
		plan.Current = in.Current.Digest
	}
	return plan.digest()
}

func testRevision(name string) Revision {
	return Revision{Name: name, Digest: "sha256:" + name, Content: contentOf(name)}
}

// reconcileRollout is one turn of a process: it carries out what is recorded, steers, decides, records and acts; and it may be killed
// anywhere in between.
func (f *fleet) reconcileRollout(p *process) {
	for _, m := range f.members {
		p.seen[m.name] = min(len(m.versions)-1, p.seen[m.name]+f.random.IntN(3))
	}
	if f.chance(80) {
		f.refresh(p)
	}
	if p.version != p.wrote {
		f.list(p) // another process wrote the status
	}
	f.forget(p)
	if !f.suspended {
		f.act(p, append(slices.Clone(p.toDo), p.status.Starting...))
	}
	wanted := v1alpha1.RolloutRevision{Name: f.wanted, Digest: "sha256:" + f.wanted}
	course := Course{Status: &p.status, Wanted: &wanted, HistoryLimit: 5, Now: metav1.Time{Time: f.now}, Retry: f.retries && f.chance(3)}
	Steer(course)
	in := f.input(p)
	out := Decide(in)
	if p.version != f.version {
		f.refresh(p) // its write is refused
		return
	}
	f.check(p, in, out)
	p.status.Waves, p.status.Starting = out.Waves, append(slices.Clone(p.status.Starting), out.Starts...)
	p.status.Starts += int64(len(out.Starts))
	Settle(course, out)
	f.status, p.toDo = *p.status.DeepCopy(), out.Starts
	f.version++
	p.version, p.wrote = f.version, f.version
	if f.chance(85) { // else it is killed here, or is slow
		f.act(p, p.toDo)
		f.replace(p, out)
	}
}

// replace deletes BundleDeployments of clusters that were rebuilt, unless they changed since the process has seen them.
func (f *fleet) replace(p *process, out *Decision) {
	for _, one := range out.Rebuilt {
		m := f.member(one.Cluster)
		if !one.Replace || p.seen[m.name] != len(m.versions)-1 || f.chance(10) {
			continue
		}
		f.replaced++
		if m.newest().with == m.object && !f.wentBack { // the proof compares two times
			f.fail("R31: %s is replaced, and was ready with the object that stands for it", m.name)
		}
		m.change(func(v *version) { *v = version{} })
	}
}

// forget removes recorded starts that the process sees on the BundleDeployment.
func (f *fleet) forget(p *process) {
	p.status.Starting = slices.DeleteFunc(p.status.Starting, func(s v1alpha1.RolloutStart) bool {
		m := f.member(s.Cluster)
		child := m.versions[p.seen[m.name]].child
		return child != nil && child.Start >= s.Start
	})
}

func (f *fleet) member(name string) *member {
	return f.members[slices.IndexFunc(f.members, func(m *member) bool { return m.name == name })]
}

// act carries recorded starts out. A write is refused where the BundleDeployment is another version than the process has seen.
func (f *fleet) act(p *process, starts []v1alpha1.RolloutStart) {
	for _, s := range starts {
		m := f.member(s.Cluster)
		if f.chance(10) {
			return // killed
		}
		if p.seen[m.name] != len(m.versions)-1 {
			continue // a conflict
		}
		child := m.newest().child
		if child != nil && child.Start >= s.Start || !m.selected {
			continue
		}
		before := child
		m.change(func(v *version) {
			if v.child == nil {
				v.child = &Child{ObservedGeneration: -1}
			}
			v.kube = m.kubeConfig()
			v.child.ClusterUID = StartsWith(before, fmt.Sprint(m.object), m.created)
			v.child.Revision, v.child.SpecHash, v.child.Start, v.child.Started = s.Revision, m.specOf(s.Revision), s.Start, f.now
			v.child.Generation++
			v.startedAt = f.passed
		})
	}
}
