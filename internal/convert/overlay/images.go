// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"slices"
	"strings"
)

// pullable is an image reference in parts: registry and repository as written, tag with its colon, digest with its @.
type pullable struct{ name, tag, digest string }

func split(image string) pullable {
	var p pullable
	if at := strings.IndexByte(image, '@'); at >= 0 {
		image, p.digest = image[:at], image[at:]
	}
	if colon := strings.LastIndexByte(image, ':'); colon > strings.LastIndexByte(image, '/') {
		image, p.tag = image[:colon], image[colon:]
	}
	p.name = image
	return p
}

func (p pullable) String() string { return p.name + p.tag + p.digest }

// overrideImages changes images by their name, as kustomize does; each finds what those before it made.
func (r *run) overrideImages(field string, images []Image) {
	used := make([]bool, len(images))
	for _, e := range r.left() {
		eachImage(e, func(image string) string {
			p := split(image)
			for i, o := range images {
				if p.name == o.Name {
					p, used[i] = o.on(p), true
				}
			}
			return p.String()
		})
	}
	for i, o := range images {
		if !used[i] {
			r.warn("%s[%d]: no container has the image %s", field, i, shorten(o.Name))
		}
	}
}

func (o Image) on(p pullable) pullable {
	if o.NewName != "" {
		p.name = o.NewName
	}
	if o.NewTag != "" || o.Digest != "" {
		p.tag, p.digest = "", ""
	}
	if o.NewTag != "" {
		p.tag = ":" + o.NewTag
	}
	if o.Digest != "" {
		p.digest = "@" + o.Digest
	}
	return p
}

// eachImage changes the images of all containers in an object, wherever it holds some: also custom resources have Pod
// templates. A CustomResourceDefinition only tells of such fields.
func eachImage(e *entry, change func(string) string) {
	if e.now.Kind != "CustomResourceDefinition" {
		walkContainers(e.Object.Object, func(container map[string]any) { changeImage(container, "image", change) })
	}
}

func changeImage(holder map[string]any, key string, change func(string) string) {
	if image, ok := holder[key].(string); ok && image != "" {
		holder[key] = change(image)
	}
}

// walkContainers calls found with all containers in a value.
func walkContainers(value any, found func(map[string]any)) {
	switch v := value.(type) {
	case map[string]any:
		for key, field := range v {
			if items, ok := field.([]any); ok && slices.Contains(containerLists, key) {
				for _, item := range items {
					if container, ok := item.(map[string]any); ok {
						found(container)
					}
				}
			}
			walkContainers(field, found)
		}
	case []any:
		for _, item := range v {
			walkContainers(item, found)
		}
	}
}
