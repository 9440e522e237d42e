// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// live is an object of the model: its UID, and the deployment that has it; "" if it is orphaned.
type live struct {
	uid   int
	owner string
}

// model is a namespace with deployments that are reconciled as the controller does: refused while another one has an object, else
// applied, and pruned in a later reconcile. A kill loses the index.
type model struct {
	random      *rand.Rand
	index       *Index
	now         time.Time
	uids        int
	objects     map[string]live
	deployments []v1alpha1.BundleDeployment
	sources     []v1alpha1.BundleSource
	contents    map[string][]string // of each revision
}

func idOf(name string) inventory.ID {
	return inventory.ID{Kind: "Secret", Namespace: "shop", Name: name}
}

func newModel(seed uint64, count int) *model {
	m := &model{random: rand.New(rand.NewPCG(seed, 55)), index: &Index{}, now: time.Unix(1e9, 0), objects: map[string]live{}, contents: map[string][]string{}} //nolint:gosec // a fixed sequence
	for i := range count {
		name := fmt.Sprint("d", i)
		d := v1alpha1.BundleDeployment{}
		d.Namespace, d.Name, d.UID, d.Generation = "shop", name, types.UID(name), 1
		d.Spec.SourceRef = &v1alpha1.SourceReference{Kind: v1alpha1.BundleSourceKind, Name: name}
		s := v1alpha1.BundleSource{}
		s.Namespace, s.Name = "shop", name
		s.Spec.Sources = []v1alpha1.Source{{Git: &v1alpha1.GitSource{URL: "https://git.example.org/shop", Path: name}}}
		m.deployments, m.sources = append(m.deployments, d), append(m.sources, s)
	}
	return m
}

// commit assigns the objects at random. Each source fetches it some time later.
func (m *model) commit(number int, names []string) (assigned map[string]int) {
	assigned = map[string]int{}
	contents := make([][]string, len(m.deployments))
	for _, name := range names {
		at := m.random.IntN(len(m.deployments))
		assigned[name] = at
		contents[at] = append(contents[at], name)
	}
	for at := range m.sources {
		m.contents[fmt.Sprintf("%d/%d", number, at)] = append(contents[at], fmt.Sprint("own", at))
	}
	return assigned
}

func (m *model) fetch(at, number int) {
	s := &m.sources[at]
	s.Status.Artifact = &meta.Artifact{Revision: fmt.Sprintf("%d/%d", number, at)}
	s.Status.Resolved = []v1alpha1.ResolvedSource{{Digest: fmt.Sprint("sha1:", number)}}
}

// reconcile is one reconcile of a deployment. A kill may end it between two writes.
func (m *model) reconcile(at int, killed bool) {
	d := &m.deployments[at]
	artifact := m.sources[at].Status.Artifact
	if artifact == nil {
		return
	}
	desired := m.contents[artifact.Revision]
	converted := d.Status.Attempted.Revision == artifact.Revision
	d.Status.Attempted.Revision = artifact.Revision
	if !converted && m.random.IntN(2) == 0 { // it is being converted, and what it wants is not known yet
		conditions.MarkUnknown(d, meta.ReadyCondition, meta.ProgressingReason, "converting")
		return
	}
	var wants []inventory.ID
	for _, name := range desired {
		if owner := m.objects[name].owner; owner != "" && owner != d.Name {
			wants = append(wants, idOf(name))
		}
	}
	key, cluster := client.ObjectKeyFromObject(d), ClusterOf(d, "here")
	m.index.Want(key, cluster, wants)
	if len(wants) > 0 {
		conditions.MarkFalse(d, meta.ReadyCondition, v1alpha1.ReasonPlanRefused, "refused")
		m.prune(at, desired, true)
		m.saw(d, artifact.Revision)
		return
	}
	for _, name := range desired {
		object, exists := m.objects[name]
		if !exists {
			m.uids++
			object.uid = m.uids
		}
		object.owner = d.Name
		m.objects[name] = object
		if killed && m.random.IntN(2) == 0 {
			return
		}
	}
	conditions.MarkTrue(d, meta.ReadyCondition, v1alpha1.ReasonSucceeded, "applied")
	d.Status.Healthy.Revision = artifact.Revision
	m.prune(at, desired, false)
	if !killed {
		m.saw(d, artifact.Revision)
	}
}

func (m *model) saw(d *v1alpha1.BundleDeployment, revision string) {
	m.index.Saw(client.ObjectKeyFromObject(d), State{UID: d.UID, Generation: d.Generation, Revision: revision})
}

// prune deletes what left the bundle, or releases it to those that want it; nothing else of a refused plan.
func (m *model) prune(at int, desired []string, refused bool) {
	d := &m.deployments[at]
	decision := m.index.decide(d, "here", m.deployments, m.sources, m.now)
	for _, name := range slices.Sorted(maps.Keys(m.objects)) {
		object := m.objects[name]
		if object.owner != d.Name || slices.Contains(desired, name) {
			continue
		}
		switch to, waits := decision.Of(idOf(name)); {
		case to != "":
			object.owner = ""
			m.objects[name] = object
		case waits == "" && !refused:
			delete(m.objects, name)
		}
	}
}

// TestF55ModelLosesNothing assigns objects to deployments at random, 2,000 times, fetches and reconciles in any order, and kills the
// controller in between: each object keeps its UID, and is where the last commit has it.
func TestF55ModelLosesNothing(t *testing.T) {
	const moves, killEvery = 2000, 7
	names := []string{"a", "b", "c", "e", "f", "g"}
	m := newModel(55, 4)
	before := map[string]int{}
	kills := 0
	for number := range moves {
		assigned := m.commit(number, names)
		left := m.random.Perm(len(m.deployments))
		for step := 0; ; step++ {
			m.now = m.now.Add(time.Second)
			if step > 400 {
				t.Fatalf("move %d does not end: %v, wanted %v", number, m.objects, assigned)
			}
			if len(left) > 0 && m.random.IntN(2) == 0 {
				m.fetch(left[0], number)
				left = left[1:]
			}
			killed := m.random.IntN(killEvery) == 0
			m.reconcile(m.random.IntN(len(m.deployments)), killed)
			if killed {
				m.index = &Index{}
				kills++
			}
			if len(left) == 0 && m.settled(assigned) {
				break
			}
		}
		for _, name := range names {
			if was, known := before[name]; known && was != m.objects[name].uid {
				t.Fatalf("move %d: %s was deleted and created again", number, name)
			}
			before[name] = m.objects[name].uid
		}
	}
	t.Logf("%d moves, %d kills, no UID lost", moves, kills)
}

func (m *model) settled(assigned map[string]int) bool {
	for name, at := range assigned {
		if m.objects[name].owner != m.deployments[at].Name {
			return false
		}
	}
	return true
}

// What is wanted in another namespace, or on another cluster, is not handed over; of two that want an object the first one gets it.
func TestWanted(t *testing.T) {
	here, there := Cluster{Target: "1"}, Cluster{Target: "1", Remote: true}
	giver := types.NamespacedName{Namespace: "shop", Name: "giver"}
	for name, c := range map[string]struct {
		by      types.NamespacedName
		cluster Cluster
		id      inventory.ID
		found   bool
	}{
		"the same namespace":                     {types.NamespacedName{Namespace: "shop", Name: "taker"}, here, idOf("a"), true},
		"another namespace":                      {types.NamespacedName{Namespace: "other", Name: "taker"}, here, idOf("a"), false},
		"a cluster that pretends to be this one": {types.NamespacedName{Namespace: "shop", Name: "taker"}, there, idOf("a"), false},
		"another cluster":                        {types.NamespacedName{Namespace: "shop", Name: "taker"}, Cluster{Target: "2"}, idOf("a"), false},
		"another object":                         {types.NamespacedName{Namespace: "shop", Name: "taker"}, here, idOf("b"), false},
		"the giver itself":                       {giver, here, idOf("a"), false},
	} {
		t.Run(name, func(t *testing.T) {
			var x Index
			x.Want(giver, here, []inventory.ID{idOf("a")}) // it took the object itself before
			x.Want(c.by, c.cluster, []inventory.ID{c.id})
			x.Want(types.NamespacedName{Namespace: c.by.Namespace, Name: "later"}, Cluster{Target: "3"}, []inventory.ID{c.id})
			if by, found := x.Wanted(giver, here, idOf("a")); found != c.found || found && by != c.by {
				t.Errorf("wanted by %s: %v, want %v", by, found, c.found)
			}
			x.Forget(c.by)
			if _, found := x.Wanted(giver, here, idOf("a")); found {
				t.Error("it is still wanted")
			}
		})
	}
}
