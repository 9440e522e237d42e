// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/apply/observe"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
	"github.com/satchel-dev/satchel/tests/workspace"
)

// adopting plans and applies with a protection.
func (w *world) adopting(manifests string, protection ownership.Protection) apply.Result {
	w.T.Helper()
	const attempts = 5 // controllers write status meanwhile, and an adoption is on the condition that the object did not change
	for attempt := 1; ; attempt++ {
		p := w.planWith(manifests, protection)
		if len(p.Violations) > 0 {
			w.T.Fatalf("the plan is refused: %v", p.Violations)
		}
		result, err := apply.Apply(w.T.Context(), w.Client, p, w.Options())
		if err == nil && result.Complete() {
			w.Inventory = result.Inventory
			return result
		}
		conflict := slices.ContainsFunc(result.Errors(), func(e *objecterror.Error) bool { return e.Reason == metav1.StatusReasonConflict })
		if err != nil || !conflict || attempt == attempts {
			w.T.Fatalf("stopped at stage %q: %v %v", result.Stage, result.Errors(), err)
		}
	}
}

func (w *world) planWith(manifests string, protection ownership.Protection) plan.Plan {
	w.T.Helper()
	in, err := observe.Cluster(w.T.Context(), w.Client, observe.Request{
		Owner: w.Owner, Desired: w.Objects(manifests), Previous: w.Inventory, InstallNamespace: w.Namespace, Rules: plan.Rules{Protection: protection},
	})
	if err != nil {
		w.T.Fatal(err)
	}
	return plan.Make(in)
}

const adoptedDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {from: bundle}}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: "example.org/web:2"}]
`

// former is the same Deployment with another owner: it has more fields, labels and annotations of
// several tools, and an owner reference with which it would be deleted.
const former = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","labels":{"theirs":"yes","app.kubernetes.io/managed-by":"Helm",
"kustomize.toolkit.fluxcd.io/name":"x","kustomize.toolkit.fluxcd.io/namespace":"y"},
"annotations":{"meta.helm.sh/release-name":"web","meta.helm.sh/release-namespace":"shop","kubectl.kubernetes.io/last-applied-configuration":"{}"},
"finalizers":["example.org/theirs"],
"ownerReferences":[{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","name":"web.v1","uid":"00000000-0000-0000-0000-000000000001"},
{"apiVersion":"v1","kind":"ConfigMap","name":"unrelated","uid":"00000000-0000-0000-0000-000000000002","controller":true}]},
"spec":{"paused":true,"replicas":3,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web","extra":"yes"}},
"spec":{"hostNetwork":false,"nodeSelector":{"theirs":"1"},"containers":[{"name":"web","image":"example.org/web:1","env":[{"name":"THEIRS","value":"1"}],
"command":["theirs"]},{"name":"sidecar","image":"example.org/sidecar:1"}]}}}}`

// An adopted object is complete: fields that only its former owner set are removed,
// whatever manager and operation wrote them; fields that controllers and
// single commands wrote stay.
func TestAdopt(t *testing.T) {
	for _, tc := range []struct{ name, manager, how string }{
		{"applied by kubectl", "kubectl-client-side-apply", "update"},
		{"created", "kubectl-create", "update"},
		{"applied on the server", "kubectl", "apply"},
		{"Helm 3", "helm", "update"},
		{"Helm 4", "helm", "apply"},
		{"Flux", "kustomize-controller", "apply"},
		{"Argo CD", "argocd-controller", "update"},
		{"OLM", "olm", "update"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, workspace.Everything...)
			w.formerly(tc.manager, tc.how)
			if p := w.planWith(adoptedDeployment, ownership.IfUnmanaged); len(p.Violations) != 1 || !strings.Contains(p.Violations[0].String(), "Flux Kustomization y/x") {
				t.Fatalf("IfUnmanaged: %v", p.Violations)
			}
			result := w.adopting(adoptedDeployment, ownership.None)
			if result.Count(apply.Adopted) != 1 {
				t.Errorf("outcomes %v", result.Outcomes)
			}
			w.wantAdopted()
			if p := w.planWith(adoptedDeployment, ownership.Prevent); !p.Quiet() {
				t.Errorf("adopted once, then: %s", p.Summary())
			}
		})
	}
}

// formerly creates the Deployment as its former owner does, and then has other clients write it.
func (w *world) formerly(manager, how string) {
	w.T.Helper()
	ctx, deployments := w.T.Context(), w.Admin.AppsV1().Deployments(w.Namespace)
	var err error
	if how == "apply" {
		_, err = deployments.Patch(ctx, "web", types.ApplyPatchType, []byte(former), metav1.PatchOptions{FieldManager: manager})
	} else {
		object := &appsv1.Deployment{}
		if err = json.Unmarshal([]byte(former), object); err == nil {
			_, err = deployments.Create(ctx, object, metav1.CreateOptions{FieldManager: manager})
		}
	}
	if err != nil {
		w.T.Fatal(err)
	}
	for by, patch := range map[string]string{
		"kubectl-rollout":  `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"now"}}}}}`,
		"kubectl-annotate": `{"metadata":{"annotations":{"a-person":"said"}}}`,
		"some-operator":    `{"spec":{"revisionHistoryLimit":3}}`,
	} {
		if _, err := deployments.Patch(ctx, "web", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: by}); err != nil {
			w.T.Fatal(err)
		}
	}
}

func (w *world) wantAdopted() {
	w.T.Helper()
	live, err := w.Admin.AppsV1().Deployments(w.Namespace).Get(w.T.Context(), "web", metav1.GetOptions{})
	if err != nil {
		w.T.Fatal(err)
	}
	pod := live.Spec.Template.Spec
	if live.Spec.Paused || *live.Spec.Replicas != 1 || len(pod.NodeSelector) > 0 || len(pod.Containers) != 1 ||
		len(pod.Containers[0].Env)+len(pod.Containers[0].Command) > 0 || pod.Containers[0].Image != "example.org/web:2" || live.Spec.Template.Labels["extra"] != "" {
		w.T.Errorf("fields of the former owner stay: %+v", live.Spec)
	}
	for _, key := range []string{"theirs", "app.kubernetes.io/managed-by", "kustomize.toolkit.fluxcd.io/name", "kustomize.toolkit.fluxcd.io/namespace"} {
		if _, found := live.Labels[key]; found {
			w.T.Errorf("label %s stays", key)
		}
	}
	for _, key := range []string{"meta.helm.sh/release-name", "meta.helm.sh/release-namespace", "kubectl.kubernetes.io/last-applied-configuration"} {
		if _, found := live.Annotations[key]; found {
			w.T.Errorf("annotation %s stays", key)
		}
	}
	if len(live.OwnerReferences) > 0 {
		w.T.Errorf("owner references stay: %v", live.OwnerReferences)
	}
	if live.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] == "" || live.Annotations["a-person"] == "" || *live.Spec.RevisionHistoryLimit != 3 {
		w.T.Error("what others set went")
	}
	if !slices.Contains(live.Finalizers, "example.org/theirs") {
		w.T.Error("a finalizer went")
	}
	for _, entry := range live.ManagedFields {
		if ownership.IsFormer(entry.Manager) && !strings.Contains(entry.FieldsV1.GetRawString(), "f:finalizers") {
			w.T.Errorf("%s still manages %s", entry.Manager, entry.FieldsV1.GetRawString())
		}
	}
	if live.Labels[inventory.LabelDeployment] != w.Owner.Name {
		w.T.Errorf("labels %v", live.Labels)
	}
}

// Replicas that an autoscaler manages stay its own through an adoption.
func TestAdoptLeavesTheAutoscaler(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.formerly("kubectl-client-side-apply", "update")
	w.creates(anAutoscaler("autoscaling/v2", "apps/v1", "Deployment", "web"))
	scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: w.Namespace}, Spec: autoscalingv1.ScaleSpec{Replicas: 5}}
	_, err := w.Admin.AppsV1().Deployments(w.Namespace).UpdateScale(t.Context(), "web", scale, metav1.UpdateOptions{FieldManager: "kube-controller-manager"})
	if err != nil {
		t.Fatal(err)
	}
	w.adopting(adoptedDeployment, ownership.None)
	live, err := w.Admin.AppsV1().Deployments(w.Namespace).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil || *live.Spec.Replicas != 5 {
		t.Errorf("replicas %d, %v", *live.Spec.Replicas, err)
	}
}

// Objects that another deployment really owns are never adopted; objects that only carry its
// labels are. An object that another client took between plan and write is not adopted.
func TestT13NoneDoesNotTakeFromDeployments(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.MustApply(oneMap)
	other := w.second()
	p := other.planWith(oneMap, ownership.None)
	if len(p.Violations) != 1 || !strings.Contains(p.Violations[0].String(), "BundleDeployment "+w.Namespace+"/app") {
		t.Errorf("violations %v", p.Violations)
	}
	forged := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"two","labels":{"satchel.dev/deployment":"app","satchel.dev/namespace":"` + w.Namespace + `"}},"data":{"colour":"green"}}`
	w.Patch(types.ApplyPatchType, "two", forged, "attacker")
	two := strings.Replace(oneMap, "one", "two", 1)
	if p := other.planWith(two, ownership.IfUnmanaged); len(p.Violations) != 1 {
		t.Errorf("labels of another deployment count as those of an owner: %v", p.Violations)
	}
	late := other.planWith(two, ownership.None)
	other.adopting(two, ownership.None)
	third := w.second()
	third.Owner.Name = "third"
	late.Owner = third.Owner
	result, err := apply.Apply(t.Context(), third.Client, late, apply.Options{})
	if err != nil || len(result.Errors()) != 1 || !strings.Contains(result.Errors()[0].Error(), "BundleDeployment "+w.Namespace+"/other") {
		t.Errorf("taken after it was planned: %v, %v", result.Outcomes, err)
	}
}

// With the orphan annotation every object can be adopted that no deployment really owns.
func TestAdoptMarked(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.formerly("kubectl-client-side-apply", "update")
	w.refusedWith(adoptedDeployment, violation.Collision, "Flux Kustomization y/x", inventory.AnnotationOrphaned, "spec.apply.collisionProtection to None")
	_, err := w.Admin.AppsV1().Deployments(w.Namespace).Patch(t.Context(), "web", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"satchel.dev/orphaned":"true"}}}`), metav1.PatchOptions{FieldManager: "kubectl-annotate"})
	if err != nil {
		t.Fatal(err)
	}
	w.adopting(adoptedDeployment, ownership.Prevent)
	w.wantAdopted()
}
