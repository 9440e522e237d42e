// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// The kinds of autoscalers, in any version.
var (
	horizontal = schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}
	keda       = schema.GroupKind{Group: "keda.sh", Kind: "ScaledObject"}
	vertical   = schema.GroupKind{Group: "autoscaling.k8s.io", Kind: "VerticalPodAutoscaler"}
)

// Kinds are the kinds of autoscalers.
var Kinds = []schema.GroupKind{horizontal, keda, vertical}

// managers are the field managers under which the controllers of autoscalers write the scale subresource.
var managers = []string{"kube-controller-manager", "keda", "keda-operator"}

// IsManager tells whether a field manager of the scale subresource is the controller of a kind of Kinds. Other controllers scale
// without an object that says so.
func IsManager(manager string) bool { return slices.Contains(managers, manager) }

// Autoscaler is an object that scales another one.
type Autoscaler struct {
	inventory.ID
	Target   inventory.ID
	Parent   inventory.ID // the autoscaler that created this one; zero for most
	fromZero bool         // it scales a target that has no replicas
	policies []policy     // of a vertical one; the first that holds for a container counts
}

// policy says which resources of a container a vertical autoscaler sets.
type policy struct {
	container string // "*": each that has no policy of its own
	off       bool
	resources []string // none: cpu and memory
	requests  bool     // and not limits
}

// Of reads an autoscaler; false if the object is none, or is switched off.
func Of(object *unstructured.Unstructured) (Autoscaler, bool) {
	id := inventory.IDOf(object)
	if object.GetDeletionTimestamp() != nil {
		return Autoscaler{}, false
	}
	a := Autoscaler{ID: id}
	switch id.GroupKind() {
	case horizontal:
		least, found, _ := unstructured.NestedInt64(object.Object, "spec", "minReplicas")
		a.Target, a.fromZero = target(object, "scaleTargetRef", "", ""), found && least == 0
		if by := metav1.GetControllerOf(object); by != nil && by.Kind == keda.Kind {
			a.Parent = inventory.ID{Group: keda.Group, Kind: keda.Kind, Namespace: id.Namespace, Name: by.Name}
		}
	case keda:
		a.Target, a.fromZero = target(object, "scaleTargetRef", "apps/v1", "Deployment"), true
	case vertical:
		if mode, _, _ := unstructured.NestedString(object.Object, "spec", "updatePolicy", "updateMode"); mode == "Off" {
			return Autoscaler{}, false
		}
		a.Target, a.policies = target(object, "targetRef", "", ""), policiesOf(object)
	default:
		return Autoscaler{}, false
	}
	return a, a.Target.Kind != "" && a.Target.Name != ""
}

// target is the object to which a reference leads.
func target(object *unstructured.Unstructured, field, apiVersion, kind string) inventory.ID {
	ref, _, _ := unstructured.NestedMap(object.Object, "spec", field)
	text := func(name string) string {
		value, _ := ref[name].(string)
		return value
	}
	group, _, _ := strings.Cut(cmp.Or(text("apiVersion"), apiVersion), "/")
	if !strings.Contains(cmp.Or(text("apiVersion"), apiVersion), "/") {
		group = ""
	}
	return inventory.ID{Group: group, Kind: cmp.Or(text("kind"), kind), Namespace: object.GetNamespace(), Name: text("name")}
}

func policiesOf(object *unstructured.Unstructured) []policy {
	list, _, _ := unstructured.NestedSlice(object.Object, "spec", "resourcePolicy", "containerPolicies")
	var policies []policy
	for _, item := range list {
		fields, _ := item.(map[string]any)
		p := policy{off: fields["mode"] == "Off", requests: fields["controlledValues"] == "RequestsOnly"}
		p.container, _ = fields["containerName"].(string)
		p.resources, _, _ = unstructured.NestedStringSlice(fields, "controlledResources")
		policies = append(policies, p)
	}
	slices.SortStableFunc(policies, func(a, b policy) int { // the policy for all containers comes last
		return strings.Compare(strings.ReplaceAll(b.container, "*", ""), strings.ReplaceAll(a.container, "*", ""))
	})
	return policies
}

// IsVertical tells that a kind of Kinds sets resources, not replicas.
func IsVertical(kind schema.GroupKind) bool { return kind == vertical }

// IsVertical tells that the autoscaler sets resources, not replicas.
func (a Autoscaler) IsVertical() bool { return a.GroupKind() == vertical }

// Sets tells whether the autoscaler sets a field of its target. replicas is the path of the replicas.
func (a Autoscaler) Sets(path, replicas fieldpath.Path) bool {
	if !a.IsVertical() {
		return path.Equals(replicas)
	}
	container, list, resource := resourceIn(path)
	if container == "" {
		return false
	}
	for _, p := range a.policies {
		if p.container == container || p.container == "*" {
			return p.sets(list, resource)
		}
	}
	return policy{}.sets(list, resource)
}

func (p policy) sets(list, resource string) bool {
	resources := p.resources
	if len(resources) == 0 {
		resources = []string{"cpu", "memory"}
	}
	return !p.off && slices.Contains(resources, resource) && (list == "requests" || list == "limits" && !p.requests)
}

// resourceIn reads .spec.template.spec.containers[name="web"].resources.requests.cpu.
func resourceIn(path fieldpath.Path) (container, list, resource string) {
	if len(path) < 5 {
		return "", "", ""
	}
	end := path[len(path)-5:]
	if !isField(end[0], "containers") && !isField(end[0], "initContainers") || end[1].Key == nil || !isField(end[2], "resources") || end[3].FieldName == nil || end[4].FieldName == nil {
		return "", "", ""
	}
	for _, key := range *end[1].Key {
		if key.Name == "name" && key.Value.IsString() {
			return key.Value.AsString(), *end[3].FieldName, *end[4].FieldName
		}
	}
	return "", "", ""
}

func isField(e fieldpath.PathElement, name string) bool {
	return e.FieldName != nil && *e.FieldName == name
}

// Replicas is the path of the replicas of most kinds.
var Replicas = fieldpath.MakePathOrDie("spec", "replicas")

// MaySet tells whether a field is one that autoscalers set. replicas is the path of the replicas.
func MaySet(path, replicas fieldpath.Path) bool {
	container, _, _ := resourceIn(path)
	return container != "" || path.Equals(replicas)
}

// ReplicasIn is the path of the replicas by a CRD, in a version of its kind; nil if it has no scale subresource.
func ReplicasIn(crd *unstructured.Unstructured, version string) fieldpath.Path {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, item := range versions {
		fields, _ := item.(map[string]any)
		text, _, _ := unstructured.NestedString(fields, "subresources", "scale", "specReplicasPath")
		if fields["name"] != version || text == "" {
			continue
		}
		var path fieldpath.Path
		for _, name := range strings.Split(strings.TrimPrefix(text, "."), ".") {
			path = append(path, fieldpath.FieldNameElement(name))
		}
		return path
	}
	return nil
}
