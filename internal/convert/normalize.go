// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/convert/listmap"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/internal/convert/reserved"
)

// serverFields of metadata are filled in by a server; ownerReferences name UIDs of the cluster they were exported from.
var serverFields = []string{
	"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation",
	"managedFields", "ownerReferences", "resourceVersion", "selfLink", "uid",
}

// templates are where workloads keep the metadata of what they create; a step of a path that is a list stands for its items.
var templates = [][]string{
	{"spec", "template", "metadata"},
	{"spec", "jobTemplate", "metadata"},
	{"spec", "jobTemplate", "spec", "template", "metadata"},
	{"spec", "volumeClaimTemplates", "metadata"},
}

// trimTemplate drops the creationTimestamp that generators write as null.
func trimTemplate(value any, path []string) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			trimTemplate(item, path)
		}
	case map[string]any:
		if len(path) > 0 {
			trimTemplate(v[path[0]], path[1:])
			return
		}
		if when, there := v["creationTimestamp"]; there && when == nil {
			delete(v, "creationTimestamp")
		}
	}
}

// normalizer brings objects of every format into the form that is applied.
type normalizer struct {
	namespace string
	limits    Limits
	scopes    map[schema.GroupKind]Scope
	objects   []*unstructured.Unstructured
	origins   []string // files of the objects
	undecided []*unstructured.Unstructured
	warnings  []string
}

// run takes ownership of the manifests. Objects without an identity are left to those who report them.
func (n *normalizer) run(manifests []manifest.Manifest) []Problem {
	n.scopes = bundleScopes(manifests)
	first := make(map[manifest.ID]manifest.Manifest, len(manifests))
	var problems []Problem
	for _, m := range manifests {
		metadata, ok := m.Object.Object["metadata"].(map[string]any)
		if !ok {
			continue
		}
		problems = append(problems, n.object(m, metadata)...)
		n.objects = append(n.objects, m.Object)
		n.origins = append(n.origins, m.File)
		id := manifest.IDOf(m.Object)
		if earlier, double := first[id]; double && id.Name != "" {
			problems = append(problems, m.Problem(manifest.RuleDuplicate,
				fmt.Sprintf("the same object is already in %s (document %d)", earlier.File, earlier.Document), "keep one of them"))
			continue
		}
		first[id] = m
	}
	return problems
}

func (n *normalizer) object(m manifest.Manifest, metadata map[string]any) []Problem {
	object := m.Object.Object
	for _, field := range serverFields {
		delete(metadata, field)
	}
	delete(object, "status")
	for _, path := range templates {
		trimTemplate(object, path)
	}
	for _, warning := range reserved.Drop(m.Object) {
		n.warnings = append(n.warnings, m.Problem("", warning, "").String())
	}
	problems := append(texts(m, metadata, "labels"), texts(m, metadata, "annotations")...)
	if problem := n.limits.TooLarge(m); problem != nil { // overlays and converters add to what was read
		problems = append(problems, *problem)
	}
	n.place(m.Object, metadata)
	if m.Object.GetKind() == "Secret" && m.Object.GetAPIVersion() == "v1" {
		problems = append(problems, foldSecret(m)...)
	}
	return append(problems, n.lists(m)...)
}

// lists refuses items with the same key in lists of the kinds of Kubernetes, or leaves one out with a warning.
func (n *normalizer) lists(m manifest.Manifest) []Problem {
	resolved := listmap.Resolve(m.Object)
	for _, warning := range resolved.Warnings {
		n.warnings = append(n.warnings, m.Problem("", warning, "").String())
	}
	problems := make([]Problem, 0, len(resolved.Faults))
	for _, fault := range resolved.Faults {
		problems = append(problems, m.Problem(manifest.RuleDuplicate, fault+", which the API server refuses to apply", "keep one of them"))
	}
	return problems
}

// place gives an object the namespace that its kind's scope asks for.
func (n *normalizer) place(object *unstructured.Unstructured, metadata map[string]any) {
	switch n.scope(object.GroupVersionKind().GroupKind()) {
	case Cluster:
		delete(metadata, "namespace")
	case Namespaced:
		if object.GetNamespace() == "" {
			object.SetNamespace(n.namespace)
		}
	default:
		if object.GetNamespace() == "" {
			delete(metadata, "namespace")
			n.undecided = append(n.undecided, object)
		}
	}
}

func (n *normalizer) scope(kind schema.GroupKind) Scope {
	if scope, ok := n.scopes[kind]; ok {
		return scope
	}
	return ScopeOf(kind)
}

// result returns what was normalized; namespaces are required beside those the objects live in.
func (n *normalizer) result(namespaces ...string) Result {
	required := map[string]bool{}
	for _, name := range namespaces {
		required[name] = true
	}
	for _, object := range n.objects {
		required[object.GetNamespace()] = true
	}
	if len(n.undecided) > 0 {
		required[n.namespace] = true
	}
	for _, object := range n.objects {
		if object.GetKind() == "Namespace" && object.GetAPIVersion() == "v1" {
			delete(required, object.GetName())
		}
	}
	delete(required, "")
	return Result{Objects: n.objects, Origins: n.origins, Undecided: n.undecided, RequiredNamespaces: slices.Sorted(maps.Keys(required))}
}

// texts refuses labels and annotations that are not texts; an unquoted yes or 1.0 is the usual cause.
func texts(m manifest.Manifest, metadata map[string]any, field string) []Problem {
	value := metadata[field]
	if value == nil {
		delete(metadata, field)
		return nil
	}
	entries, ok := value.(map[string]any)
	if !ok {
		return []Problem{m.Problem(manifest.RuleValue, "metadata."+field+" is not a mapping", "correct it")}
	}
	var problems []Problem
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		if _, ok := entries[key].(string); !ok {
			problems = append(problems, m.Problem(manifest.RuleValue,
				fmt.Sprintf("metadata.%s[%q] is not a string", field, key), "put the value into quotation marks"))
		}
	}
	return problems
}

// foldSecret moves stringData into data, as the API server would, and checks data. It never quotes a value.
func foldSecret(m manifest.Manifest) []Problem {
	object := m.Object.Object
	data, problems := secretMap(m, "data")
	plain, more := secretMap(m, "stringData")
	problems = append(problems, more...)
	for _, key := range slices.Sorted(maps.Keys(data)) {
		text, ok := data[key].(string)
		if _, err := base64.StdEncoding.DecodeString(text); err != nil || !ok && data[key] != nil {
			problems = append(problems, m.Problem(manifest.RuleValue, fmt.Sprintf("data[%q] is not base64", key), "encode it, or use stringData"))
		}
	}
	for key, value := range plain {
		text, ok := value.(string)
		if !ok {
			problems = append(problems, m.Problem(manifest.RuleValue, fmt.Sprintf("stringData[%q] is not a string", key), "put the value into quotation marks"))
			continue
		}
		if data == nil {
			data = map[string]any{}
		}
		data[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	delete(object, "stringData")
	if len(data) > 0 {
		object["data"] = data
	}
	return problems
}

func secretMap(m manifest.Manifest, field string) (map[string]any, []Problem) {
	value := m.Object.Object[field]
	entries, ok := value.(map[string]any)
	if !ok && value != nil {
		return nil, []Problem{m.Problem(manifest.RuleValue, field+" is not a mapping", "correct it")}
	}
	return entries, nil
}
