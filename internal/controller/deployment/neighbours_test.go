// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/costly"
)

// attack is what one tenant with several namespaces does to slow down the others.
type attack struct {
	// files of the i-th deployment in a namespace; two deployments never share an object.
	files func(i int) fstest.MapFS
	// deployments in each namespace.
	deployments int
	// namespaces of the attacker; those of the suite if 0. The attack begins when all of them give the reason.
	namespaces int
	// spec of each deployment, if it is more than its source.
	spec func(*v1alpha1.BundleDeployment)
	// every is how often one deployment of each namespace is changed, one after the other.
	every  time.Duration
	change func(i int) string
	// reason that each deployment has to give, and a word of its message; "" where the attack is nothing but load.
	reason, says string
	// full is for the release suite only.
	full bool
}

// installs tells that the attack installs its objects, and is not refused.
func (a attack) installs() bool { return a.reason == "" }

// editAnnotation changes an annotation of all objects, after other processors: a patch replaces the list as a whole.
func editAnnotation(others ...v1alpha1.Processor) func(i int) string {
	return func(i int) string {
		edit := v1alpha1.Processor{Metadata: &v1alpha1.MetadataProcessor{Annotations: map[string]string{"edit": strconv.Itoa(i)}}}
		list, err := json.Marshal(append(slices.Clone(others), edit))
		if err != nil {
			return err.Error() // the API server refuses it
		}
		return `{"spec":{"processors":` + string(list) + `}}`
	}
}

func requestReconcile(i int) string {
	return fmt.Sprintf(`{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":"%d"}}}`, i)
}

func attacks() map[string]attack {
	counted := &v1alpha1.ObjectSelector{Name: "(" + strings.Repeat("[a-z0-9]?", 8) + "){1000}Z"}
	objects := func(n int) func(int) fstest.MapFS {
		return func(deployment int) fstest.MapFS {
			files := fstest.MapFS{}
			for i := range n {
				name := fmt.Sprintf("c%d-%d", deployment, i)
				files[name+".yaml"] = configMap(name, "one")
			}
			return files
		}
	}
	some, many := objects(1), objects(500)
	searched := func(deployment int) fstest.MapFS {
		text := strings.Repeat("a", 600_000)
		return fstest.MapFS{"c.yaml": file(fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d}\ndata: {a: %s, b: %sb}\n", deployment, text, text[:300_000]))}
	}
	one := func(files fstest.MapFS) func(int) fstest.MapFS {
		return func(int) fstest.MapFS { return files }
	}
	searches := 2
	if releaseSuite() {
		searches = 6
	}
	patches := slices.Repeat([]v1alpha1.Processor{{Patch: &v1alpha1.Patch{Target: counted, Patch: `[{"op":"add","path":"/data","value":{}}]`}}}, 20)
	const often = 100 * time.Millisecond
	return map[string]attack{
		"M25 kustomization": {files: one(costly.Kustomization(2000)), deployments: 1, every: often, change: editAnnotation(), reason: v1alpha1.ReasonLimitExceeded, says: "CPU time"},
		"M26 schema":        {files: one(costly.Chart()), deployments: 1, every: often, change: editAnnotation(), reason: v1alpha1.ReasonLimitExceeded, says: "CPU time"},
		"M27 patch targets": {files: some, deployments: 1, every: often, change: editAnnotation(patches...), full: true, reason: v1alpha1.ReasonInvalidSpec, says: "repeat less", spec: func(d *v1alpha1.BundleDeployment) {
			d.Spec.Processors = patches
		}},
		"M28 ignore rules": {files: some, deployments: 5, every: often, change: editAnnotation(), full: true, reason: v1alpha1.ReasonInvalidSpec, says: "repeat less", spec: func(d *v1alpha1.BundleDeployment) {
			d.Spec.Drift = &v1alpha1.DriftOptions{Ignore: []v1alpha1.IgnoreRule{{Paths: []string{"/data/value"}, Target: counted}}}
		}},
		"M37 expressions": {files: searched, deployments: searches, namespaces: 4, every: 10 * time.Second, change: requestReconcile, reason: v1alpha1.ReasonHealthFailed, says: "too much work", spec: func(d *v1alpha1.BundleDeployment) {
			d.Spec.Health.Expressions = []v1alpha1.HealthExpression{{APIVersion: "v1", Kind: "ConfigMap", Current: "data.a.indexOf(data.b) >= 0"}}
		}},
		"T16 edits":    {files: some, deployments: 1, every: often, change: editAnnotation(), full: true},
		"T16 requests": {files: many, deployments: 3, every: often, change: requestReconcile, full: true},
	}
}

// begin creates the deployments of an attack, and changes them until it is ended. For suspended ones the controller does nothing
// but answer in the status, so that what is left is the load of the changes themselves on the API server. Where the attack
// installs something, they are suspended afterwards: the cost of each write grows with the inventory in the status.
func (a attack) begin(t *testing.T, r *rig, namespaces int, suspended bool) (keys []client.ObjectKey, end func()) {
	t.Helper()
	for range namespaces {
		namespace := r.namespace(t)
		for i := range a.deployments {
			name := fmt.Sprint("costly-", i)
			r.publish(t, namespace, name, "v1", a.files(i))
			keys = append(keys, r.deploy(t, namespace, name, func(d *v1alpha1.BundleDeployment) {
				if a.spec != nil {
					a.spec(d)
				}
				d.Spec.Suspend = suspended && !a.installs()
			}))
		}
	}
	awaited := cmp.Or(a.reason, v1alpha1.ReasonSucceeded) // what is measured is no installation
	if suspended && !a.installs() {
		awaited = v1alpha1.ReasonSuspended
	}
	for _, key := range keys { // edits that come faster than statuses are written keep the first one from being seen
		r.eventually(t, t.Context(), "the costly bundle is under way", func(ctx context.Context) (bool, string) {
			var d v1alpha1.BundleDeployment
			err := r.admin.Get(ctx, key, &d)
			reason := conditions.GetReason(&d, meta.ReadyCondition)
			installed := !a.installs() && a.namespaces == 0 || reason == awaited
			return err == nil && reason != "" && installed, describe(&d)
		})
		if suspended && a.installs() {
			r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.Suspend = true })
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var editing sync.WaitGroup
	for owned := range slices.Chunk(keys, a.deployments) { // those of one namespace
		editing.Go(func() {
			ticker := time.NewTicker(a.every)
			defer ticker.Stop()
			for i := 0; ; i++ {
				select {
				case <-ctx.Done():
					return
				case <-ticker.C:
				}
				key := owned[i%len(owned)]
				d := &v1alpha1.BundleDeployment{}
				d.Namespace = key.Namespace
				d.Name = key.Name
				_ = r.admin.Patch(ctx, d, client.RawPatch("application/merge-patch+json", []byte(a.change(i))))
			}
		})
	}
	return keys, func() { cancel(); editing.Wait() }
}

// suspended measures beside the changes of suspended deployments.
func (a attack) suspended(t *testing.T, r *rig, namespaces int, measure func() []time.Duration) []time.Duration {
	t.Helper()
	keys, end := a.begin(t, r, namespaces, true)
	defer func() {
		end()
		for _, key := range keys {
			r.remove(t, key)
		}
	}()
	return measure()
}

// victim edits a deployment of one object, at most once a second, and returns how long each edit took until it was applied,
// sorted.
func (r *rig) victim(t *testing.T, key client.ObjectKey, times int) []time.Duration {
	t.Helper()
	var took []time.Duration
	pace := time.NewTicker(time.Second)
	defer pace.Stop()
	for i := range times {
		want := strconv.Itoa(i) + "-" + strconv.FormatInt(time.Now().UnixNano(), 36)
		began := time.Now()
		r.edit(t, key, func(d *v1alpha1.BundleDeployment) {
			d.Spec.Processors = []v1alpha1.Processor{{Metadata: &v1alpha1.MetadataProcessor{Annotations: map[string]string{"edit": want}}}}
		})
		r.eventually(t, t.Context(), "the edit of the victim is applied", func(ctx context.Context) (bool, string) {
			object := aConfigMap(key.Namespace, "victim")
			err := r.admin.Get(ctx, client.ObjectKeyFromObject(object), object)
			return err == nil && object.GetAnnotations()["edit"] == want, fmt.Sprint(object.GetAnnotations(), err)
		})
		took = append(took, time.Since(began))
		<-pace.C
	}
	slices.Sort(took)
	return took
}

func p95(sorted []time.Duration) time.Duration { return sorted[(len(sorted)*95-1)/100] }

// saysWhy waits until a deployment gives the reason; conversions of three namespaces come one after the other, and the machine
// may be loaded. A namespace without CPU time left waits for it, and says so.
func (a attack) saysWhy(t *testing.T, r *rig, key client.ObjectKey) {
	t.Helper()
	var d v1alpha1.BundleDeployment
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 5*patience, true, func(ctx context.Context) (bool, error) {
		if err := r.admin.Get(ctx, key, &d); err != nil {
			return false, err
		}
		reason := conditions.GetReason(&d, meta.ReadyCondition)
		return (reason == a.reason || a.reason == v1alpha1.ReasonLimitExceeded && reason == v1alpha1.ReasonCPUBudgetExceeded) &&
			strings.Contains(conditions.GetMessage(&d, meta.ReadyCondition), a.says), nil
	})
	if err != nil {
		t.Fatalf("the attacker's deployment does not say %s: %v\n%s", a.reason, err, describe(&d))
	}
	t.Logf("%s says: %s", key, conditions.GetMessage(&d, meta.ReadyCondition))
}

// M25 to M28, T16: what a tenant with three namespaces deploys and changes all the time stops at a limit, which the status
// names; the deployment of another tenant is applied without delay, its deleted object is recreated, and deleting the
// attacker's deployments removes them. The common suite has one namespace, but for M37, and does not compare times there.
func TestM25CostlyBundlesDoNotBlockOthers(t *testing.T) {
	full := releaseSuite()
	edits, namespaces := 5, 1
	if full {
		edits, namespaces = 60, 3
	}
	for name, a := range attacks() {
		if a.full && !full {
			continue
		}
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			namespace := r.namespace(t)
			published := r.publish(t, namespace, "victim", "v1", fstest.MapFS{"a.yaml": configMap("victim", "1")})
			key := r.deploy(t, namespace, "victim", nil)
			r.ready(t, key, published.Revision)
			namespaces := cmp.Or(a.namespaces, namespaces)
			quiet := r.victim(t, key, edits)
			suspended := quiet
			if full {
				suspended = a.suspended(t, r, namespaces, func() []time.Duration { return r.victim(t, key, edits) })
			}
			keys, end := a.begin(t, r, namespaces, false)
			t.Cleanup(end)
			busy := r.victim(t, key, edits)
			t.Logf("the victim, quiet, beside changes of suspended deployments, and under attack: p50 %s %s %s, p95 %s %s %s (ratios %.2f, %.2f)",
				quiet[edits/2], suspended[edits/2], busy[edits/2], p95(quiet), p95(suspended), p95(busy),
				p95(busy).Seconds()/p95(quiet).Seconds(), p95(busy).Seconds()/p95(suspended).Seconds())
			if full && p95(busy) > 12*p95(suspended) || a.namespaces > 0 && p95(busy) > max(12*p95(suspended), 5*time.Second) {
				t.Errorf("the edits of another tenant take %s, and %s without the attack", p95(busy), p95(suspended))
			}
			if err := r.admin.Delete(t.Context(), aConfigMap(namespace, "victim")); err != nil {
				t.Fatal(err)
			}
			r.eventually(t, t.Context(), "the deleted object of the victim comes back", func(ctx context.Context) (bool, string) {
				value := r.value(t, ctx, namespace, "victim")
				return value == "1", value
			})
			end()
			for _, attacker := range keys {
				if a.reason != "" {
					a.saysWhy(t, r, attacker)
				}
				r.remove(t, attacker)
			}
			for _, attacker := range keys {
				if r.get(t, aConfigMap(attacker.Namespace, "c0")) {
					t.Error("something of the attacker is left")
				}
			}
		})
	}
}
