// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/internal/pattern"
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
	return r.renames.newName(kind, namespace, name)
}

// entry is one object on its way.
type entry struct {
	manifest.Manifest
	original manifest.ID   // as in the bundle, with the namespace that it will have
	before   manifest.ID   // before the step that runs: other objects of the bundle name it so
	now      manifest.ID   // as the processors have made it
	former   []manifest.ID // under the names that it had before others
	gone     bool
}

// companion is an object that others make for the bundle.
type companion struct {
	original, now manifest.ID
	former        []manifest.ID // under the names that it had before others
}

// run holds what the processors share.
type run struct {
	bundle     Bundle
	entries    []*entry
	companions []companion
	reader     *manifest.Reader // one for all patches: what aliases make of them counts together
	budget     *pattern.Budget  // of the patterns of all targets
	renames    renames          // of the step that runs
	checks     []labelCheck     // of labels that variables may change
	used       map[string]bool  // variables that an object had
	problems   []manifest.Problem
	warnings   []string
	// unfollowed counts the fields that seem to name renamed objects and are not updated.
	unfollowed int
}

// Apply adapts the objects of a bundle and returns what is left of them, or what is wrong. It takes ownership of the
// manifests.
func Apply(manifests []manifest.Manifest, bundle Bundle, o Options) (Result, []manifest.Problem) {
	if !o.Changes() {
		return Result{Manifests: manifests}, nil
	}
	bundle.Limits = bundle.Limits.OrDefault()
	bundle.RelatedImages = slices.Clone(bundle.RelatedImages)
	r := &run{bundle: bundle, reader: manifest.NewReader(nil, bundle.Limits).Strict(), budget: pattern.NewBudget(), used: map[string]bool{}}
	for _, m := range manifests {
		id := r.identify(m)
		r.entries = append(r.entries, &entry{Manifest: m, original: id, before: id, now: id})
	}
	for _, id := range bundle.Companions {
		r.companions = append(r.companions, companion{original: id, now: id})
	}
	for next := 0; next < len(o.Processors); {
		next = r.process(o.Processors, next)
		if len(r.problems) > 0 {
			return Result{}, r.problems // what follows builds on it
		}
	}
	if r.checkLabels(); len(r.problems) > 0 {
		return Result{}, r.problems
	}
	r.warnOfFormerNames()
	result := Result{Warnings: r.warnings, renames: r.allRenames()}
	for _, e := range r.left() {
		result.Manifests = append(result.Manifests, e.Manifest)
	}
	slices.Sort(result.Warnings)
	return result, nil
}

// process runs the processor at an index, and returns the index of the next one. Patches that follow one another are
// one step: names that they change are followed, and compared, after the last of them.
func (r *run) process(all []Processor, at int) (next int) {
	p := all[at]
	field := fmt.Sprintf("spec.processors[%d]", at)
	next = at + 1
	switch {
	case p.Patch != nil:
		for next < len(all) && all[next].Patch != nil {
			next++
		}
		r.patch(all[at:next], at)
		if field += ".patch"; next > at+1 {
			field += fmt.Sprintf(" to spec.processors[%d].patch", next-1)
		}
		r.rename(field, Names{})
	case p.Names != nil:
		field += ".names"
		r.rename(field, *p.Names)
	case len(p.Images) > 0:
		field += ".images"
		r.overrideImages(field, p.Images)
	case p.Variables != nil:
		field += ".variables"
		r.substitute(field, *p.Variables)
	case p.Metadata != nil:
		field += ".metadata"
		variablesFollow := slices.ContainsFunc(all[next:], func(p Processor) bool { return p.Variables != nil })
		r.annotate(field, *p.Metadata, variablesFollow)
	case len(p.ImageRewrites) > 0:
		field += ".imageRewrites"
		r.rewriteImages(field, p.ImageRewrites)
	}
	r.settle(field)
	return next
}

// settle ends a step: what it made of the objects must fit the limits, and is what the next step begins with.
func (r *run) settle(field string) {
	if len(r.problems) > 0 {
		return
	}
	r.measure(field)
	for _, e := range r.left() {
		e.now = r.identify(e.Manifest)
		e.before = e.now
	}
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

// measure refuses objects that a step has made too large or too deep, so that the next one does not multiply them. What it
// takes to make them in one step is bounded by the worker process only.
func (r *run) measure(field string) {
	limits := r.bundle.Limits
	total := extent{}
	for _, e := range r.left() {
		deep := total.add(e.Object.Object, limits.Depth)
		switch {
		case deep:
			r.refuseSize(e, field, "the object nests deeper than %d", limits.Depth)
		case total.values > int64(limits.Values):
			r.refuseSize(e, field, "the objects up to here have more than %d values", limits.Values)
		case total.bytes > limits.TotalBytes:
			r.refuseSize(e, field, "the objects up to here have more than %d bytes", limits.TotalBytes)
		default:
			continue
		}
		return
	}
}

// refuseSize reports the object with which a limit of sizes is exceeded.
func (r *run) refuseSize(e *entry, field, message string, limit any) {
	r.problems = append(r.problems, e.Problem(manifest.RuleLimit, "after "+field+", "+fmt.Sprintf(message, limit),
		"let patches select fewer objects, or shorten what they and the variables add"))
}

// extent is how large values are: how many, and how many bytes their strings and keys have.
type extent struct{ values, bytes int64 }

// add counts a value and all that it contains, and tells whether it nests deeper than depth.
func (x *extent) add(value any, depth int) (deep bool) {
	if depth < 0 {
		return true
	}
	x.values++
	switch v := value.(type) {
	case map[string]any:
		for key, field := range v {
			x.bytes += int64(len(key))
			deep = x.add(field, depth-1) || deep
		}
	case []any:
		for _, item := range v {
			deep = x.add(item, depth-1) || deep
		}
	case string:
		x.bytes += int64(len(v))
	}
	return deep
}
