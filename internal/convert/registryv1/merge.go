// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// product is an object and whether the bundle contains it, or it was generated.
type product struct {
	manifest.Manifest
	bundled bool
}

// mergeDuplicates makes one object of those that are there several times (O4): equal ones count once, ServiceAccounts are
// united, and so are a webhook's Service and one of the bundle. Everything else that differs is refused.
func (in *input) mergeDuplicates(products []product) ([]manifest.Manifest, []manifest.Problem) {
	first := make(map[manifest.ID]product, len(products))
	out := make([]manifest.Manifest, 0, len(products))
	var problems []manifest.Problem
	for _, p := range products {
		id := manifest.IDOf(p.Object)
		earlier, double := first[id]
		if !double {
			first[id] = p
			out = append(out, p.Manifest)
			continue
		}
		if contradiction := in.merge(earlier, p); contradiction != "" {
			problems = append(problems, p.Problem("O4",
				fmt.Sprintf("there is another one of this name in %s, and they differ in %s", earlier.File, contradiction), "keep one of them, or make them equal"))
		}
	}
	return out, problems
}

// merge adds extra to object and returns what contradicts, in words; empty: nothing.
func (in *input) merge(object, extra product) string {
	if reflect.DeepEqual(object.Object.Object, extra.Object.Object) {
		return ""
	}
	switch kind := manifest.IDOf(object.Object).GroupKind; {
	case kind == schema.GroupKind{Kind: "ServiceAccount"}:
		return unite(object.Object.Object, extra.Object.Object, "")
	case kind == schema.GroupKind{Kind: "Service"} && object.bundled && !extra.bundled:
		return in.joinService(object.Manifest, extra.Manifest)
	}
	return "their contents"
}

// unite adds what extra has and object lacks, mapping by mapping; lists are united, item by item.
func unite(object, extra map[string]any, path string) string {
	contradiction := ""
	for key, value := range extra {
		where := path + "." + key
		present, there := object[key]
		switch p := present.(type) {
		case map[string]any:
			if more, ok := value.(map[string]any); ok {
				contradiction = smallest(contradiction, unite(p, more, where))
				continue
			}
		case []any:
			if more, ok := value.([]any); ok {
				object[key] = uniteLists(p, more)
				continue
			}
		}
		if !there {
			object[key] = value
		} else if !reflect.DeepEqual(present, value) {
			contradiction = smallest(contradiction, where[1:])
		}
	}
	return contradiction
}

// uniteLists appends what is not there yet.
func uniteLists(items, more []any) []any {
	there := make(map[string]bool, len(items))
	for _, item := range items {
		there[fingerprint(item)] = true
	}
	for _, item := range more {
		if mark := fingerprint(item); !there[mark] {
			there[mark] = true
			items = append(items, item)
		}
	}
	return items
}

// fingerprint is the same for equal values; what was read can always be written.
func fingerprint(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(data)
}

// smallest keeps messages the same whatever the order of a map is.
func smallest(a, b string) string {
	if a == "" || b == "" {
		return cmp.Or(a, b)
	}
	return min(a, b)
}

// joinService adds the ports and annotations of a webhook's Service to one that the bundle contains under the same name.
// The API server must find the webhook: where the two disagree about the Pods or the target of a port, the webhook's wins.
func (in *input) joinService(bundled, generated manifest.Manifest) string {
	spec, ok := bundled.Object.Object["spec"].(map[string]any)
	own, _ := generated.Object.Object["spec"].(map[string]any)
	if !ok || own == nil {
		return "spec"
	}
	if annotations := generated.Object.GetAnnotations(); len(annotations) > 0 {
		bundled.Object.SetAnnotations(overlay(bundled.Object.GetAnnotations(), annotations))
	}
	if own["selector"] != nil && !reflect.DeepEqual(spec["selector"], own["selector"]) {
		in.Warn("%s: Service %s selects other Pods than the webhook of that name, and now selects the webhook's", bundled.File, bundled.Object.GetName())
		spec["selector"] = own["selector"]
	}
	ports, _ := spec["ports"].([]any)
	added, _ := own["ports"].([]any)
	for _, port := range added {
		ports = in.joinPort(bundled, ports, port)
	}
	spec["ports"] = namePorts(ports)
	return ""
}

func overlay(present, more map[string]string) map[string]string {
	if present == nil {
		present = map[string]string{}
	}
	for key, value := range more {
		present[key] = value
	}
	return present
}

// joinPort adds a webhook's port, or corrects where the bundle's port of that number leads.
func (in *input) joinPort(service manifest.Manifest, ports []any, added any) []any {
	for _, port := range ports {
		entry, ok := port.(map[string]any)
		if !ok || portKey(port) != portKey(added) {
			continue
		}
		if target := targetOf(added); !reflect.DeepEqual(targetOf(port), target) {
			in.Warn("%s: port %v of Service %s leads elsewhere than the webhook of that name, and now leads to the webhook", service.File, entry["port"], service.Object.GetName())
			entry["targetPort"] = target
		}
		return ports
	}
	return append(ports, added)
}

// portKey is what has to be unique about a port of a Service.
func portKey(port any) string {
	entry, _ := port.(map[string]any)
	protocol, ok := entry["protocol"]
	if !ok {
		protocol = "TCP"
	}
	return fmt.Sprint(entry["port"], "/", protocol)
}

func targetOf(port any) any {
	entry, _ := port.(map[string]any)
	if target, ok := entry["targetPort"]; ok {
		return target
	}
	return entry["port"]
}

// namePorts gives ports without a name one, for a Service of several ports must name them all, each differently. Names that
// the bundle chose stay.
func namePorts(ports []any) []any {
	if len(ports) < 2 {
		return ports
	}
	taken := map[any]bool{}
	for _, port := range ports {
		entry, ok := port.(map[string]any)
		if !ok {
			continue
		}
		for i := 0; entry["name"] == nil || entry["name"] == "" || taken[fmt.Sprint(entry["name"])]; i++ {
			entry["name"] = portName(entry["port"], i)
		}
		taken[fmt.Sprint(entry["name"])] = true
	}
	return ports
}

func portName(port any, attempt int) string {
	if attempt == 0 {
		return fmt.Sprintf("port-%v", port)
	}
	return fmt.Sprintf("port-%v-%d", port, attempt)
}
