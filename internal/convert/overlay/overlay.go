// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// Rule is the rule of problems of overlays, as Problem.Rule.
const Rule = "overlay"

// Bundle is what overlays need to know of a bundle beside its objects.
type Bundle struct {
	// Namespace is where objects go that carry none.
	Namespace string
	// ClusterScoped tells kinds that live in no namespace.
	ClusterScoped func(schema.GroupKind) bool
	// Companions are objects that others make for the bundle under names that it says: they get other names as its own do.
	Companions []manifest.ID
	// RelatedImages are those that a registry+v1 bundle lists; they stand in variables and arguments of its operator.
	RelatedImages []string
	// Limits hold for what patches and variables make of the objects; those that are zero take their defaults.
	Limits manifest.Limits
}

// Result is what becomes of the objects of a bundle.
type Result struct {
	// Manifests are those that are left, in their order. Each Object is the one that was given, changed.
	Manifests []manifest.Manifest
	// Warnings name what had nothing to do; sorted.
	Warnings []string
	renames  renames
}

// Name is what an object is called now that the bundle calls name.
func (r Result) Name(kind schema.GroupKind, namespace, name string) string {
	return r.renames.of(kind, namespace, name)
}

// entry is one object on its way.
type entry struct {
	manifest.Manifest
	original manifest.ID // as in the bundle, with the namespace that it will have
	now      manifest.ID // as patches have made it
	gone     bool
}

// run holds what the steps share.
type run struct {
	Options
	bundle   Bundle
	entries  []*entry
	renames  renames
	grown    int64 // bytes that were added
	values   int64 // values that were added
	problems []manifest.Problem
	warnings []string
}

// Apply adapts the objects of a bundle and returns what is left of them, or what is wrong. It takes ownership of the
// manifests.
func Apply(manifests []manifest.Manifest, bundle Bundle, o Options) (Result, []manifest.Problem) {
	if !o.Changes() {
		return Result{Manifests: manifests}, nil
	}
	bundle.Limits = bundle.Limits.OrDefault()
	r := &run{Options: o, bundle: bundle}
	for _, m := range manifests {
		id := r.identify(m)
		r.entries = append(r.entries, &entry{Manifest: m, original: id, now: id})
	}
	for _, step := range []func(){r.patch, r.rename, r.overrideImages, r.substitute, r.annotate, r.rewriteImages, r.measure} {
		if step(); len(r.problems) > 0 {
			return Result{}, r.problems // what follows builds on it
		}
	}
	result := Result{Warnings: r.warnings, renames: r.renames}
	for _, e := range r.left() {
		result.Manifests = append(result.Manifests, e.Manifest)
	}
	slices.Sort(result.Warnings)
	return result, nil
}

// identify says what an object is, with the namespace that it will have.
func (r *run) identify(m manifest.Manifest) manifest.ID {
	id := manifest.IDOf(m.Object)
	switch {
	case r.bundle.ClusterScoped(id.GroupKind):
		id.Namespace = ""
	case id.Namespace == "":
		id.Namespace = r.bundle.Namespace
	}
	return id
}

// left are the objects that no patch deleted.
func (r *run) left() []*entry {
	return slices.DeleteFunc(slices.Clone(r.entries), func(e *entry) bool { return e.gone })
}

// refuse reports a problem of the options.
func (r *run) refuse(field, message, remedy string) {
	r.problems = append(r.problems, manifest.Problem{Rule: Rule, Message: field + ": " + message, Remedy: remedy})
}

// refuseAt reports a problem of the options with one object.
func (r *run) refuseAt(e *entry, message, remedy string) {
	r.problems = append(r.problems, e.Problem(Rule, message, remedy))
}

func (r *run) warn(format string, args ...any) {
	r.warnings = append(r.warnings, fmt.Sprintf(format, args...))
}

// grow counts bytes that are about to be added, and tells whether they are still within the limit.
func (r *run) grow(by int, field string) bool {
	if r.grown += int64(by); r.grown <= r.bundle.Limits.TotalBytes {
		return true
	}
	r.problems = append(r.problems, manifest.Problem{
		Rule: manifest.RuleLimit, Message: fmt.Sprintf("%s: overlays add more than %d bytes to the objects", field, r.bundle.Limits.TotalBytes),
		Remedy: "let patches select fewer objects, or shorten what they and the variables add",
	})
	return false
}

// multiply counts values that are about to be added, and tells whether they are still within the limit.
func (r *run) multiply(by int, field string) bool {
	if r.values += int64(by); r.values <= int64(r.bundle.Limits.Values) {
		return true
	}
	r.problems = append(r.problems, manifest.Problem{
		Rule: manifest.RuleLimit, Message: fmt.Sprintf("%s: with what overlays add, the objects have more than %d values", field, r.bundle.Limits.Values),
		Remedy: "let patches select fewer objects, or shorten them",
	})
	return false
}

// measure refuses objects that patches have made too large or too deep.
func (r *run) measure() {
	if len(r.Patches) == 0 {
		return // nothing else adds structure
	}
	left := r.bundle.Limits.Values
	for _, e := range r.left() {
		if left -= size(e.Object.Object, r.bundle.Limits.Depth); left < 0 {
			r.problems = append(r.problems, e.Problem(manifest.RuleLimit,
				fmt.Sprintf("with spec.patches, the objects up to here have more than %d values, or nest deeper than %d", r.bundle.Limits.Values, r.bundle.Limits.Depth),
				"let the patches add less"))
			return
		}
	}
}

// size counts a value and all that it contains; one that nests deeper than depth is larger than any limit.
func size(value any, depth int) int {
	const tooLarge = 1 << 40
	count := 1
	if depth < 0 {
		return tooLarge
	}
	switch v := value.(type) {
	case map[string]any:
		for _, field := range v {
			count += size(field, depth-1)
		}
	case []any:
		for _, item := range v {
			count += size(item, depth-1)
		}
	}
	return count
}
