// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"slices"
	"strings"
)

// rewriter moves images to other registries.
type rewriter struct {
	rewrites []Rewrite // the longest first
	order    []int     // where each stands in the options
	used     []bool    // by the options' order
	related  map[string]bool
}

func newRewriter(rewrites []Rewrite, related []string) *rewriter {
	w := &rewriter{used: make([]bool, len(rewrites)), related: map[string]bool{}}
	for i := range rewrites {
		w.order = append(w.order, i)
	}
	slices.SortStableFunc(w.order, func(a, b int) int { return len(rewrites[b].From) - len(rewrites[a].From) })
	for _, i := range w.order {
		w.rewrites = append(w.rewrites, rewrites[i])
	}
	for _, image := range related {
		w.related[image] = true
	}
	return w
}

// image is where an image is now. Names without a registry are looked for as they are written first, then as docker.io
// has them.
func (w *rewriter) image(image string) string {
	p := split(image)
	names := []string{p.name}
	if full := fullName(p.name); full != p.name {
		names = append(names, full)
	}
	for i, rewrite := range w.rewrites {
		for _, name := range names {
			rest, begins := strings.CutPrefix(name, rewrite.From)
			if begins && (rest == "" || rest[0] == '/') {
				w.used[w.order[i]] = true
				return rewrite.To + rest + p.tag + p.digest
			}
		}
	}
	return image
}

// fullName adds the registry and the folder that a short name stands for.
func fullName(name string) string {
	first, _, nested := strings.Cut(name, "/")
	switch {
	case !nested:
		return "docker.io/library/" + name
	case strings.ContainsAny(first, ".:") || first == "localhost":
		return name
	}
	return "docker.io/" + name
}

// rewriteImages moves the images of containers, image volumes, and those that a registry+v1 bundle lists, where its
// operator is told of them.
func (r *run) rewriteImages(field string, rewrites []Rewrite) {
	w := newRewriter(rewrites, r.bundle.RelatedImages)
	for _, e := range r.left() {
		eachImage(e, w.image)
		if at, has := podSpecs[e.now.GroupKind]; has {
			visit(e.Object.Object, slices.Concat(at, []string{"volumes", "image", "reference"}), func(holder map[string]any, key string) {
				changeImage(holder, key, w.image)
			})
			walkContainers(e.Object.Object, w.operands)
		}
	}
	for i, rewrite := range rewrites {
		if !w.used[i] {
			r.warn("%s[%d]: no image is of %s", field, i, shorten(rewrite.From))
		}
	}
	for i, image := range r.bundle.RelatedImages { // as a processor after this one finds them
		r.bundle.RelatedImages[i] = w.image(image)
	}
}

// relatedPrefix begins the names of variables that hold related images, by convention.
const relatedPrefix = "RELATED_IMAGE_"

// operands are the images in the variables and arguments of a container, where it is an operator's.
func (w *rewriter) operands(container map[string]any) {
	variables, _ := container["env"].([]any)
	for _, item := range variables {
		variable, _ := item.(map[string]any)
		name, _ := variable["name"].(string)
		value, _ := variable["value"].(string)
		if w.related[value] || strings.HasPrefix(name, relatedPrefix) && value != "" {
			variable["value"] = w.image(value)
		}
	}
	for _, field := range []string{"command", "args"} {
		arguments, _ := container[field].([]any)
		for i, item := range arguments {
			text, _ := item.(string)
			flag, value, assigned := strings.Cut(text, "=")
			switch {
			case w.related[text]:
				arguments[i] = w.image(text)
			case assigned && w.related[value]:
				arguments[i] = flag + "=" + w.image(value)
			}
		}
	}
}
