// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/apply/dryrun"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/tenant/discovery"
	"github.com/satchel-dev/satchel/tests/workspace"
)

// aWorkload is a workload with three replicas, or without replicas.
func aWorkload(kind, extra string) string {
	text := strings.NewReplacer("KIND", kind, "EXTRA", extra).Replace(`
apiVersion: apps/v1
kind: KIND
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "registry.example/web:v1"}]}
EXTRA`)
	if kind == "StatefulSet" {
		return text + "  serviceName: web\n"
	}
	return text
}

const three = "  replicas: 3\n"

// anAutoscaler is a HorizontalPodAutoscaler of the object.
func anAutoscaler(apiVersion, target, kind, name string) string {
	return fmt.Sprintf("\n---\napiVersion: %s\nkind: HorizontalPodAutoscaler\nmetadata: {name: scaler}\nspec: {minReplicas: 1, maxReplicas: 9, scaleTargetRef: {apiVersion: %s, kind: %s, name: %s}}\n",
		apiVersion, target, kind, name)
}

// scalerKinds are CRDs of KEDA and of vertical autoscalers, which take any spec, and a kind of our own with a scale subresource.
const scalerKinds = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: scaledobjects.keda.sh}
spec:
  group: keda.sh
  scope: Namespaced
  names: {plural: scaledobjects, singular: scaledobject, kind: ScaledObject, listKind: ScaledObjectList}
  versions: [{name: v1alpha1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: verticalpodautoscalers.autoscaling.k8s.io, annotations: {api-approved.kubernetes.io: "https://example.org"}}
spec:
  group: autoscaling.k8s.io
  scope: Namespaced
  names: {plural: verticalpodautoscalers, singular: verticalpodautoscaler, kind: VerticalPodAutoscaler, listKind: VerticalPodAutoscalerList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: fleets.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: fleets, singular: fleet, kind: Fleet, listKind: FleetList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer, default: 1}, name: {type: string}}}, status: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
`

const aScaledObject = "\n---\napiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: scaler}\nspec: {scaleTargetRef: {name: web}}\n"

const aVerticalScaler = "\n---\napiVersion: autoscaling.k8s.io/v1\nkind: VerticalPodAutoscaler\nmetadata: {name: scaler}\nspec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}\n"

func aFleet(size string) string {
	return "apiVersion: example.org/v1\nkind: Fleet\nmetadata: {name: web}\nspec: {name: one" + size + "}\n"
}

// handover is one upgrade with a field that leaves the bundle.
type handover struct {
	before, after string
	others        string // of another client, on the cluster before the upgrade
	adopted       bool   // another client created what the first revision has
	field         []string
	was, becomes  int64
	kept          bool // the plan says that it is kept
	waits         bool // the autoscaler comes in a later phase
}

func handovers() map[string]handover {
	replicas := []string{"spec", "replicas"}
	deployment, set := aWorkload("Deployment", three), aWorkload("StatefulSet", three)
	scaler := anAutoscaler("autoscaling/v2", "apps/v1", "Deployment", "web")
	cases := map[string]handover{
		"autoscaler in the bundle":                {after: scaler},
		"autoscaler of an older version":          {after: anAutoscaler("autoscaling/v1", "apps/v1", "Deployment", "web")},
		"autoscaler on the cluster":               {others: scaler},
		"autoscaler in a later phase":             {after: strings.Replace(scaler, "{name: scaler}", "{name: scaler, annotations: {satchel.dev/phase: '7'}}", 1), waits: true},
		"ScaledObject in the bundle":              {after: aScaledObject},
		"ScaledObject on the cluster":             {others: aScaledObject},
		"adopted":                                 {after: scaler, adopted: true},
		"nothing takes over":                      {becomes: 1},
		"autoscaler of another Deployment":        {after: anAutoscaler("autoscaling/v2", "apps/v1", "Deployment", "other"), becomes: 1},
		"autoscaler of the same name, elsewhere":  {after: anAutoscaler("autoscaling/v2", "apps/v1", "StatefulSet", "web"), becomes: 1},
		"autoscaler of another group":             {after: anAutoscaler("autoscaling/v2", "example.org/v1", "Deployment", "web"), becomes: 1},
		"autoscaler that leaves as well":          {before: deployment + scaler, becomes: 1},
		"no replicas, which no autoscaler starts": {before: aWorkload("Deployment", "  replicas: 0\n"), after: scaler, becomes: 1},
		"no replicas, which KEDA starts":          {before: aWorkload("Deployment", "  replicas: 0\n"), after: aScaledObject, becomes: 0, kept: true},
	}
	all := map[string]handover{}
	for name, c := range cases {
		if c.before == "" {
			c.before = deployment
		}
		c.after, c.field, c.was = aWorkload("Deployment", "")+c.after, replicas, 3
		if strings.Contains(name, "no replicas") {
			c.was = 0
		}
		if c.becomes == 0 && !c.kept {
			c.becomes, c.kept = 3, true
		}
		all[name] = c
	}
	all["StatefulSet"] = handover{before: set, after: aWorkload("StatefulSet", "") + anAutoscaler("autoscaling/v2", "apps/v1", "StatefulSet", "web"), field: replicas, was: 3, becomes: 3, kept: true}
	all["custom resource"] = handover{before: aFleet(", size: 3"), after: aFleet("") + anAutoscaler("autoscaling/v2", "example.org/v1", "Fleet", "web"), field: []string{"spec", "size"}, was: 3, becomes: 3, kept: true}
	all["custom resource, autoscaler on the cluster"] = handover{before: aFleet(", size: 3"), after: aFleet(""), others: anAutoscaler("autoscaling/v2", "example.org/v1", "Fleet", "web"), field: []string{"spec", "size"}, was: 3, becomes: 3, kept: true}
	return all
}

// flux-f34: a field that leaves the bundle keeps its value where an autoscaler sets it from now on, and the plan says so, or what it becomes.
func TestF48AutoscalerTakesOver(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.scalerKinds()
	for name, c := range handovers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, workspace.Everything...)
			w.creates(c.others)
			protection := ownership.Prevent
			if c.adopted {
				w.creates(c.before)
				protection = ownership.None
			} else {
				w.MustApply(c.before)
			}
			values := w.watchField(c.before, c.field...)
			p := w.planWith(c.after, protection)
			forecasts, err := dryrun.Preview(t.Context(), w.Client, p, dryrun.Options{})
			if err != nil {
				t.Fatal(err)
			}
			check, err := dryrun.Run(t.Context(), w.Client, p, dryrun.Options{})
			if err != nil || len(check.Failed) > 0 {
				t.Fatalf("dry run: %v, %v", check.Failed, err)
			}
			first := w.Objects(c.before)[0]
			first.SetNamespace(w.Namespace)
			id := inventory.IDOf(first)
			note := fmt.Sprintf(".%s %d -> %d (default), because it leaves the bundle", strings.Join(c.field, "."), c.was, c.becomes)
			if c.kept {
				note = fmt.Sprintf("keeps .%s (%d) for ", strings.Join(c.field, "."), c.was)
			}
			for what, notes := range map[string][]string{"controller": check.Notes, "CLI": forecasts[id].Notes} {
				if len(notes) != 1 || !strings.Contains(notes[0], note) {
					t.Errorf("%s: the notes of the plan are %q, want one with %q", what, notes, note)
				}
			}
			if c.waits {
				w.ApplyObjects(w.Objects(c.after), w.Options())
			} else {
				w.adopting(c.after, protection)
				if p := w.planWith(c.after, ownership.Prevent); p.Count(plan.Unchanged) != p.Len() {
					t.Errorf("afterwards: %s", p.Summary())
				}
			}
			if seen := values(); seen[len(seen)-1] != c.becomes || slices.ContainsFunc(seen, func(v int64) bool { return v != c.was && v != c.becomes }) {
				t.Errorf("the field was %v, want %d in the end", seen, c.becomes)
			}
		})
	}
}

// Going back to a revision with replicas, and the end of an autoscaler, give the replicas back to the bundle, although the scale subresource
// was written last by the controller of autoscalers.
func TestF48ReplicasComeBack(t *testing.T) {
	scaler := anAutoscaler("autoscaling/v2", "apps/v1", "Deployment", "web")
	set, unset := aWorkload("Deployment", three), aWorkload("Deployment", "")
	for name, c := range map[string]struct {
		steps []string
		want  int32
	}{
		"the way back":                           {[]string{set, unset + scaler, set}, 3},
		"the way back with another number":       {[]string{set, unset + scaler, aWorkload("Deployment", "  replicas: 2\n")}, 2},
		"the bundle sets them beside autoscaler": {[]string{set, unset + scaler, set + scaler}, 5},
		"the way back before it scaled":          {[]string{set, unset + scaler, "", set, unset}, 1},
		"without an autoscaler for a while":      {[]string{set, unset + scaler, unset, set}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, workspace.Everything...)
			for i, step := range c.steps {
				if step == "" {
					continue
				}
				w.MustApply(step)
				if i > 0 && !strings.Contains(step, scaler) {
					w.prune(step)
				}
				if i == 1 && c.steps[2] != "" {
					workspace.Eventually(t, "the autoscaler scales", func() error {
						_, err := w.Admin.AppsV1().Deployments(w.Namespace).Patch(t.Context(), "web", types.MergePatchType,
							[]byte(`{"spec":{"replicas":5}}`), metav1.PatchOptions{FieldManager: "kube-controller-manager"}, "scale")
						return err
					})
				}
			}
			w.MustApply(c.steps[len(c.steps)-1])
			if got := w.Replicas(); got != c.want {
				t.Errorf("got %d replicas, want %d", got, c.want)
			}
			for _, entry := range w.live("web").GetManagedFields() {
				if raw := entry.FieldsV1.GetRawString(); c.want != 5 && strings.Contains(raw, "f:replicas") && entry.Subresource == "" && entry.Manager != w.Owner.Manager() {
					t.Errorf("%q still owns %s", entry.Manager, raw)
				}
			}
		})
	}
}

// The resources of a container are kept for a vertical autoscaler, as far as its policies say that it sets them.
func TestF48VerticalAutoscaler(t *testing.T) {
	const resources = `, resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 128Mi}}}]}`
	before := strings.Replace(aWorkload("Deployment", ""), "}]}", resources, 1)
	for name, c := range map[string]struct{ after, spec, want string }{
		"all":           {"}]}", "", `{"limits":{"memory":"128Mi"},"requests":{"cpu":"100m","memory":"64Mi"}}`},
		"requests only": {"}]}", "resourcePolicy: {containerPolicies: [{containerName: '*', controlledValues: RequestsOnly}]}", `{"requests":{"cpu":"100m","memory":"64Mi"}}`},
		"cpu only":      {"}]}", "resourcePolicy: {containerPolicies: [{containerName: web, controlledResources: [cpu]}]}", `{"requests":{"cpu":"100m"}}`},
		"off":           {"}]}", "updatePolicy: {updateMode: 'Off'}", `{}`},
		"off for one":   {"}]}", "resourcePolicy: {containerPolicies: [{containerName: '*'}, {containerName: web, mode: 'Off'}]}", `{}`},
		"a part leaves": {`, resources: {requests: {memory: 32Mi}}}]}`, "", `{"limits":{"memory":"128Mi"},"requests":{"cpu":"100m","memory":"32Mi"}}`},
		"what is kept is invalid beside what the bundle sets": {`, resources: {limits: {cpu: 50m}}}]}`, "", `{"limits":{"cpu":"50m","memory":"128Mi"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, workspace.Everything...)
			w.scalerKinds()
			w.MustApply(before)
			spec := "spec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, " + c.spec + "}\n"
			after := strings.Replace(aWorkload("Deployment", ""), "}]}", c.after, 1) + "\n---\napiVersion: autoscaling.k8s.io/v1\nkind: VerticalPodAutoscaler\nmetadata: {name: scaler}\n" + spec
			p := w.Plan(w.Objects(after))
			check, err := dryrun.Run(t.Context(), w.Client, p, dryrun.Options{})
			if err != nil || len(check.Failed) > 0 {
				t.Fatalf("dry run: %v, %v", check.Failed, err)
			}
			w.MustApply(after)
			containers, _, _ := unstructured.NestedSlice(w.live("web").Object, "spec", "template", "spec", "containers")
			fields, _ := containers[0].(map[string]any)
			if got, _ := json.Marshal(fields["resources"]); string(got) != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// A container with resources that were handed over goes when it leaves the bundle.
func TestF48HandedOverContainerLeaves(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.scalerKinds()
	side := func(rest string) string {
		return strings.Replace(aWorkload("Deployment", ""), "}]}", `}, {name: side, image: "registry.example/side:v1"`+rest+"}]}", 1) + aVerticalScaler
	}
	w.MustApply(side(", resources: {requests: {cpu: 100m}}"))
	w.MustApply(side(""))
	containers := func() []any {
		list, _, _ := unstructured.NestedSlice(w.live("web").Object, "spec", "template", "spec", "containers")
		return list
	}
	if text, _ := json.Marshal(containers()); !strings.Contains(string(text), `"cpu":"100m"`) {
		t.Fatalf("handed over: %s", text)
	}
	after := aWorkload("Deployment", "") + aVerticalScaler
	p := w.Plan(w.Objects(after))
	check, err := dryrun.Run(t.Context(), w.Client, p, dryrun.Options{})
	if err != nil || len(check.Failed)+len(check.Notes) > 0 {
		t.Errorf("dry run: %v, %v, %v", check.Failed, check.Notes, err)
	}
	result := w.MustApply(after)
	if list := containers(); len(list) != 1 || len(result.Outcomes[0].GaveWay) > 0 {
		t.Errorf("containers %v, removed %v", list, result.Outcomes[0].GaveWay)
	}
}

// An account that may not list autoscalers: those of the bundle are known, others are not, and the plan says so.
func TestF48AutoscalersNotReadable(t *testing.T) {
	w := newWorld(t, workspace.Rule("apps", "deployments", "*"), workspace.Rule("autoscaling", "horizontalpodautoscalers", "get,create,patch"))
	scaler := anAutoscaler("autoscaling/v2", "apps/v1", "Deployment", "web")
	w.MustApply(aWorkload("Deployment", three))
	notes := func(after string) string {
		check, err := dryrun.Run(t.Context(), w.Client, w.Plan(w.Objects(after)), dryrun.Options{})
		if err != nil || len(check.Failed) > 0 {
			t.Fatalf("dry run: %v, %v", check.Failed, err)
		}
		return strings.Join(check.Notes, "\n")
	}
	if got := notes(aWorkload("Deployment", "")); !strings.Contains(got, "has no permission to list horizontalpodautoscalers.autoscaling") || !strings.Contains(got, ".spec.replicas 3 -> 1 (default)") {
		t.Errorf("got %q", got)
	}
	if got := notes(aWorkload("Deployment", "") + scaler); !strings.Contains(got, "keeps .spec.replicas (3)") {
		t.Errorf("got %q", got)
	}
	w.MustApply(aWorkload("Deployment", "") + scaler)
	if got := w.Replicas(); got != 3 {
		t.Errorf("got %d replicas", got)
	}
}

// creates creates objects as another client.
func (w *world) creates(manifests string) {
	w.T.Helper()
	for _, object := range w.Objects(manifests) {
		object.SetNamespace(w.Namespace)
		kind := w.kindOf(object)
		workspace.Eventually(w.T, "another client creates "+object.GetKind(), func() error {
			_, err := w.Dynamic.Resource(kind.Resource).Namespace(object.GetNamespace()).Create(w.T.Context(), object, metav1.CreateOptions{FieldManager: "helm"})
			return err
		})
	}
}

// scalerKinds creates the CRDs of scalerKinds, which stay for the other tests.
func (w *world) scalerKinds() {
	w.T.Helper()
	for _, object := range w.Objects(scalerKinds) {
		_, err := w.Dynamic.Resource(definitions).Create(w.T.Context(), object, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			w.T.Fatal(err)
		}
	}
	for _, object := range []string{aScaledObject, aVerticalScaler, aFleet("")} {
		w.kindOf(w.Objects(object)[0])
	}
}

// kindOf says how the kind of an object is served, when it is.
func (w *world) kindOf(object *unstructured.Unstructured) discovery.Kind {
	w.T.Helper()
	var kind discovery.Kind
	workspace.Eventually(w.T, object.GetKind()+" is served", func() (err error) {
		w.Client.Kinds().Forget()
		kind, err = w.Client.Kinds().Find(w.T.Context(), object.GroupVersionKind())
		return err
	})
	return kind
}

// watchField watches an integer field of the first object, and returns the values that it has had.
func (w *world) watchField(manifests string, field ...string) func() []int64 {
	w.T.Helper()
	object := w.Objects(manifests)[0]
	objects := w.Dynamic.Resource(w.kindOf(object).Resource).Namespace(w.Namespace)
	events, err := objects.Watch(w.T.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + object.GetName()})
	if err != nil {
		w.T.Fatal(err)
	}
	return func() []int64 {
		w.T.Helper()
		defer events.Stop()
		last, err := objects.Get(w.T.Context(), object.GetName(), metav1.GetOptions{})
		if err != nil {
			w.T.Fatal(err)
		}
		var values []int64
		for event := range events.ResultChan() {
			now, _ := event.Object.(*unstructured.Unstructured)
			if now == nil {
				w.T.Fatalf("the watch ended: %v", event)
			}
			value, _, _ := unstructured.NestedInt64(now.Object, field...)
			values = append(values, value)
			if now.GetResourceVersion() == last.GetResourceVersion() {
				break
			}
		}
		return values
	}
}
