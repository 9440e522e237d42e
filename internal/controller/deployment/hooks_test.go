// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

// hookTerms are the annotations of a hook.
func hookTerms(events string, weight int, policies string) string {
	text := fmt.Sprintf(`helm.sh/hook: %q, helm.sh/hook-weight: "%d"`, events, weight)
	if policies != "" {
		text += fmt.Sprintf(", helm.sh/hook-delete-policy: %q", policies)
	}
	return text
}

// hookJob is a Job that runs as a hook; the spec of its Pods may say more. That of a broken
// one never finds a node.
func hookJob(name, terms, pod string) *fstest.MapFile {
	return file(`apiVersion: batch/v1
kind: Job
metadata: {name: ` + name + `, annotations: {` + terms + `}}
spec:
  backoffLimit: 0
  ` + pod + `
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: example.org/job}]
`)
}

const brokenJob = "activeDeadlineSeconds: 1\n  suspend: false\n  completions: 1000"

func hookMap(name, terms, value string) *fstest.MapFile {
	return file("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", annotations: {" + terms + "}}\ndata: {value: \"" + value + "\"}\n")
}

// charted is a chart of the files.
func charted(files fstest.MapFS) fstest.MapFS {
	chart := fstest.MapFS{"Chart.yaml": file("apiVersion: v2\nname: app\nversion: 1.0.0\n")}
	for name, content := range files {
		chart["templates/"+name] = content
	}
	return chart
}

// helmed has a deployment look for charts.
func helmed(d *v1alpha1.BundleDeployment) { d.Spec.Format = v1alpha1.FormatHelm }

// everyHook is a chart with a hook for each event, of several weights, beside two objects.
func everyHook(value string) fstest.MapFS {
	return charted(fstest.MapFS{
		"a.yaml": configMap("object", value), "w.yaml": workload("web", "example.org/web:"+value),
		"h1.yaml": hookJob("before-last", hookTerms("pre-install,pre-upgrade", 5, "before-hook-creation"), ""),
		"h2.yaml": hookMap("before-first", hookTerms("pre-install,pre-upgrade", -5, "hook-succeeded"), value),
		"h3.yaml": hookJob("before-next", hookTerms("pre-install", 0, "hook-succeeded,before-hook-creation"), ""),
		"h4.yaml": hookJob("after-install", hookTerms("post-install", 1, ""), ""),
		"h5.yaml": hookMap("after-first", hookTerms("post-install,post-upgrade", 0, ""), value),
		"h6.yaml": hookJob("after-upgrade", hookTerms("post-upgrade", 2, "hook-succeeded"), ""),
		"h7.yaml": hookJob("before-delete", hookTerms("pre-delete", 0, ""), ""),
		"h8.yaml": hookJob("after-delete", hookTerms("post-delete", 0, ""), ""),
		"h9.yaml": hookMap("after-delete-first", hookTerms("post-delete", -1, ""), value),
	})
}

// created lists what ServiceAccounts of a namespace created in it since a mark, in order.
func (r *rig) created(t *testing.T, namespace string, since controlplane.AuditMark) []string {
	t.Helper()
	return r.names(t, namespace, since, func(e controlplane.AuditEvent) bool { return e.Verb == "patch" && e.Code == http.StatusCreated })
}

// names lists the names of the objects that ServiceAccounts of a namespace wrote in it, in order.
func (r *rig) names(t *testing.T, namespace string, since controlplane.AuditMark, wanted func(controlplane.AuditEvent) bool) []string {
	t.Helper()
	all := r.audit(t, since, func(e controlplane.AuditEvent) bool {
		return strings.HasPrefix(e.ImpersonatedUser, "system:serviceaccount:"+namespace) && e.Namespace == namespace && !strings.Contains(e.RequestURI, "dryRun") && wanted(e)
	})
	slices.SortStableFunc(all, func(a, b controlplane.AuditEvent) int { return a.Time.Compare(b.Time) })
	var names []string
	for _, e := range all {
		names = append(names, e.Name)
	}
	return names
}

// The hooks of each operation run around it, by weight, each once; drift, requests and the interval
// run none. What they leave goes as their policies say, and with the deployment.
func TestHooksOfEachOperation(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	mark := r.mark(t)
	first := r.publish(t, namespace, "app", "v1", everyHook("one"))
	key := r.deploy(t, namespace, "app", both(quick, helmed))
	d := r.ready(t, key, first.Revision)
	want := []string{"before-first", "before-next", "before-last", "object", "web", "after-first", "after-install"}
	if got := r.created(t, namespace, mark); !slices.Equal(got, want) {
		t.Errorf("the installation created %v, want %v", got, want)
	}
	if hooks := d.Status.Hooks; hooks == nil || hooks.Operation != v1alpha1.HookInstall || hooks.Completed != 5 || hooks.Total != 5 || hooks.CompletionTime == nil || hooks.OnDelete != 3 {
		t.Errorf("status.hooks is %+v", hooks)
	}
	r.gone(t, aConfigMap(namespace, "before-first"))
	r.gone(t, object("batch/v1", "Job", namespace, "before-next"))
	r.must(t, object("batch/v1", "Job", namespace, "before-last"))

	mark = r.mark(t)
	r.patch(t, r.must(t, aConfigMap(namespace, "object")), `{"data":{"value":"changed"}}`)
	r.patch(t, r.must(t, aConfigMap(namespace, "after-first")), `{"data":{"value":"changed"}}`)
	r.holds(t, namespace, "object", "one")
	r.handled(t, key)
	if got := r.created(t, namespace, mark); len(got) > 0 || r.value(t, t.Context(), namespace, "after-first") != "changed" {
		t.Errorf("without an operation %v was created; the hook that stays is %q", got, r.value(t, t.Context(), namespace, "after-first"))
	}

	mark = r.mark(t)
	second := r.publish(t, namespace, "app", "v2", everyHook("two"))
	r.ready(t, key, second.Revision)
	want = []string{"before-first", "before-last", "after-first", "after-upgrade"}
	if got := r.created(t, namespace, mark); !slices.Equal(got, want) {
		t.Errorf("the upgrade created %v, want %v", got, want)
	}
	r.holds(t, namespace, "after-first", "two")
	r.gone(t, object("batch/v1", "Job", namespace, "after-upgrade"))

	mark = r.mark(t)
	r.remove(t, key)
	all := r.names(t, namespace, mark, func(e controlplane.AuditEvent) bool {
		return e.Verb == "delete" && e.Code < http.StatusMultipleChoices || e.Verb == "patch" && e.Code == http.StatusCreated
	})
	order := []string{"before-delete", "web", "after-delete-first", "after-delete"}
	at := -1
	for _, name := range order {
		next := slices.Index(all, name)
		if next <= at {
			t.Errorf("the removal wrote %v, want %v in this order", all, order)
		}
		at = next
	}
	for _, name := range []string{"before-last", "after-install", "before-delete", "after-delete"} {
		r.gone(t, object("batch/v1", "Job", namespace, name))
	}
	r.gone(t, aConfigMap(namespace, "after-delete-first"))
}

// A hook that fails before an upgrade fails the revision, and the last one stays applied. It is
// retried only on request.
func TestHookThatFailsBeforeAnUpgrade(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	chart := func(value, pod string) fstest.MapFS {
		return charted(fstest.MapFS{"a.yaml": configMap("object", value), "h.yaml": hookJob("migrate", hookTerms("pre-upgrade", 0, ""), pod)})
	}
	first := r.publish(t, namespace, "app", "v1", chart("one", ""))
	key := r.deploy(t, namespace, "app", both(quick, helmed))
	r.ready(t, key, first.Revision)
	second := r.publish(t, namespace, "app", "v2", chart("two", brokenJob))
	d := r.unready(t, key, v1alpha1.ReasonHookFailed)
	r.until(t, key, "it is stalled, and the last revision is applied", func(d *v1alpha1.BundleDeployment) bool {
		return conditions.IsTrue(d, "Stalled") && strings.Contains(conditions.GetMessage(d, "Ready"), "revision "+first.Revision+" stays applied")
	})
	if message := conditions.GetMessage(d, "Ready"); !strings.Contains(message, "pre-upgrade hook Job.batch "+namespace+"/migrate failed: the Job failed") {
		t.Errorf("the message is %s", message)
	}
	if d.Status.Applied.Revision != first.Revision || d.Status.Hooks.Failed == nil || d.Status.History[0].Outcome != v1alpha1.OutcomeFailed {
		t.Errorf("it failed: %+v\n%s", d.Status.Hooks, describe(d))
	}
	r.patch(t, r.must(t, aConfigMap(namespace, "object")), `{"data":{"value":"changed"}}`)
	r.holds(t, namespace, "object", "one")
	run := r.must(t, object("batch/v1", "Job", namespace, "migrate")).GetUID()
	r.looks(t, namespace, "installer", 2)
	if again := r.must(t, object("batch/v1", "Job", namespace, "migrate")).GetUID(); again != run {
		t.Error("the hook that failed ran again by itself")
	}
	r.handled(t, key)
	r.eventually(t, t.Context(), "it runs again", func(context.Context) (bool, string) {
		job := object("batch/v1", "Job", namespace, "migrate")
		return r.get(t, job) && job.GetUID() != run, ""
	})
	third := r.publish(t, namespace, "app", "v3", chart("three", ""))
	r.ready(t, key, third.Revision)
	r.holds(t, namespace, "object", "three")
	_ = second
}

// A hook that fails after an upgrade is retried as often as remediation says; then the last healthy
// revision is applied again, as an upgrade.
func TestHookThatFailsAfterAnUpgrade(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	chart := func(value, pod string) fstest.MapFS {
		return charted(fstest.MapFS{"a.yaml": configMap("object", value), "h.yaml": hookJob("check", hookTerms("post-upgrade", 0, "hook-failed"), pod)})
	}
	first := r.publish(t, namespace, "app", "v1", chart("one", ""))
	key := r.deploy(t, namespace, "app", both(quick, helmed, rollsBack(1, time.Minute)))
	r.ready(t, key, first.Revision)
	mark := r.mark(t)
	second := r.publish(t, namespace, "app", "v2", chart("two", brokenJob))
	d := r.unready(t, key, v1alpha1.ReasonRevisionRejected)
	if d.Status.Rejected.Revision != second.Revision || d.Status.History[0].Attempts != 2 || !strings.Contains(conditions.GetMessage(d, "Ready"), "HookFailed: post-upgrade hook") {
		t.Errorf("%d attempts\n%s", d.Status.History[0].Attempts, describe(d))
	}
	r.holds(t, namespace, "object", "one")
	if got, want := r.created(t, namespace, mark), []string{"check", "check", "check"}; !slices.Equal(got, want) {
		t.Errorf("created %v, want two tries of the revision and one of the rollback", got)
	}
}

// A hook that the API server refuses is retried as often as remediation says. An edit in between resets the count, and the
// attempts go on.
func TestRefusedHookIsTriedAgain(t *testing.T) {
	t.Parallel()
	const retries = 3
	r := newRig(t)
	namespace := r.namespace(t)
	chart := func(value, port string) fstest.MapFS {
		return charted(fstest.MapFS{
			"a.yaml": configMap("object", value),
			"h.yaml": file("apiVersion: v1\nkind: Service\nmetadata: {name: hook, annotations: {" + hookTerms("post-upgrade", 0, "") + "}}\nspec: {ports: [{port: " + port + "}]}\n"),
		})
	}
	first := r.publish(t, namespace, "app", "v1", chart("one", "80"))
	key := r.deploy(t, namespace, "app", both(quick, helmed, rollsBack(retries, time.Minute)))
	r.ready(t, key, first.Revision)
	second := r.publish(t, namespace, "app", "v2", chart("two", "99999"))
	attempts := func(d *v1alpha1.BundleDeployment) int32 {
		if len(d.Status.History) == 0 || d.Status.History[0].Revision != second.Revision {
			return 0
		}
		return d.Status.History[0].Attempts
	}
	r.until(t, key, "it was tried twice", func(d *v1alpha1.BundleDeployment) bool { return attempts(d) >= 2 })
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.Health.Timeout.Duration += time.Second })
	rejected := r.until(t, key, "it is rejected", func(d *v1alpha1.BundleDeployment) bool { return d.Status.Rejected.Revision == second.Revision })
	for _, record := range rejected.Status.History {
		if record.Revision == second.Revision && record.Generation == rejected.Generation && record.Attempts != retries+1 {
			t.Errorf("%d attempts of the edited revision, want %d: %+v", record.Attempts, retries+1, rejected.Status.History)
		}
	}
	r.holds(t, namespace, "object", "one")
}

// A failed hook before a removal blocks it, until the annotation skips the hook.
func TestHookThatHoldsARemoval(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	first := r.publish(t, namespace, "app", "v1", charted(fstest.MapFS{
		"a.yaml": configMap("object", "one"), "h.yaml": hookJob("backup", hookTerms("pre-delete", 0, ""), brokenJob), "i.yaml": hookJob("after", hookTerms("post-delete", 0, ""), ""),
	}))
	key := r.deploy(t, namespace, "app", both(quick, helmed))
	r.ready(t, key, first.Revision)
	r.startRemoval(t, key)
	r.until(t, key, "the removal is held", says(v1alpha1.ReasonHookFailed, "pre-delete hook Job.batch "+namespace+"/backup failed", "satchel.dev/delete-hooks"))
	r.must(t, aConfigMap(namespace, "object"))
	mark := r.mark(t)
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) {
		d.Annotations = map[string]string{v1alpha1.DeleteHooksAnnotation: "Skip"}
	})
	r.remove(t, key)
	r.gone(t, aConfigMap(namespace, "object"))
	r.gone(t, object("batch/v1", "Job", namespace, "backup"))
	if got := r.created(t, namespace, mark); len(got) > 0 {
		t.Errorf("created %v", got)
	}
}

// A controller that is killed after any write of an installation or an upgrade runs each hook exactly
// once after its restart.
func TestKilledAroundHooks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	chart := func(name, value string) fstest.MapFS {
		return charted(fstest.MapFS{
			"a.yaml": configMap("object-"+name, value),
			"h.yaml": hookMap("first-"+name, hookTerms("pre-install,pre-upgrade", 0, "hook-succeeded"), value),
			"i.yaml": hookMap("second-"+name, hookTerms("pre-install,pre-upgrade", 1, ""), value),
			"j.yaml": hookMap("third-"+name, hookTerms("post-install,post-upgrade", 0, "hook-succeeded"), value),
		})
	}
	for kills := 0; ; kills += betweenKills() {
		name := fmt.Sprint("app-", kills)
		first := r.publish(t, namespace, name, "v1", chart(name, "one"))
		mark := r.mark(t)
		key := r.deploy(t, namespace, name, both(helmed, left))
		s := r.drive(t, key, nil)
		died := 0
		for _, revision := range []string{first.Revision, ""} {
			if revision == "" {
				revision = r.publish(t, namespace, name, "v2", chart(name, "two")).Revision
			}
			death := &dying{left: kills + 1}
			s = s.again(t, death.wrap)
			for range 3 {
				_, _ = s.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
			}
			s = s.again(t, nil)
			for range 6 {
				s.reconcile(t)
			}
			if d := s.deployment(t); d.Status.Healthy.Revision != revision || d.Status.Hooks.CompletionTime == nil {
				t.Fatalf("killed after write %d: %+v\n%s", kills+1, d.Status.Hooks, describe(d))
			}
			if death.dead {
				died++
			}
		}
		times := map[string]int{}
		for _, created := range r.created(t, namespace, mark) {
			if strings.HasSuffix(created, "-"+name) {
				times[strings.TrimSuffix(created, "-"+name)]++
			}
		}
		if want := map[string]int{"object": 1, "first": 2, "second": 2, "third": 2}; !maps.Equal(times, want) {
			t.Errorf("killed after write %d: created %v, want %v", kills+1, times, want)
		}
		r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Labels = nil }) // the running controller removes it
		if died == 0 {
			if kills < 12 {
				t.Errorf("%d kills, want one at each of three hooks, three writes of the status for each, and the object at least", kills)
			}
			return
		}
	}
}

// Other values are an upgrade of the same revision; a spec that renders the same is none.
func TestHooksOfOtherValues(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	chart := charted(fstest.MapFS{
		"a.yaml": configMap("object", "{{ .Values.greeting }}"), "h.yaml": hookMap("hook", hookTerms("pre-upgrade", 0, ""), "{{ .Values.greeting }}"),
	})
	chart["values.yaml"] = file("greeting: hello\n")
	chart["night.yaml"] = file("greeting: good night\n")
	first := r.publish(t, namespace, "app", "v1", chart)
	key := r.deploy(t, namespace, "app", both(quick, helmed))
	r.ready(t, key, first.Revision)
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.Health.Timeout = v1alpha1.Duration{Duration: time.Hour} })
	r.ready(t, key, first.Revision)
	r.gone(t, aConfigMap(namespace, "hook"))
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) {
		d.Spec.Helm = &v1alpha1.HelmOptions{Values: &apiextensionsv1.JSON{Raw: []byte(`{"greeting": "good evening"}`)}}
	})
	r.until(t, key, "the upgrade has ended", func(d *v1alpha1.BundleDeployment) bool {
		return d.Status.Hooks.Operation == v1alpha1.HookUpgrade && d.Status.Hooks.CompletionTime != nil
	})
	r.holds(t, namespace, "object", "good evening")
	r.holds(t, namespace, "hook", "good evening")
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) {
		d.Spec.Helm = &v1alpha1.HelmOptions{ValuesFiles: []v1alpha1.ValuesFile{"night.yaml"}}
	})
	r.holds(t, namespace, "object", "good night")
	d := r.until(t, key, "the upgrade has ended", func(d *v1alpha1.BundleDeployment) bool {
		return d.Status.ObservedGeneration == d.Generation && d.Status.Hooks.CompletionTime != nil
	})
	r.holds(t, namespace, "hook", "good night")
	if planned := d.Status.Plan; planned.Content == "" || d.Status.Hooks.Content != planned.Content {
		t.Errorf("the hooks are of the content %q, and the plan of %q", d.Status.Hooks.Content, planned.Content)
	}
}
