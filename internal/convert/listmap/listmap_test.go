// SPDX-License-Identifier: Apache-2.0

package listmap

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

func objectOf(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	var object unstructured.Unstructured
	data, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = object.UnmarshalJSON(data)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &object
}

// inPod is a Deployment with fields of the Pod, and others of its container a.
func inPod(pod, container string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {template: {spec: {" + pod + "containers: [{name: a" + container + "}]}}}\n"
}

func TestFluxF13Duplicates(t *testing.T) {
	t.Parallel()
	const in = "spec.template.spec.containers"
	for name, tc := range map[string]struct{ reason, object, fault, warning, kept string }{
		"Env": {"the kubelet takes the last one", inPod("", ", env: [{name: A, value: x}, {name: B}, {name: A, value: y}]"), "",
			in + "[a].env has name A twice: the last one counts, as for the kubelet", "env: [{name: B}, {name: A, value: y}]"},
		"EnvThrice": {"one warning", inPod("", ", env: [{name: A, value: x}, {name: A, value: z}, {name: A, value: y}]"), "",
			in + "[a].env has name A twice: the last one counts, as for the kubelet", "env: [{name: A, value: y}]"},
		"EnvFrom": {"a value and a reference", inPod("", ", env: [{name: A, value: x}, {name: A, valueFrom: {fieldRef: {fieldPath: a}}}]"), "",
			in + "[a].env has name A twice: the last one counts, as for the kubelet", "env: [{name: A, valueFrom: {fieldRef: {fieldPath: a}}}]"},
		"EnvUsed":   {"the earlier value is used", inPod("", ", env: [{name: P, value: x}, {name: P, value: $(P):y}]"), in + "[a].env has name P twice", "", ""},
		"EnvNeeded": {"the earlier value is used between", inPod("", ", env: [{name: P, value: x}, {name: Q, value: $(P)}, {name: P, value: y}]"), in + "[a].env has name P twice", "", ""},
		"EnvInit": {"of init containers as well", inPod("initContainers: [{name: i, env: [{name: A}, {name: A, value: x}]}], ", ""), "",
			"spec.template.spec.initContainers[i].env has name A twice: the last one counts, as for the kubelet", ""},
		"Ports":       {"two names for one", inPod("", ", ports: [{containerPort: 80, name: a}, {containerPort: 80, name: b}]"), in + "[a].ports has containerPort 80, protocol TCP twice", "", ""},
		"PortDefault": {"the protocol is TCP where it is left out", inPod("", ", ports: [{containerPort: 80}, {containerPort: 80, protocol: TCP, name: b}]"), in + "[a].ports has containerPort 80, protocol TCP twice", "", ""},
		"PortUDP":     {"another protocol", inPod("", ", ports: [{containerPort: 80}, {containerPort: 80, protocol: UDP}]"), "", "", ""},
		"Equal": {"nothing is lost", inPod("", ", ports: [{containerPort: 80, name: a}, {containerPort: 80, name: a}]"), "",
			in + "[a].ports has containerPort 80, protocol TCP twice, with the same content: one is left out", "ports: [{containerPort: 80, name: a}]"},
		"Containers": {"two containers", inPod("", "}, {name: a, image: x"), in + " has name a twice", "", ""},
		"Volumes":    {"two volumes", inPod("volumes: [{name: v, emptyDir: {}}, {name: v, configMap: {name: x}}], ", ""), "spec.template.spec.volumes has name v twice", "", ""},
		"Mounts":     {"one path", inPod("", ", volumeMounts: [{name: a, mountPath: /x}, {name: b, mountPath: /x}]"), in + "[a].volumeMounts has mountPath /x twice", "", ""},
		"Pull":       {"charts with empty names", inPod("imagePullSecrets: [{}, {name: ''}, {name: x}], ", ""), `spec.template.spec.imagePullSecrets has name "" twice`, "", ""},
		"CronJob": {"deeper", "apiVersion: batch/v1\nkind: CronJob\nspec: {jobTemplate: {spec: {template: {spec: {containers: [{name: a}, {name: a, image: x}]}}}}}\n",
			"spec.jobTemplate.spec.template.spec.containers has name a twice", "", ""},
		"Service": {"its ports", "apiVersion: v1\nkind: Service\nspec: {ports: [{port: 80, name: a}, {port: 80, name: b}, {port: 80, name: c, protocol: UDP}]}\n", "spec.ports has port 80, protocol TCP twice", "", ""},
		"Set": {"a set of texts", "apiVersion: v1\nkind: ConfigMap\nmetadata: {finalizers: [a/b, a/b]}\n", "",
			`metadata.finalizers has "a/b" twice, with the same content: one is left out`, ""},
		"Atomic":  {"lists that are replaced as a whole", inPod("tolerations: [{key: a}, {key: a}], ", ", args: [a, a]"), "", "", ""},
		"Custom":  {"nothing is known of it", "apiVersion: example.org/v1\nkind: Deployment\nspec: {containers: [{name: a}, {name: a}]}\n", "", "", ""},
		"Wrong":   {"another problem", inPod("", ", env: {a: b}, ports: [null, 1, [], {containerPort: {}}, {}]"), "", "", ""},
		"WrongIn": {"another problem", "apiVersion: apps/v1\nkind: Deployment\nspec: [{template: 1}]\n", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := objectOf(t, tc.object)
			got := Resolve(object)
			if strings.Join(got.Faults, "|") != tc.fault || strings.Join(got.Warnings, "|") != tc.warning {
				t.Errorf("%s: %q, %q", tc.reason, got.Faults, got.Warnings)
			}
			if tc.kept == "" {
				return
			}
			if diff := cmp.Diff(objectOf(t, inPod("", ", "+tc.kept)), object); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
		})
	}
}

// TestFluxF13AllLists: in every list with keys of every kind, items that are equal are refused by server-side apply and accepted once
// they are resolved; items that differ are found.
func TestFluxF13AllLists(t *testing.T) {
	converter := applyconfigurations.NewTypeConverter(scheme.Scheme)
	lists := 0
	for kind, of := range table().kinds {
		for _, place := range placesIn(of, nil) {
			lists++
			equal, at := sample(kind, place, map[string]any{}, map[string]any{})
			if _, err := converter.ObjectToTyped(equal); err == nil || !strings.Contains(err.Error(), "duplicate entries") {
				t.Fatalf("%s %s: server-side apply takes it: %v", kind.Kind, at, err)
			}
			if got := Resolve(equal); len(got.Warnings) != 1 || len(got.Faults) > 0 || !strings.HasPrefix(got.Warnings[0], at+" has ") {
				t.Errorf("%s %s: %q, %q", kind.Kind, at, got.Warnings, got.Faults)
			}
			if _, err := converter.ObjectToTyped(equal); err != nil {
				t.Errorf("%s %s: after the warning: %v", kind.Kind, at, err)
			}
			last := place[len(place)-1].field
			if len(last.keys) == 0 {
				continue
			}
			different, at := sample(kind, place, map[string]any{"x": "1"}, map[string]any{"x": "2"})
			if got := Resolve(different); len(got.Faults)+len(got.Warnings) != 1 || (len(got.Faults) == 1) == (last.of == envVar) {
				t.Errorf("%s %s: %q, %q", kind.Kind, at, got.Warnings, got.Faults)
			}
		}
	}
	if lists < 500 {
		t.Errorf("only %d lists", lists)
	}
}

// step is a field on the way to a list.
type step struct {
	name  string
	field field
}

// placesIn are the ways from a type to lists with keys; a type is not entered twice.
func placesIn(of string, way []string) [][]step {
	if slices.Contains(way, of) {
		return nil
	}
	var places [][]step
	for _, name := range slices.Sorted(maps.Keys(table().types[of])) {
		f := table().types[of][name]
		here := step{name, f}
		if f.how == "keyed" {
			places = append(places, []step{here})
		}
		for _, rest := range placesIn(f.of, append(slices.Clone(way), of)) {
			places = append(places, append([]step{here}, rest...))
		}
	}
	return places
}

// sample is an object with two items of the same key in the list at a place, and the path of the list as messages have it.
func sample(kind schema.GroupVersionKind, place []step, first, second map[string]any) (object *unstructured.Unstructured, at string) {
	last := place[len(place)-1].field
	var value any = []any{"a", "a"}
	if len(last.keys) > 0 {
		for _, item := range []map[string]any{first, second} {
			for _, key := range last.keys {
				item[key.name] = valueOf(last, key)
			}
		}
		value = []any{first, second}
	} else if strings.Contains(place[len(place)-1].name, "values") {
		value = []any{int64(1), int64(1)}
	}
	for i := len(place) - 1; i >= 0; i-- {
		s := place[i]
		suffix := ""
		if i < len(place)-1 {
			switch s.field.how {
			case "values":
				value, suffix = map[string]any{"k": value}, "[k]"
			case "items", "keyed":
				item := value.(map[string]any) //nolint:errcheck,forcetypeassert // made so
				for _, key := range s.field.keys {
					item[key.name] = valueOf(s.field, key)
				}
				suffix = "[0]"
				if name, is := item["name"].(string); is && s.field.how == "keyed" {
					suffix = "[" + name + "]"
				}
				value = []any{value}
			}
		}
		at = strings.TrimSuffix(s.name+suffix+"."+at, ".")
		value = map[string]any{s.name: value}
	}
	object = &unstructured.Unstructured{Object: value.(map[string]any)} //nolint:errcheck,forcetypeassert // made so
	object.SetGroupVersionKind(kind)
	return object, at
}

// valueOf is a value for a key: a number where its default is one.
func valueOf(f field, k key) any {
	if k.otherwise == "0" || strings.HasPrefix(k.name, "port") && f.of != "io.k8s.api.core.v1.ContainerPort" {
		return int64(7)
	}
	return "a"
}

// FuzzResolve: nothing that is read makes it panic, and what it has resolved it finds in order.
func FuzzResolve(f *testing.F) {
	f.Add("apps/v1", "Deployment", `{"spec":{"template":{"spec":{"containers":[{"name":"a","env":[{"name":"A"},{"name":"A","value":"x"}]}]}}}}`)
	f.Add("v1", "Service", `{"spec":{"ports":[{"port":80},{"port":80},{"port":"x"},null,[]]}}`)
	f.Fuzz(func(t *testing.T, version, kind, text string) {
		var object unstructured.Unstructured
		if yaml.Unmarshal([]byte(text), &object.Object) != nil || object.Object == nil {
			return
		}
		object.SetAPIVersion(version)
		object.SetKind(kind)
		first := Resolve(&object)
		if second := Resolve(&object); len(second.Warnings) > 0 && len(first.Warnings) < maxFound || fmt.Sprint(second.Faults) != fmt.Sprint(first.Faults) && len(first.Warnings) == 0 {
			t.Errorf("%+v, then %+v", first, second)
		}
	})
}
