// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// follower changes the names by which one object names others.
type follower struct {
	renames
	namespace string // of the object
	object    map[string]any
}

// follow applies all rules for objects of a kind.
func (f follower) follow(kind schema.GroupKind) {
	if at, has := podSpecs[kind]; has {
		for _, rule := range podReferences {
			f.apply(rule, slices.Concat(at, rule.path))
		}
	}
	for _, rule := range references[kind] {
		f.apply(rule, rule.path)
	}
	f.annotations()
}

// apply finds what a rule is about, and puts the new name there.
func (f follower) apply(rule reference, path []string) {
	visit(f.object, path, func(holder map[string]any, key string) {
		switch value := holder[key].(type) {
		case string:
			if rule.form == byName {
				holder[key] = f.name(rule.to, f.namespace, value)
			}
		case []any:
			f.list(rule, value, holder)
		case map[string]any:
			f.mapping(rule, value)
		}
	})
}

// list is a list of names or of references.
func (f follower) list(rule reference, items []any, holder map[string]any) {
	for i, item := range items {
		switch value := item.(type) {
		case string:
			if rule.form == byResource {
				items[i] = f.resource(holder, value)
			}
		case map[string]any:
			f.mapping(rule, value)
		}
	}
}

// mapping is a reference that is a mapping with a name, and perhaps namespace and kind.
func (f follower) mapping(rule reference, value map[string]any) {
	name, ok := value["name"].(string)
	if !ok || rule.form != byMapping && rule.form != byPolicy {
		return
	}
	namespace := f.namespace
	if given, _ := value["namespace"].(string); given != "" {
		namespace = given
	}
	to := rule.to
	if rule.form == byPolicy {
		spec, _ := f.object["spec"].(map[string]any)
		policy, _ := spec["policyName"].(string)
		to = f.params[manifest.ID{GroupKind: rule.to, Name: policy}]
	}
	if kind, _ := value["kind"].(string); kind != "" {
		to = typed(rule.to, kind, value)
	}
	value["name"] = f.name(to, namespace, name)
}

// typed is the kind of a reference that names its kind. Without a group it is one of the rule's.
func typed(rule schema.GroupKind, kind string, value map[string]any) schema.GroupKind {
	group := rule.Group
	if kind != rule.Kind && kind == "ServiceAccount" {
		group = ""
	}
	if given, ok := value["apiGroup"].(string); ok {
		group = given
	}
	if version, ok := value["apiVersion"].(string); ok {
		parsed, err := schema.ParseGroupVersion(version)
		if err != nil {
			return schema.GroupKind{}
		}
		group = parsed.Group
	}
	if given, ok := value["group"].(string); ok {
		group = given
	}
	return kindOf(group, kind)
}

// name is what an object is called now: in the namespace, of the whole cluster, or anywhere if the one that names it is in none.
func (f follower) name(kind schema.GroupKind, namespace, name string) string {
	if now := f.newName(kind, namespace, name); now != name {
		return now
	}
	if now := f.newName(kind, "", name); now != name {
		return now
	}
	if namespace == "" {
		return f.newNameAnywhere(kind, name)
	}
	return name
}

// resource is a name in a rule of a Role, which says by groups and resources what it is of.
func (f follower) resource(rule map[string]any, name string) string {
	for _, group := range texts(rule["apiGroups"]) {
		for _, resource := range texts(rule["resources"]) {
			resource, _, _ = strings.Cut(resource, "/")
			if kind, known := f.kinds[schema.GroupResource{Group: group, Resource: resource}]; known {
				if now := f.name(kind, f.namespace, name); now != name {
					return now
				}
			}
		}
	}
	return name
}

func texts(list any) []string {
	items, _ := list.([]any)
	var out []string
	for _, item := range items {
		if text, ok := item.(string); ok {
			out = append(out, text)
		}
	}
	return out
}

// annotations are those that name objects of the bundle as name or namespace/name.
func (f follower) annotations() {
	metadata, _ := f.object["metadata"].(map[string]any)
	entries, _ := metadata["annotations"].(map[string]any)
	for key, to := range annotations {
		value, _ := entries[key].(string)
		if value == "" {
			continue
		}
		namespace, name, spaced := strings.Cut(value, "/")
		if !spaced {
			entries[key] = f.name(to, f.namespace, value)
			continue
		}
		entries[key] = namespace + "/" + f.name(to, namespace, name)
	}
	labels, _ := metadata["labels"].(map[string]any)
	if service, _ := labels[serviceOfSlice].(string); service != "" {
		labels[serviceOfSlice] = f.name(kindOf("", "Service"), f.namespace, service)
	}
	f.hosts()
}

// serviceOfSlice is the label by which an EndpointSlice says of which Service it is.
const serviceOfSlice = "kubernetes.io/service-name"

// hosts are those of Services: the names under which a Certificate of cert-manager is valid, and the one that a Service stands for.
func (f follower) hosts() {
	spec, _ := f.object["spec"].(map[string]any)
	if name, ok := spec["externalName"].(string); ok && f.object["kind"] == "Service" {
		spec["externalName"] = Host(f.renames, name)
	}
	if f.object["kind"] != "Certificate" {
		return
	}
	if name, ok := spec["commonName"].(string); ok {
		spec["commonName"] = Host(f.renames, name)
	}
	names, _ := spec["dnsNames"].([]any)
	for i, item := range names {
		if name, ok := item.(string); ok {
			names[i] = Host(f.renames, name)
		}
	}
}

// visit calls found with each mapping that has the last step of a path, and that step. Steps through lists go into all of
// their items.
func visit(value any, path []string, found func(holder map[string]any, key string)) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			visit(item, path, found)
		}
	case map[string]any:
		next, there := v[path[0]]
		switch {
		case !there:
		case len(path) == 1:
			found(v, path[0])
		default:
			visit(next, path[1:], found)
		}
	}
}
