// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// rollsBack makes a deployment reject a revision after the retries and the timeout for
// health.
func rollsBack(retries int32, timeout time.Duration) func(*v1alpha1.BundleDeployment) {
	return func(d *v1alpha1.BundleDeployment) {
		d.Spec.Remediation = &v1alpha1.RemediationOptions{Strategy: v1alpha1.RemediationRollback, Retries: retries}
		d.Spec.Health.Timeout = v1alpha1.Duration{Duration: timeout}
	}
}

// Revisions of one bundle: one that works, one that never becomes ready and brings an
// object more, and one that works again.
func good(value string) fstest.MapFS {
	return fstest.MapFS{"a.yaml": configMap("a", value), "w.yaml": workload("web", "example.org/web:"+value)}
}

func sickly(value string) fstest.MapFS {
	return fstest.MapFS{
		"a.yaml": configMap("a", value), "b.yaml": configMap("b", value),
		"w.yaml": sickWorkload("", "nodeSelector: {example.org/there-is: none}"),
	}
}

// outcomes is the history in short.
func outcomes(d *v1alpha1.BundleDeployment) string {
	var words []string
	for _, record := range d.Status.History {
		reference, _, _ := strings.Cut(record.Revision, "@")
		words = append(words, reference+" "+string(record.Outcome))
	}
	return strings.Join(words, ", ")
}

// A revision that never becomes ready is replaced by the last healthy one, which is
// reconciled until the source has another one.
func TestRollbackOfWhatNeverBecomesReady(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	first := r.publish(t, namespace, "app", "v1", good("one"))
	key := r.deploy(t, namespace, "app", both(quick, rollsBack(0, 4*time.Second)))
	r.ready(t, key, first.Revision)
	second := r.publish(t, namespace, "app", "v2", sickly("two"))
	d := r.unready(t, key, v1alpha1.ReasonRevisionRejected)
	message := conditions.GetMessage(d, "Ready")
	for _, says := range []string{
		"revision " + second.Revision + " was rejected: HealthFailed: 1 of 3 objects are not healthy: Deployment.apps " + namespace + "/web", "didn't match",
		"revision " + first.Revision + " is applied",
	} {
		if !strings.Contains(message, says) {
			t.Errorf("the message lacks %q: %s", says, message)
		}
	}
	status := d.Status
	if !conditions.IsTrue(d, "Stalled") || status.Rejected.Revision != second.Revision || status.Applied.Revision != first.Revision || status.Healthy.Revision != first.Revision {
		t.Errorf("rejected %s:\n%s", status.Rejected.Revision, describe(d))
	}
	if got := outcomes(d); got != "v2 RolledBack, v1 Healthy" {
		t.Errorf("the history is %s", got)
	}
	if newest := status.History[0]; newest.CompletionTime == nil || newest.Create != 1 || newest.Update != 2 || newest.Digest != second.Digest {
		t.Errorf("the record is %+v", newest)
	}
	r.holds(t, namespace, "a", "one")
	r.gone(t, aConfigMap(namespace, "b"))
	r.told(t, namespace, "RollingBack: rolling back to revision "+first.Revision)
	r.patch(t, r.must(t, aConfigMap(namespace, "a")), `{"data":{"value":"changed"}}`)
	r.holds(t, namespace, "a", "one")
	third := r.publish(t, namespace, "app", "v3", good("three"))
	d = r.ready(t, key, third.Revision)
	if got := outcomes(d); d.Status.Rejected.Revision != "" || got != "v3 Healthy, v2 RolledBack, v1 Healthy" {
		t.Errorf("rejected is %q, the history is %s", d.Status.Rejected.Revision, got)
	}
}

// badValue refuses, but in a dry run, ConfigMaps with the value bad.
func (r *rig) badValue(t *testing.T, namespace string) (lift func()) {
	t.Helper()
	p := policy{operation: admissionv1.OperationAll, resource: "configmaps", message: `"the value is bad"`,
		rule: "(has(request.dryRun) && request.dryRun) || object == null || !has(object.data) || !('value' in object.data) || object.data['value'] != 'bad'"}
	return r.refuse(t, namespace, p, func(ctx context.Context) error {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "probe-"}, Data: map[string]string{"value": "bad"}}
		return r.admin.Create(ctx, probe)
	})
}

// A revision that cannot be applied is retried as often as allowed, and then rolled
// back. On request it is tried again.
func TestRollbackOfWhatCannotBeApplied(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one"), "b.yaml": configMap("b", "one")})
	key := r.deploy(t, namespace, "app", both(quick, rollsBack(2, time.Minute)))
	r.ready(t, key, first.Revision)
	lift := r.badValue(t, namespace)
	seen := r.record(t, key)
	second := r.publish(t, namespace, "app", "v2", fstest.MapFS{"a.yaml": configMap("a", "two"), "b.yaml": configMap("b", "bad"), "c.yaml": configMap("c", "two")})
	d := r.unready(t, key, v1alpha1.ReasonRevisionRejected)
	if message := conditions.GetMessage(d, "Ready"); !strings.Contains(message, "the value is bad") {
		t.Errorf("the message does not name the cause: %s", message)
	}
	if got := outcomes(d); got != "v2 RolledBack, v1 Healthy" || d.Status.History[0].Attempts != 3 {
		t.Errorf("the history is %s, after %d attempts", got, d.Status.History[0].Attempts)
	}
	r.holds(t, namespace, "a", "one")
	r.gone(t, aConfigMap(namespace, "c"))
	tries := map[string]bool{}
	for _, d := range seen() {
		if _, text, found := strings.Cut(conditions.GetMessage(d, "Ready"), "\nattempt "); found {
			tries[text] = true
		}
	}
	if !tries["1 of 3 failed: it is tried again"] || !tries["2 of 3 failed: it is tried again"] || len(tries) != 2 {
		t.Errorf("it said %v", tries)
	}
	r.handledAgain(t, key)
	if d := r.unready(t, key, v1alpha1.ReasonRevisionRejected); outcomes(d) != "v2 RolledBack, v2 RolledBack, v1 Healthy" {
		t.Errorf("after it was tried again the history is %s", outcomes(d))
	}
	lift()
	r.eventually(t, t.Context(), "the policy is lifted", func(ctx context.Context) (bool, string) {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "probe-"}, Data: map[string]string{"value": "bad"}}
		err := r.admin.Create(ctx, probe)
		return err == nil, fmt.Sprint(err)
	})
	r.handledAgain(t, key)
	if d := r.ready(t, key, second.Revision); d.Status.Rejected.Revision != "" {
		t.Errorf("still rejected: %s", d.Status.Rejected.Revision)
	}
}

// handledAgain asks for a reconcile and waits until the revision is no longer rejected.
func (r *rig) handledAgain(t *testing.T, key client.ObjectKey) {
	t.Helper()
	at := time.Now().Format(time.RFC3339Nano)
	before := r.until(t, key, "there is a history", func(d *v1alpha1.BundleDeployment) bool { return len(d.Status.History) > 0 })
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, meta.ReconcileRequestAnnotation, at)
	})
	r.until(t, key, "it is tried again", func(d *v1alpha1.BundleDeployment) bool {
		return d.Status.LastHandledReconcileAt == at && len(d.Status.History) > len(before.Status.History)
	})
}

// The first revision has nothing to roll back to, and with the strategy None nothing is
// rolled back.
func TestNothingToGoBackTo(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	r.publish(t, namespace, "app", "v1", sickly("one"))
	key := r.deploy(t, namespace, "app", both(quick, rollsBack(1, 2*time.Second)))
	d := r.until(t, key, "it says that there is none", func(d *v1alpha1.BundleDeployment) bool {
		return strings.HasSuffix(conditions.GetMessage(d, "Ready"), "\nthere is no healthy revision to roll back to: it stays, and is retried")
	})
	if d.Status.Rejected.Revision != "" || d.Status.History[0].Attempts != 2 || outcomes(d) != "v1 Failed" {
		t.Errorf("rejected %q, %s after %d attempts", d.Status.Rejected.Revision, outcomes(d), d.Status.History[0].Attempts)
	}
	second := r.publish(t, namespace, "app", "v2", good("two"))
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.Remediation = nil })
	r.ready(t, key, second.Revision)
	r.publish(t, namespace, "app", "v3", sickly("three"))
	d = r.unready(t, key, v1alpha1.ReasonHealthFailed)
	if message := conditions.GetMessage(d, "Ready"); outcomes(d) != "v3 Failed, v2 Healthy, v1 Failed" || strings.Contains(message, "attempt") {
		t.Errorf("the history is %s; it says %s", outcomes(d), message)
	}
}

// A newer revision comes before a rollback has ended; the history has a limit.
func TestNewRevisionSupersedesARollback(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	first := r.publish(t, namespace, "app", "v1", good("one"))
	key := r.deploy(t, namespace, "app", both(quick, both(rollsBack(0, 2*time.Second), func(d *v1alpha1.BundleDeployment) { d.Spec.HistoryLimit = new(int32(3)) })))
	r.ready(t, key, first.Revision)
	r.publish(t, namespace, "app", "v2", sickly("two"))
	r.until(t, key, "rejected", func(d *v1alpha1.BundleDeployment) bool { return d.Status.Rejected.Revision != "" })
	third := r.publish(t, namespace, "app", "v3", good("three"))
	r.ready(t, key, third.Revision)
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.Health.Timeout = v1alpha1.Duration{Duration: time.Hour} })
	r.publish(t, namespace, "app", "v4", sickly("four"))
	r.until(t, key, "v4 is on its way", func(d *v1alpha1.BundleDeployment) bool { return strings.HasPrefix(outcomes(d), "v4 ,") })
	fifth := r.publish(t, namespace, "app", "v5", good("five"))
	d := r.ready(t, key, fifth.Revision)
	if got := outcomes(d); got != "v5 Healthy, v4 Superseded, v3 Healthy" {
		t.Errorf("the history is %s", got)
	}
}

// The last healthy revision comes back although it is of another source, which the spec
// names no longer, and also where the cache was lost.
func TestRollbackToAnotherSource(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	first := r.publish(t, namespace, "app", "v1", good("one"))
	key := r.deploy(t, namespace, "app", both(rarely, rollsBack(0, 3*time.Second)))
	r.ready(t, key, first.Revision)
	second := r.publish(t, namespace, "other", "v2", sickly("two"))
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.SourceRef.Name = "other" })
	d := r.unready(t, key, v1alpha1.ReasonRevisionRejected)
	if d.Status.Rejected.Revision != second.Revision || d.Status.Applied.Revision != first.Revision {
		t.Errorf("rejected %s:\n%s", d.Status.Rejected.Revision, describe(d))
	}
	r.patch(t, r.must(t, aConfigMap(namespace, "a")), `{"data":{"value":"changed"}}`)
	s := r.drive(t, key, nil)
	s.reconcile(t)
	if got := r.value(t, t.Context(), namespace, "a"); got != "one" {
		t.Errorf("with an empty cache the value is %s:\n%s", got, describe(s.deployment(t)))
	}
	s.until(t, v1alpha1.ReasonRevisionRejected)
}

// Flux keeps few artifacts: what a rollback needs is in the cache.
func TestRollbackOfWhatFluxHasDeleted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	source := fluxObjects(namespace)[sourcev1.GitRepositoryKind]
	r.create(t, source.object)
	path := "gitrepository/" + namespace + "/app/"
	publish := func(file, revision string, files fstest.MapFS) {
		t.Helper()
		source.set(r.flux.store(t, path+file, revision, files))
		if err := r.admin.Status().Update(t.Context(), source.object); err != nil {
			t.Fatal(err)
		}
	}
	publish("1.tar.gz", "main@sha1:1", good("one"))
	key := r.deploy(t, namespace, "app", both(quick, both(rollsBack(0, 3*time.Second), func(d *v1alpha1.BundleDeployment) {
		d.Spec.SourceRef = &v1alpha1.SourceReference{APIVersion: sourcev1.GroupVersion.String(), Kind: sourcev1.GitRepositoryKind, Name: "app"}
	})))
	r.ready(t, key, "main@sha1:1")
	publish("2.tar.gz", "main@sha1:2", sickly("two"))
	r.flux.files.Delete("/" + path + "1.tar.gz")
	if d := r.unready(t, key, v1alpha1.ReasonRevisionRejected); d.Status.Rejected.Revision != "main@sha1:2" || d.Status.Applied.Revision != "main@sha1:1" {
		t.Errorf("rejected %s:\n%s", d.Status.Rejected.Revision, describe(d))
	}
	r.holds(t, namespace, "a", "one")
}

// A field that may not be changed back keeps the rejected revision, and the message says so. (CRDs are kept as the newer
// revision left them: TestRemediationKeepsTheNewerCRD.)
func TestRollbackThatIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	settings := func(fields string) *fstest.MapFile {
		return file("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, " + fields + "}")
	}
	first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"settings.yaml": settings("data: {height: one}"), "w.yaml": workload("web", "example.org/web:1")})
	key := r.deploy(t, namespace, "app", both(quick, rollsBack(0, 2*time.Second)))
	r.ready(t, key, first.Revision)
	second := r.publish(t, namespace, "app", "v2", fstest.MapFS{
		"settings.yaml": settings("data: {height: two}, immutable: true"), "w.yaml": sickWorkload("", "nodeSelector: {example.org/there-is: none}"),
	})
	d := r.unready(t, key, v1alpha1.ReasonRollbackFailed)
	message := conditions.GetMessage(d, "Ready")
	for _, says := range []string{"revision " + second.Revision + " was rejected", "rolling back to revision " + first.Revision + " failed", "immutable", "revision " + second.Revision + " stays applied"} {
		if !strings.Contains(message, says) {
			t.Errorf("the message lacks %q: %s", says, message)
		}
	}
	if d.Status.Applied.Revision != second.Revision || !conditions.IsFalse(d, v1alpha1.PlannedCondition) {
		t.Errorf("unexpected:\n%s", describe(d))
	}
}

// Wherever the controller is killed while it rejects a revision and goes back, the next
// process goes on, and counts nothing twice.
func TestKilledDuringARollback(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	for kills := 0; ; kills += betweenKills() {
		name := fmt.Sprint("app-", kills)
		files := func(files fstest.MapFS) fstest.MapFS {
			for path, f := range files {
				files[path] = file(strings.NewReplacer("name: a}", "name: a-"+name+"}", "name: b}", "name: b-"+name+"}", "name: web}", "name: "+name+"}").Replace(string(f.Data)))
			}
			return files
		}
		first := r.publish(t, namespace, name, "v1", files(good("one")))
		key := r.deploy(t, namespace, name, both(rollsBack(0, time.Minute), func(d *v1alpha1.BundleDeployment) { d.Labels = map[string]string{driven: "true"} }))
		s := r.drive(t, key, nil)
		s.ready(t)
		second := r.publish(t, namespace, name, "v2", files(sickly("two")))
		for s.deployment(t).Status.Applied.Revision != second.Revision {
			s.reconcile(t)
		}
		s.now = s.now.Add(2 * time.Minute)
		death := &dying{left: kills + 1}
		s = s.again(t, death.wrap)
		for range 10 {
			_, _ = s.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
		}
		s = s.again(t, nil)
		s.until(t, v1alpha1.ReasonRevisionRejected)
		for range 2 { // a deletion that is begun waits a minute for deployments that another process reconciles
			s.reconcile(t)
			s.now = s.now.Add(2 * time.Minute)
		}
		s.reconcile(t)
		d := s.deployment(t)
		if got := outcomes(d); got != "v2 RolledBack, v1 Healthy" || d.Status.History[0].Attempts != 1 || d.Status.Applied.Revision != first.Revision {
			t.Errorf("killed after write %d, the history is %s, after %d attempts:\n%s", kills+1, got, d.Status.History[0].Attempts, describe(d))
		}
		if r.value(t, t.Context(), namespace, "a-"+name) != "one" || r.get(t, aConfigMap(namespace, "b-"+name)) {
			t.Errorf("killed after write %d, the objects are not those of the first revision", kills+1)
		}
		r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Labels = nil }) // the running controller removes it
		if !death.dead {
			if kills < 5 {
				t.Errorf("%d kills, want one at each of two objects and three statuses at least", kills)
			}
			return
		}
	}
}

// until reconciles until Ready has a reason.
func (d *driver) until(t *testing.T, reason string) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for conditions.GetReason(d.deployment(t), "Ready") != reason {
		if time.Now().After(deadline) {
			t.Fatalf("not %s:\n%s", reason, describe(d.deployment(t)))
		}
		d.reconcile(t)
		time.Sleep(50 * time.Millisecond) // Pods become ready
	}
}
