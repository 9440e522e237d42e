// SPDX-License-Identifier: Apache-2.0

package leftout

import (
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/pruning"
	"github.com/satchel-dev/satchel/internal/fetch/links"
)

// reasons finds the names for each object. There may be 25,000 objects and 1,000 links in each of two revisions, so that what does not
// depend on the object is computed once, and there is one slice for all objects with the same reason: see Hold.
type reasons struct {
	was Applied
	// read are the links that the format may have read, and fresh the new ones among them.
	read  map[string]bool
	fresh []string
	// suspicious and suspiciousFresh are those that look like files of a bundle.
	suspicious      []string
	suspiciousFresh []string
	// general are the new links that hold whatever file an object came from, and special the others: each holds what came from it.
	general map[string]bool
	special map[string]bool
	// ofLink are the names for objects of a file, by the longest special link that covers the file; "" for none.
	ofLink map[string][]string
	// ofHeld are the names for objects that an earlier revision held, by the names then.
	ofHeld map[pruning.Shared][]string
}

func newReasons(is Bundle, read []string, was Applied) *reasons {
	r := &reasons{
		was: was, read: setOf(read), suspicious: links.Meaningful(read),
		general: map[string]bool{}, special: map[string]bool{},
		ofLink: map[string][]string{}, ofHeld: map[pruning.Shared][]string{},
	}
	before := setOf(was.LeftOut)
	r.fresh = slices.DeleteFunc(slices.Clone(read), func(name string) bool { return before[name] })
	r.suspiciousFresh = links.Meaningful(r.fresh)
	for _, name := range r.fresh {
		if name == links.Everything || is.isShared(name) {
			r.general[name] = true
		} else {
			r.special[name] = true
		}
	}
	return r
}

// of are the names of the links because of which an object is held.
func (r *reasons) of(id inventory.ID) []string {
	if before, held := r.was.Held[id]; held {
		return computed(r.ofHeld, pruning.SharedOf(before), func() []string { return chosen(before, func(name string) bool { return r.read[name] }) })
	}
	if !r.was.Known {
		return r.suspicious
	}
	origin := r.was.Origins[id]
	if origin == "" {
		return r.suspiciousFresh
	}
	return computed(r.ofLink, r.covering(origin), func() []string {
		return chosen(r.fresh, func(name string) bool { return r.general[name] || covers(name, origin) })
	})
}

// covering is the longest special link that covers a file: the same links cover all files with the same one.
func (r *reasons) covering(file string) string {
	for len(r.special) > 0 {
		if r.special[file] {
			return file
		}
		end := strings.LastIndexByte(file, '/')
		if end < 0 {
			break
		}
		file = file[:end]
	}
	return ""
}

// computed returns the value of a key, which is computed the first time.
func computed[K comparable](values map[K][]string, key K, compute func() []string) []string {
	value, known := values[key]
	if !known {
		value = compute()
		values[key] = value
	}
	return value
}

// chosen are some of the names, in the same order.
func chosen(names []string, some func(string) bool) []string {
	var left []string
	for _, name := range names {
		if some(name) {
			left = append(left, name)
		}
	}
	return left
}

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}
