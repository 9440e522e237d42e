// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment"
)

// waitingState is a state in which an attempt waits: the next revision of a deployment, and what its status says then. Each revision has the
// ConfigMaps "kept", which does not change, "changing", which is in a late phase, and "written".
type waitingState struct {
	// step of a reconcile that waits, or fails and is tried again.
	step string
	says string
	// chart: the bundle is a chart, where all objects are applied after a hook.
	chart bool
	// first and next are what the two revisions have beside the ConfigMaps; begin prepares the second one, and
	// end what follows.
	first      func(namespace string) fstest.MapFS
	next       func(namespace string) fstest.MapFS
	begin, end func(t *testing.T, r *rig, namespace string)
	spec       func(*v1alpha1.BundleDeployment)
	// before is of the deployment from the beginning.
	before func(*v1alpha1.BundleDeployment)
	// writes: it has written the ConfigMap "written"; applies: also "changing", so that it is the applied revision.
	writes, applies bool
	// stays: the second revision is not published, as only the spec changes.
	stays bool
}

func only(path string, content *fstest.MapFile) func(string) fstest.MapFS {
	return func(string) fstest.MapFS { return fstest.MapFS{path: content} }
}

var (
	neverScheduled = sickWorkload("", "nodeSelector: {example.org/there-is: none}")
	heldMap        = file("{apiVersion: v1, kind: ConfigMap, metadata: {name: first, finalizers: [example.org/hold], annotations: {satchel.dev/prune-timing: BeforeApply}}}")
)

var waitingStates = map[string]waitingState{
	"hook before an upgrade": {step: "apply", says: "hook", chart: true, next: only("h.yaml", hookJob("migrate", hookTerms("pre-upgrade", 0, ""), "suspend: true"))},
	"hook after an upgrade": {step: "post-hooks", says: "hook", chart: true, applies: true, writes: true,
		next: only("h.yaml", hookJob("late", hookTerms("post-upgrade", 0, ""), "suspend: true"))},
	"hook with other values": {step: "apply", says: "hook", chart: true, stays: true, first: only("h.yaml", hookJob("migrate", hookTerms("pre-upgrade", 0, ""), "suspend: true")),
		spec: func(d *v1alpha1.BundleDeployment) {
			d.Spec.Helm = &v1alpha1.HelmOptions{Values: &apiextensionsv1.JSON{Raw: []byte(`{"value": "two"}`)}}
		}},
	"CRD that is not established": {step: "apply", says: "is not established", begin: func(t *testing.T, r *rig, namespace string) {
		t.Helper()
		r.create(t, namedCRD(namespace, "widgets"))
	}, next: func(namespace string) fstest.MapFS {
		crd := strings.NewReplacer("PLURAL", "gizmos", "GROUP", namespace+".example.org").Replace(crdOfWidgets)
		return fstest.MapFS{"d.yaml": file(crd), "r.yaml": file("{apiVersion: " + namespace + ".example.org/v1, kind: Widget, metadata: {name: one}}")}
	}},
	"migration": {step: "apply", says: "ends its conversion by webhook", first: convertedCRD(true), next: convertedCRD(false), begin: func(t *testing.T, r *rig, namespace string) {
		t.Helper()
		r.create(t, object(namespace+".example.org/v1alpha1", "Gadget", namespace, "one"))
	}, end: func(t *testing.T, r *rig, namespace string) {
		t.Helper()
		r.delete(t, object(namespace+".example.org/v1alpha1", "Gadget", namespace, "one"))
	}},
	"phase": {step: "apply", says: "phase 10 waits", writes: true, next: func(string) fstest.MapFS {
		return fstest.MapFS{"s.yaml": neverScheduled, "p.yaml": inPhase("10", configMap("late", "1"))}
	}},
	"health": {step: "health", says: "not healthy", writes: true, applies: true, next: only("s.yaml", inPhase("30", neverScheduled))},
	"refused while it is applied": {step: "apply", says: "not for real", writes: true, begin: func(t *testing.T, r *rig, namespace string) {
		t.Helper()
		refused := policy{operation: admissionv1.Create, resource: "configmaps", rule: "request.dryRun || object.metadata.name != 'wrong'", message: "'not for real'"}
		r.refuse(t, namespace, refused, func(ctx context.Context) error {
			wrong := aConfigMap(namespace, "wrong")
			err := r.admin.Create(ctx, wrong)
			if err == nil {
				err = r.admin.Delete(ctx, wrong) // the policy does not work yet
			}
			return err
		})
	}, next: only("x.yaml", inPhase("10", configMap("wrong", "1")))},
	"deletion before the apply": {step: "prune-first", says: "first is being deleted", first: only("f.yaml", heldMap), end: func(t *testing.T, r *rig, namespace string) {
		t.Helper()
		r.patch(t, aConfigMap(namespace, "first"), `{"metadata":{"finalizers":null}}`)
	}},
	"dependency": {step: "depend", says: "missing", spec: func(d *v1alpha1.BundleDeployment) {
		d.Spec.DependsOn = []v1alpha1.Dependency{{Name: "missing"}}
	}},
	"approval": {step: "approve", says: "", before: asking(v1alpha1.ApprovalManual)},
	"artifact server that is down": {step: "load", says: "503", begin: func(t *testing.T, r *rig, namespace string) {
		t.Helper()
		r.takeDown(t, namespace, http.StatusServiceUnavailable)
	}, end: func(_ *testing.T, r *rig, namespace string) { r.down.Delete(namespace) }},
	"conversion that fails":   {step: "convert", says: "x.yaml", next: only("x.yaml", file("{"))},
	"plan that is refused":    {step: "plan", says: "does not know kind", next: only("x.yaml", file("{apiVersion: example.org/v1, kind: Nothing, metadata: {name: x}}"))},
	"dry run that is refused": {step: "dry-run", says: "Invalid value", next: only("x.yaml", file("{apiVersion: v1, kind: Service, metadata: {name: wrong}, spec: {ports: [{port: 99999}]}}"))},
	"input that is missing": {step: "inputs", says: "missing", chart: true, spec: func(d *v1alpha1.BundleDeployment) {
		d.Spec.Helm = &v1alpha1.HelmOptions{ValuesFrom: []v1alpha1.ValuesReference{{Kind: "ConfigMap", Name: "missing"}}}
	}},
}

// withoutState are the steps that no state above is about, and why.
var withoutState = map[string]string{
	"protect":   "writes to the BundleDeployment only: a failure is one of the API server, and is tried again at once",
	"account":   "without the ServiceAccount nothing can be written",
	"server":    "another server is asked for nothing but its identity before it is approved",
	"target":    "without knowing the cluster nothing may be written",
	"recover":   "an inventory that is lost is recovered before anything is written",
	"accept":    "ends before anything is written, as a conversion that fails does",
	"catalog":   "ends before anything is written, as an artifact server that is down",
	"source":    "as an artifact server that is down",
	"trust":     "ends before anything is written, as an artifact server that is down",
	"due":       "asks the API server only, and is tried again at once",
	"compare":   "is about the applied revision",
	"repair":    "is the care itself",
	"certify":   "ends before anything is written, as a plan that is refused",
	"preflight": "as a plan that is refused",
	"hooks":     "as a hook before an upgrade: the former one is still being deleted",
	"remember":  "writes to the BundleDeployment only",
	"consume":   "writes to the BundleApproval only",
	"prune":     "the revision is applied and healthy",
}

// F58: a step that is added to a reconcile needs a state in which it waits, or a reason why it has none.
func TestF58EveryStepHasAWaitingState(t *testing.T) {
	t.Parallel()
	has := map[string]bool{}
	for _, state := range waitingStates {
		has[state.step] = true
	}
	for _, step := range deployment.Steps() {
		if reason := withoutState[step[0]]; has[step[0]] == (reason != "") {
			t.Errorf("step %s: a state %v, the reason %q", step[0], has[step[0]], reason)
		}
	}
}

// convertedCRD is a CRD of which a webhook that nothing answers converts the resources, or one without it and with another storage version.
func convertedCRD(webhook bool) func(namespace string) fstest.MapFS {
	return func(namespace string) fstest.MapFS {
		conversion := "{strategy: None}"
		if webhook {
			conversion = "{strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: 'https://127.0.0.1:1/convert'}}}"
		}
		version := func(name string, storage bool) string {
			return fmt.Sprintf("{name: %s, served: true, storage: %v, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}", name, storage)
		}
		group := namespace + ".example.org"
		return fstest.MapFS{"g.yaml": file("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gadgets." + group + ", annotations: {satchel.dev/crd-upgrade-safety: None}}, spec: {group: " + group +
			", scope: Namespaced, names: {kind: Gadget, plural: gadgets}, conversion: " + conversion + ", versions: [" + version("v1alpha1", webhook) + ", " + version("v1", !webhook) + "]}}")}
	}
}

const crdOfWidgets = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: PLURAL.GROUP}, spec: {group: GROUP, scope: Namespaced,
  names: {kind: Widget, plural: PLURAL}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}`

func namedCRD(namespace, plural string) client.Object {
	object := &unstructured.Unstructured{}
	_ = yaml.Unmarshal([]byte(strings.NewReplacer("PLURAL", plural, "GROUP", namespace+".example.org").Replace(crdOfWidgets)), &object.Object)
	return object
}

// repaired wants a ConfigMap to have a value again within a second (6 s here).
func (r *rig) repaired(t *testing.T, namespace, name, want string) {
	t.Helper()
	began := time.Now()
	r.holds(t, namespace, name, want)
	if took := time.Since(began); took > 6*time.Second {
		t.Errorf("the repair of %s took %s", name, took)
	}
}

// F58: while an attempt waits, edits and deletions of what the running revision applied are repaired within a second (6 s here), but for
// what the attempt has written.
func TestF58WaitsBesideTheAppliedRevision(t *testing.T) {
	t.Parallel()
	for name, state := range waitingStates {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			namespace := r.namespace(t)
			first := r.publish(t, namespace, "app", "v1", state.bundle(namespace, "one", state.first))
			key := r.deploy(t, namespace, "app", func(d *v1alpha1.BundleDeployment) {
				if state.chart {
					helmed(d)
				}
				if state.before != nil {
					state.before(d)
				}
				d.Spec.Interval = v1alpha1.Duration{Duration: time.Hour}
				d.Spec.Health.Timeout = v1alpha1.Duration{Duration: 10 * time.Minute}
			})
			if state.before != nil {
				_, digest := r.awaits(t, key, first.Revision, v1alpha1.ReasonApprovalRequired)
				r.decide(t, key, digest)
			}
			r.ready(t, key, first.Revision)
			state.waits(t, r, namespace, key, first.Revision)
		})
	}
}

// bundle is a revision of a waiting state.
func (s waitingState) bundle(namespace, value string, more func(string) fstest.MapFS) fstest.MapFS {
	if s.stays {
		value = "{{ .Values.value | default \"one\" }}"
	}
	files := fstest.MapFS{"k.yaml": configMap("kept", "one"), "c.yaml": configMap("changing", value), "w.yaml": configMap("written", value)}
	if !s.chart {
		files["c.yaml"] = inPhase("20", configMap("changing", value))
	}
	if more != nil {
		for path, content := range more(namespace) {
			files[path] = content
		}
	}
	if s.chart {
		return charted(files)
	}
	return files
}

// waits has the second revision wait, and edits and deletes objects.
func (s waitingState) waits(t *testing.T, r *rig, namespace string, key client.ObjectKey, applied string) {
	t.Helper()
	if s.begin != nil {
		s.begin(t, r, namespace)
	}
	if s.spec != nil {
		r.edit(t, key, s.spec)
	}
	if !s.stays {
		second := r.publish(t, namespace, "app", "v2", s.bundle(namespace, "two", s.next))
		if s.applies {
			applied = second.Revision
		}
	}
	waiting := func(d *v1alpha1.BundleDeployment) bool {
		if s.step == "approve" {
			return conditions.GetReason(d, v1alpha1.ApprovalPendingCondition) == v1alpha1.ReasonApprovalRequired
		}
		return !conditions.IsTrue(d, "Ready") && d.Status.Applied.Revision == applied && says(s.says)(d)
	}
	r.until(t, key, "it waits", waiting)
	for _, name := range []string{"kept", "changing"} {
		want := "one"
		if s.applies && name == "changing" {
			want = "two"
		}
		r.patch(t, r.must(t, aConfigMap(namespace, name)), `{"data":{"value":"edited"}}`)
		r.repaired(t, namespace, name, want)
		if err := r.admin.Delete(t.Context(), r.must(t, aConfigMap(namespace, name))); err != nil {
			t.Fatal(err)
		}
		r.repaired(t, namespace, name, want)
	}
	r.until(t, key, "it waits still", waiting)
	written := "one"
	if s.writes {
		written = "two"
	}
	r.holds(t, namespace, "written", written)
	s.goesOn(t, r, namespace, key)
}

// goesOn ends the wait with a third revision.
func (s waitingState) goesOn(t *testing.T, r *rig, namespace string, key client.ObjectKey) {
	t.Helper()
	if s.end != nil {
		s.end(t, r, namespace)
	}
	if s.before != nil {
		r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.Approval = nil })
	}
	if s.stays {
		return
	}
	if s.spec != nil {
		r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.DependsOn, d.Spec.Helm = nil, nil })
	}
	more := s.first
	if s.step == "prune-first" {
		more = nil // it would have to be deleted again in the end
	}
	third := r.publish(t, namespace, "app", "v3", s.bundle(namespace, "three", more))
	r.ready(t, key, third.Revision)
	for _, name := range []string{"changing", "written"} {
		r.holds(t, namespace, name, "three")
	}
}
