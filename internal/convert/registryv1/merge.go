// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// mergeDuplicates makes one object of those that are there several times (O4): equal ones count once, ServiceAccounts are
// united, Services share their ports. What contradicts itself is refused.
func mergeDuplicates(manifests []manifest.Manifest) ([]manifest.Manifest, []manifest.Problem) {
	first := make(map[manifest.ID]manifest.Manifest, len(manifests))
	out := make([]manifest.Manifest, 0, len(manifests))
	var problems []manifest.Problem
	for _, m := range manifests {
		id := manifest.IDOf(m.Object)
		earlier, double := first[id]
		if !double {
			first[id] = m
			out = append(out, m)
			continue
		}
		if contradiction := merge(earlier, m); contradiction != "" {
			problems = append(problems, m.Problem("O4",
				fmt.Sprintf("there is another one of this name in %s, and they differ in %s", earlier.File, contradiction), "keep one of them, or make them equal"))
		}
	}
	return out, problems
}

// merge adds extra to object and returns what contradicts, in words; empty: nothing.
func merge(object, extra manifest.Manifest) string {
	if reflect.DeepEqual(object.Object.Object, extra.Object.Object) {
		return ""
	}
	switch manifest.IDOf(object.Object).GroupKind {
	case schema.GroupKind{Kind: "ServiceAccount"}:
		return unite(object.Object.Object, extra.Object.Object, "")
	case schema.GroupKind{Kind: "Service"}:
		return mergeServices(object.Object.Object, extra.Object.Object)
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
				object[key] = addMissing(p, more)
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

// smallest keeps messages the same whatever the order of a map is.
func smallest(a, b string) string {
	if a == "" || b == "" {
		return cmp.Or(a, b)
	}
	return min(a, b)
}

// mergeServices unites two Services that lead to the same Pods; ports of one number must lead to the same target.
func mergeServices(object, extra map[string]any) string {
	spec, _ := object["spec"].(map[string]any)
	more, _ := extra["spec"].(map[string]any)
	if spec == nil || more == nil {
		return "spec"
	}
	ports, _ := spec["ports"].([]any)
	added, _ := more["ports"].([]any)
	if spec["selector"] != nil && more["selector"] != nil && !reflect.DeepEqual(spec["selector"], more["selector"]) {
		return "spec.selector"
	}
	delete(more, "ports")
	if contradiction := unite(object, extra, ""); contradiction != "" {
		return contradiction
	}
	united, contradiction := unitePorts(ports, added)
	spec["ports"] = united
	return contradiction
}

func unitePorts(ports, added []any) ([]any, string) {
	for _, extra := range added {
		number := portNumber(extra)
		known := false
		for _, port := range ports {
			if portNumber(port) != number {
				continue
			}
			if !sameTarget(port, extra) {
				return ports, fmt.Sprintf("where port %v leads", number.port)
			}
			known = true
		}
		if !known {
			ports = append(ports, extra)
		}
	}
	return namePorts(ports), ""
}

// portKey is what has to be unique about a port of a Service.
type portKey struct{ port, protocol any }

func portNumber(port any) portKey {
	entries, _ := port.(map[string]any)
	protocol, ok := entries["protocol"]
	if !ok {
		protocol = "TCP"
	}
	return portKey{fmt.Sprint(entries["port"]), protocol}
}

func sameTarget(a, b any) bool { return targetOf(a) == targetOf(b) }

func targetOf(port any) string {
	entries, _ := port.(map[string]any)
	if target, ok := entries["targetPort"]; ok {
		return fmt.Sprint(target)
	}
	return fmt.Sprint(entries["port"])
}

// namePorts gives ports without a name one, for a Service of several ports must name them all.
func namePorts(ports []any) []any {
	if len(ports) < 2 {
		return ports
	}
	for i, port := range ports {
		if entries, ok := port.(map[string]any); ok && (entries["name"] == nil || entries["name"] == "") {
			entries["name"] = "port-" + strconv.Itoa(i)
		}
	}
	return ports
}
