// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// patching is one patch that was read: either merges or operations.
type patching struct {
	field      string // where it stands, for messages
	target     *target
	selector   *Selector
	merges     []map[string]any
	operations []operation
	decoded    jsonpatch.Patch
}

// patch applies patches in their order; at is the index of the first one.
func (r *run) patch(processors []Processor, at int) {
	var all []*patching
	for i, p := range processors {
		if read := r.readPatch(fmt.Sprintf("spec.processors[%d].patch", at+i), *p.Patch); read != nil {
			all = append(all, read)
		}
	}
	r.problems = append(r.problems, r.reader.Problems()...)
	for _, p := range all {
		if len(r.problems) > 0 {
			return
		}
		r.applyPatch(p)
	}
}

func (r *run) readPatch(field string, p Patch) *patching {
	out := &patching{field: field, selector: p.Target}
	if p.Target != nil {
		var err error
		if out.target, err = newTarget(*p.Target, r.budget); err != nil {
			r.refuse(field+".target", err.Error(), "correct it")
			return nil
		}
	}
	values, ok := r.reader.ValuesOf(field, []byte(p.Text))
	if !ok {
		return nil
	}
	return r.classify(out, values)
}

// classify tells strategic merge patches, which are mappings, from JSON 6902 patches, which are lists.
func (r *run) classify(p *patching, values []any) *patching {
	for _, value := range values {
		switch v := value.(type) {
		case map[string]any:
			p.merges = append(p.merges, v)
		case []any:
			if !r.readOperations(p, v) {
				return nil
			}
		default:
			r.refuse(p.field, "the patch is neither a mapping nor a list of operations", "write a strategic merge patch or a JSON 6902 patch")
			return nil
		}
	}
	if message, remedy := p.unusable(len(values)); message != "" {
		r.refuse(p.field, message, remedy)
		return nil
	}
	return p
}

// unusable says why a patch of so many documents cannot be applied to anything; "" where it can.
func (p *patching) unusable(documents int) (message, remedy string) {
	switch {
	case len(p.merges)+len(p.operations) == 0:
		return "the patch is empty", "leave it out, or say what changes"
	case p.operations != nil && documents > 1:
		return "the patch holds a list of operations and further documents", "make two patches of it"
	case p.operations != nil && p.target == nil:
		return "a JSON 6902 patch does not say by itself which object it is of", "add a target"
	case p.target != nil && len(p.merges) > 1:
		return "the patch has a target, and several documents", "leave the target out, or make a patch of each document"
	case p.target == nil && !named(p.merges):
		return "the patch has no target, and does not name its object by kind and metadata.name", "add a target, or what is missing"
	}
	return "", ""
}

// named tells that all documents say which object they are of.
func named(merges []map[string]any) bool {
	for _, merge := range merges {
		o := unstructured.Unstructured{Object: merge}
		if o.GetKind() == "" || o.GetName() == "" {
			return false
		}
	}
	return true
}

// applyPatch applies one patch to all objects that it is of.
func (r *run) applyPatch(p *patching) {
	if p.target != nil {
		if r.each(p.field, p.target.selects, p.apply) == 0 && len(r.problems) == 0 {
			r.warn("%s selects no object (%s)", p.field, describe(p.selector))
		}
		return
	}
	for i, merge := range p.merges {
		of := unstructured.Unstructured{Object: merge}
		id := manifest.IDOf(&of)
		matches := func(e *entry) bool {
			same := func(have manifest.ID) bool {
				return have.GroupKind == id.GroupKind && have.Name == id.Name && (id.Namespace == "" || have.Namespace == id.Namespace)
			}
			return same(e.before) || same(e.now)
		}
		found := r.each(p.field, matches, func(e *entry) (map[string]any, *fault) { return mergeInto(e, p.merges[i]) })
		if found == 0 && len(r.problems) == 0 {
			r.warn("%s is of %s, which the bundle does not contain", p.field, manifest.Describe(&of))
		}
	}
}

// each applies a change to the objects that it is of, and returns how many these are.
func (r *run) each(field string, matches func(*entry) bool, change func(*entry) (map[string]any, *fault)) int {
	found := 0
	for _, e := range r.entries {
		if e.gone || !matches(e) {
			continue
		}
		found++
		changed, failed := change(e)
		switch {
		case failed != nil:
			r.refuseAt(e, field+": "+failed.message, failed.remedy)
		case changed == nil:
			e.gone = true
		default:
			e.Object.Object = changed
			e.now = r.identify(e.Manifest)
		}
	}
	return found
}

// apply is the change that a patch with a target makes.
func (p *patching) apply(e *entry) (map[string]any, *fault) {
	if p.operations != nil {
		return p.operate(e)
	}
	return mergeInto(e, p.merges[0])
}

// fault is why a patch does not fit an object. It quotes no values.
type fault struct{ message, remedy string }

// refuseCollisions refuses objects that a step has made the same as others.
func (r *run) refuseCollisions(field string) {
	first := map[manifest.ID]*entry{}
	for _, e := range r.left() {
		id := r.identify(e.Manifest)
		earlier, double := first[id]
		if !double {
			first[id] = e
			continue
		}
		if id.Name != "" && earlier.original != e.original { // those that were one before are for others to judge: hooks of several events may be
			r.refuseAt(e, fmt.Sprintf("after %s, two objects of the bundle are the same one: %s %s and %s %s",
				field, earlier.original.Kind, earlier.original.Name, e.original.Kind, e.original.Name), "change kind, name or namespace of one of them in another way")
		}
	}
}
