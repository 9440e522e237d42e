// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

const (
	// repairAim is how soon a change is to be repaired; a test fails at six times that.
	repairAim = time.Second
	// bookkeeping is after how long nothing more follows a repair: longer than a write
	// without a visible change is left alone.
	bookkeeping = 5 * time.Second
)

// driftSize is how much is changed, and for how long others are active afterwards.
type driftSize struct {
	objects, changes int
	activity         time.Duration
}

// driftSizeOf is the size of the issue in the release suite, a scaled-down one else.
// SATCHEL_ACTIVITY is another duration of the activity.
func driftSizeOf(t *testing.T) driftSize {
	t.Helper()
	size := driftSize{200, 60, 5 * time.Second}
	if os.Getenv("SATCHEL_FULL") != "" {
		size = driftSize{2000, 1000, 10 * time.Minute}
	}
	if text := os.Getenv("SATCHEL_ACTIVITY"); text != "" {
		activity, err := time.ParseDuration(text)
		if err != nil {
			t.Fatalf("SATCHEL_ACTIVITY: %v", err)
		}
		size.activity = activity
	}
	return size
}

// drifting is a deployment of objects that other clients change, and what a watch shows of them.
type drifting struct {
	*rig
	namespace string
	random    *rand.Rand
	objects   []target
	seen      *sightings
}

// target is an object of the bundle.
type target struct {
	kind *kind
	name string
}

func (o target) String() string { return o.kind.resource + "/" + o.name }

func (o target) in(namespace string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(o.kind.version)
	object.SetKind(o.kind.name)
	object.SetNamespace(namespace)
	object.SetName(o.name)
	return object
}

// change is what another client did to an object, and when and with what the API server answered.
type change struct {
	target
	what    string
	uid     types.UID // before
	version string    // afterwards; empty when it was deleted
	at      time.Time
}

// patches are the ways to change an object without deleting it.
func (c *change) patch() string {
	switch c.what {
	case "edit":
		return c.kind.edit
	case "labels stripped":
		return `{"metadata":{"labels":null}}`
	}
	return `{"metadata":{"managedFields":[{}]}}`
}

var damages = []string{"edit", "deletion", "labels stripped", "managedFields stripped"}

// TestF26RandomDrift changes objects at random, some at once and some later, and wants
// each back soon, by one write; then it makes legitimate changes as other clients, and wants
// nothing written. No object is changed twice: who does so is fought, more and more slowly.
func TestF26RandomDrift(t *testing.T) {
	r, size := newRig(t), driftSizeOf(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	d := &drifting{rig: r, namespace: r.namespace(t), random: rand.New(rand.NewPCG(seed, 0))} //nolint:gosec // no secret
	empty := r.resident(t)
	d.install(t, size.objects)
	resident := r.resident(t)

	mark := r.mark(t)
	changes := d.disturb(t, size.changes)
	took := d.restored(t, changes)
	time.Sleep(bookkeeping) // to see that nothing is written a second time takes time
	d.checkWrites(t, mark, changes)
	report(t, size, took)
	t.Logf("the controller's memory: %.0f MiB before, %.0f with %d objects watched, at most %.0f during the changes", empty, resident, size.objects, r.peak(t))

	d.activity(t, size.activity)
	d.check(t)
	d.clear(t, d.namespace)
}

// report prints how long the repairs took, and holds them to six times the aim.
func report(t *testing.T, size driftSize, took []time.Duration) {
	t.Helper()
	slices.Sort(took)
	at := func(percent int) time.Duration { return took[(len(took)-1)*percent/100].Round(time.Millisecond) }
	t.Logf("%d changes over %d objects, until repaired: median %s, 99th percentile %s, at most %s (aim %s)",
		len(took), size.objects, at(50), at(99), at(100), repairAim)
	if at(99) > 6*repairAim {
		t.Errorf("the 99th percentile until repaired is %s, want at most %s, and never six times that", at(99), repairAim)
	}
}

// resident is the memory that the controller has at the moment, in MiB.
func (r *rig) resident(t *testing.T) float64 {
	t.Helper()
	r.peak(t)
	return r.peak(t)
}

// install deploys so many objects, a fiftieth of them workloads, to be compared as a
// whole once an hour, and waits until a watch shows them.
func (d *drifting) install(t *testing.T, n int) {
	t.Helper()
	files, _ := manyMaps(n-n/50, nil)
	for i := range n {
		o := target{configMaps, fmt.Sprintf("c%05d", i)}
		if i >= n-n/50 {
			o = target{workloads, fmt.Sprintf("w%05d", i)}
			files[o.name+".yaml"] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(aWorkload, "NAME", o.name))}
		}
		d.objects = append(d.objects, o)
	}
	d.publish(t, d.namespace, "v1", files)
	app := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: "app"}}
	app.Spec.ServiceAccountName = "installer"
	app.Spec.SourceRef = &v1alpha1.SourceReference{Kind: v1alpha1.BundleSourceKind, Name: "app"}
	app.Spec.Interval = v1alpha1.Duration{Duration: time.Hour}
	if err := d.admin.Create(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	d.waitAll(t, d.namespace, 1, isReady)
	d.seen = watchAll(t, d.cp.RESTConfig(), d.namespace)
	time.Sleep(bookkeeping) // the workloads' last status
}

const aWorkload = `apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME}
spec:
  revisionHistoryLimit: 3
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec: {containers: [{name: main, image: "example.org/main:1"}]}
`

// disturb changes so many objects, up to twenty at once, forty a second.
func (d *drifting) disturb(t *testing.T, n int) []*change {
	t.Helper()
	var changes []*change
	for _, i := range d.random.Perm(len(d.objects))[:n] {
		o := d.objects[i]
		changes = append(changes, &change{target: o, what: damages[d.random.IntN(len(damages))], uid: d.seen.last(o).uid})
	}
	for rest := changes; len(rest) > 0; {
		burst := min(1+d.random.IntN(20), len(rest))
		for _, err := range parallel.Each(t.Context(), burst, rest[:burst], d.damage) {
			if err != nil {
				t.Fatal(err)
			}
		}
		rest = rest[burst:]
		time.Sleep(time.Duration(d.random.Int64N(int64(500 * time.Millisecond)))) // the rate of the changes
	}
	return changes
}

func (d *drifting) damage(ctx context.Context, c *change) error {
	o := c.in(d.namespace)
	var err error
	if c.what == "deletion" {
		err = d.admin.Delete(ctx, o)
	} else {
		err = d.admin.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(c.patch())), client.FieldOwner("another-client"))
		c.version = o.GetResourceVersion()
	}
	c.at = time.Now()
	if err != nil {
		return fmt.Errorf("%s of %s: %w", c.what, c.target, err)
	}
	return nil
}

// restored waits until all that was changed is as before, and returns how long each took.
func (d *drifting) restored(t *testing.T, changes []*change) []time.Duration {
	t.Helper()
	var took []time.Duration
	missing := ""
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		took = took[:0]
		for _, c := range changes {
			if at, found := d.seen.restored(c); found {
				took = append(took, max(0, at.Sub(c.at)))
			} else {
				missing = fmt.Sprintf("%s of %s: %+v", c.what, c.target, d.seen.last(c.target))
			}
		}
		return len(took) == len(changes), nil
	})
	if err != nil {
		t.Fatalf("%d of %d changes were repaired; not repaired: %s", len(took), len(changes), missing)
	}
	return took
}

// writes counts, for each object, how often it was written in the name of the account.
func (d *drifting) writes(t *testing.T, since controlplane.AuditMark) map[string]int {
	t.Helper()
	events, err := d.cp.Audit(since)
	if err != nil {
		t.Fatal(err)
	}
	counted := map[string]int{}
	for _, e := range events {
		written := slices.Contains([]string{"create", "update", "patch", "delete"}, e.Verb) && e.Code < 300 && !strings.Contains(e.RequestURI, "dryRun=All")
		if written && e.Namespace == d.namespace && e.ImpersonatedUser == "system:serviceaccount:"+d.namespace+":installer" {
			counted[e.Resource+"/"+e.Name]++
		}
	}
	return counted
}

// checkWrites wants one write of each object that was changed, and none of others.
func (d *drifting) checkWrites(t *testing.T, since controlplane.AuditMark, changes []*change) {
	t.Helper()
	counted, all := d.writes(t, since), 0
	for _, c := range changes {
		if n := counted[c.String()]; n != 1 {
			t.Errorf("%s of %s was answered by %d writes, want 1", c.what, c.target, n)
		}
		all += counted[c.String()]
		delete(counted, c.String())
	}
	t.Logf("writes a change: %.3f", float64(all)/float64(len(changes)))
	if len(counted) > 0 {
		t.Errorf("written although no client changed them: %v", counted)
	}
}

// check wants all objects to be as they were installed.
func (d *drifting) check(t *testing.T) {
	t.Helper()
	for _, o := range d.objects {
		if last := d.seen.last(o); !last.intact {
			t.Errorf("%s is not as the bundle has it: %+v", o, last)
		}
	}
}
