// SPDX-License-Identifier: Apache-2.0

package impact

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/fields"
)

// templates are the paths of the Pod template, for the kinds that run containers.
var templates = map[schema.GroupKind][]string{
	{Kind: "Pod"}:                        {},
	{Kind: "ReplicationController"}:      {"spec", "template"},
	{Group: "apps", Kind: "Deployment"}:  {"spec", "template"},
	{Group: "apps", Kind: "StatefulSet"}: {"spec", "template"},
	{Group: "apps", Kind: "DaemonSet"}:   {"spec", "template"},
	{Group: "apps", Kind: "ReplicaSet"}:  {"spec", "template"},
	{Group: "batch", Kind: "Job"}:        {"spec", "template"},
	{Group: "batch", Kind: "CronJob"}:    {"spec", "jobTemplate", "spec", "template"},
}

// Image is a container with another image. From is empty where the container is
// new, and To where it is removed.
type Image struct {
	Object    inventory.ID
	Container string
	From, To  string
}

// images compares those of containers, init and ephemeral ones included. Images in other fields,
// such as RELATED_IMAGE variables, are not run by the workload.
func images(was, will objects) []Image {
	var list []Image
	for _, id := range ids(was, will) {
		if _, runs := templates[id.GroupKind()]; !runs {
			continue
		}
		from, to := containers(id, was[id]), containers(id, will[id])
		names := map[string]bool{}
		for name := range from {
			names[name] = true
		}
		for name := range to {
			names[name] = true
		}
		for name := range names {
			if from[name] != to[name] {
				list = append(list, Image{Object: id, Container: name, From: from[name], To: to[name]})
			}
		}
	}
	slices.SortFunc(list, func(a, b Image) int {
		return cmp.Or(a.Object.Compare(b.Object), strings.Compare(a.Container, b.Container))
	})
	return list
}

// containers are the images by the names of the containers, which are unique in a Pod.
func containers(id inventory.ID, object *unstructured.Unstructured) map[string]string {
	found := map[string]string{}
	if object == nil {
		return found
	}
	path := templates[id.GroupKind()]
	for _, field := range []string{"initContainers", "containers", "ephemeralContainers"} {
		for i, item := range items(object.Object, append(slices.Clone(path), "spec", field)...) {
			container, _ := item.(map[string]any)
			name, _ := container["name"].(string)
			if name == "" {
				name = fmt.Sprintf("%s[%d]", field, i)
			}
			if image, _ := container["image"].(string); image != "" {
				found[name] = image
			}
		}
	}
	return found
}

// items of a list; none where the value is not a list. Nothing is copied.
func items(object map[string]any, path ...string) []any {
	value, _, _ := unstructured.NestedFieldNoCopy(object, path...)
	list, _ := value.([]any)
	return list
}

// Restart is a workload with Pods that are replaced because their template changes.
type Restart struct {
	Object inventory.ID
	// Fields of the template that change, the first ones, as .spec.containers[name="web"].image.
	Fields []string
	// Note names a further condition, as for a workload that replaces Pods only once
	// they are deleted; empty: none.
	Note string
}

// mostFields of a template are named.
const mostFields = 20

var restarting = map[schema.GroupKind]bool{
	{Group: "apps", Kind: "Deployment"}: true, {Group: "apps", Kind: "StatefulSet"}: true, {Group: "apps", Kind: "DaemonSet"}: true,
}

func restarts(was, will objects) []Restart {
	var list []Restart
	for _, id := range ids(was, will) {
		if !restarting[id.GroupKind()] || was[id] == nil || will[id] == nil {
			continue
		}
		path := templates[id.GroupKind()]
		from, _, _ := unstructured.NestedFieldNoCopy(was[id].Object, path...)
		to, _, _ := unstructured.NestedFieldNoCopy(will[id].Object, path...)
		changes, _ := fields.Values(from, to)
		if len(changes) == 0 {
			continue
		}
		restart := Restart{Object: id, Note: noteOn(will[id])}
		for _, change := range changes[:min(len(changes), mostFields)] {
			restart.Fields = append(restart.Fields, change.Path)
		}
		list = append(list, restart)
	}
	return list
}

// noteOn says on which condition the Pods of a workload are replaced.
func noteOn(workload *unstructured.Unstructured) string {
	if paused, _, _ := unstructured.NestedBool(workload.Object, "spec", "paused"); paused {
		return "when it is no longer paused"
	}
	if strategy, _, _ := unstructured.NestedString(workload.Object, "spec", "updateStrategy", "type"); strategy == "OnDelete" {
		return "when its Pods are deleted: its update strategy is OnDelete"
	}
	return ""
}
