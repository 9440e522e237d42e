// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ImageUse is an image and what uses it.
type ImageUse struct {
	Image string   `json:"image"`
	Uses  []string `json:"uses"`
}

// podTemplates are where kinds have theirs.
var podTemplates = map[string][]string{
	"Pod":         {"spec"},
	"CronJob":     {"spec", "jobTemplate", "spec", "template", "spec"},
	"DaemonSet":   {"spec", "template", "spec"},
	"Deployment":  {"spec", "template", "spec"},
	"Job":         {"spec", "template", "spec"},
	"ReplicaSet":  {"spec", "template", "spec"},
	"StatefulSet": {"spec", "template", "spec"},
}

// images gathers what uses which image.
type images map[string][]string

func (i images) add(image, use string) {
	if image != "" {
		i[image] = append(i[image], use)
	}
}

// addWorkloads adds what the objects run.
func (i images) addWorkloads(objects []*unstructured.Unstructured) {
	for _, o := range objects {
		path, ok := podTemplates[o.GetKind()]
		if !ok {
			continue
		}
		for _, part := range []struct{ field, word string }{{"initContainers", "init container"}, {"containers", "container"}} {
			containers, _, _ := unstructured.NestedSlice(o.Object, append(slices.Clone(path), part.field)...)
			for _, c := range containers {
				fields, _ := c.(map[string]any)
				image, _ := fields["image"].(string)
				name, _ := fields["name"].(string)
				i.add(image, part.word+" "+name+" of "+o.GetKind()+" "+o.GetName())
			}
		}
	}
}

// sorted lists the images by name.
func (i images) sorted() []ImageUse {
	found := make([]ImageUse, 0, len(i))
	for image, uses := range i {
		found = append(found, ImageUse{Image: image, Uses: uses})
	}
	slices.SortFunc(found, func(a, b ImageUse) int { return strings.Compare(a.Image, b.Image) })
	return found
}
