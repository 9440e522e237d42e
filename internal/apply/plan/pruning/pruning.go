// SPDX-License-Identifier: Apache-2.0

package pruning

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/plural"
)

// Policy says how objects are deleted or released. The zero value deletes objects that left
// the bundle after the rest is healthy, without a limit, and keeps CRDs.
type Policy struct {
	// Disabled: objects that left the bundle are released instead.
	Disabled bool `json:",omitempty"`
	// First: they are removed before the rest is applied.
	First bool `json:",omitempty"`
	// Limit beyond which none of them is removed; nil: none.
	Limit *Limit `json:",omitempty"`
	// Orphan: a removal releases everything.
	Orphan bool `json:",omitempty"`
	// Definitions: CRDs are deleted, too, when no resource of theirs is left.
	Definitions bool `json:",omitempty"`
	// Recreates: objects with immutable fields are deleted and created again.
	Recreates bool `json:",omitempty"`
}

// Never tells that nothing is ever deleted, so that the permission to delete is not needed.
func (p Policy) Never() bool { return p.Disabled && p.Orphan && !p.Recreates }

// Limit is how many deletions one plan may have.
type Limit struct {
	Most    int
	Percent bool // of the objects that the deployment has
}

// String is the limit as the spec has it.
func (l Limit) String() string {
	if l.Percent {
		return fmt.Sprintf("%d%%", l.Most)
	}
	return fmt.Sprint(l.Most)
}

// fewest is the number of deletions that may be held: fewer are never held.
const fewest = 5

// Exceeded tells whether the number of deletions, for the number of objects, exceeds the limit.
func (l Limit) Exceeded(deletions, of int) bool {
	if deletions < fewest {
		return false
	}
	if l.Percent {
		return deletions*100 > l.Most*of
	}
	return deletions > l.Most
}

// Kept says why an object is released rather than deleted; empty when it is not.
func (p Policy) Kept(removal bool, ending ownership.Ending) string {
	switch {
	case removal && p.Orphan:
		return "is kept, for spec.deletionPolicy is Orphan"
	case !removal && p.Disabled:
		return "is kept, for pruning is switched off"
	case ending.Kept != "":
		return "is kept, as its annotation " + ending.Kept + " says"
	case !removal && ending.Unpruned:
		return "is kept, as its annotation " + v1alpha1.PruneAnnotation + " says"
	}
	return ""
}

// RemovesFirst tells whether an object is removed before the rest is applied.
func (p Policy) RemovesFirst(ending ownership.Ending) bool {
	switch ending.Timing {
	case string(v1alpha1.PruneBeforeApply):
		return true
	case string(v1alpha1.PruneAfterHealthy):
		return false
	}
	return p.First
}

// Held are the objects that left the bundle and that a plan keeps, because of the limit, or of files that are left out of the bundle.
type Held struct {
	Objects  []inventory.ID // sorted
	Exceeded *Exceeded      // the limit, which holds all that left the bundle; nil where it holds none
	LeftOut  []LeftOut      // those of the objects that are held because of files
}

// Exceeded is a limit, and what exceeds it.
type Exceeded struct {
	Count int // deletions that count
	Of    int // of so many objects
	Limit Limit
}

// LeftOut are files and the objects, sorted, that are held because of them.
type LeftOut struct {
	Files   []string
	Objects []inventory.ID
}

// Shared identifies a slice of names that objects have in common, so that it is looked at once for all of them.
type Shared struct {
	first *string
	len   int
}

// SharedOf is the identity of a slice.
func SharedOf(names []string) Shared {
	if len(names) == 0 {
		return Shared{}
	}
	return Shared{first: &names[0], len: len(names)}
}

// Keep notes the files because of which the objects are held.
func (h *Held) Keep(files map[inventory.ID][]string) {
	groups := map[Shared]int{}
	for _, id := range h.Objects {
		shared := SharedOf(files[id])
		group, known := groups[shared]
		if !known {
			group = len(h.LeftOut)
			groups[shared] = group
			h.LeftOut = append(h.LeftOut, LeftOut{Files: files[id]})
		}
		h.LeftOut[group].Objects = append(h.LeftOut[group].Objects, id)
	}
}

// Len is their number.
func (h *Held) Len() int {
	if h == nil {
		return 0
	}
	return len(h.Objects)
}

// mostHeld is how many objects, or files, are named.
const mostHeld = 10

// String says what is held, and how to proceed. An approval is another way, which the caller names.
func (h Held) String() string {
	var texts []string
	if len(h.LeftOut) > 0 {
		texts = append(texts, h.leftOut())
	}
	if e := h.Exceeded; e != nil {
		texts = append(texts, fmt.Sprintf("%d of %s would be deleted, more than spec.prune.limit (%s) allows at once, so that all that left the bundle is kept: %s. "+
			"If it shall go, raise spec.prune.limit; if it shall stay, bring it back in the bundle",
			e.Count, plural.Of(e.Of, "object"), e.Limit, listed(h.Objects, inventory.ID.String)))
	}
	return strings.Join(texts, ". ")
}

// leftOut is the part of String about files.
func (h Held) leftOut() string {
	var objects []inventory.ID
	distinct := map[string]bool{}
	for _, group := range h.LeftOut {
		objects = append(objects, group.Objects...)
		for _, file := range group.Files {
			distinct[file] = true
		}
	}
	slices.SortFunc(objects, inventory.ID.Compare)
	files := slices.Sorted(maps.Keys(distinct))
	links := plural.Choose(len(files), "link", "links")
	return fmt.Sprintf("these links are not followed and missing from the artifact: %s; objects that came from them are kept: %s. "+
		"To keep the objects, replace the %s with the target; to delete them, remove the %s in a commit",
		listed(files, quote), listed(objects, inventory.ID.String), links, links)
}

// quote shows the name of a file, which its author chose.
func quote(name string) string {
	if name == "." {
		return "more files than can be named"
	}
	return strconv.QuoteToGraphic(name[:min(len(name), 200)]) // names of files have no invisible characters: see package fetch
}

// listed joins some of the items.
func listed[T any](items []T, name func(T) string) string {
	names := make([]string, 0, mostHeld+1)
	for _, item := range items[:min(len(items), mostHeld)] {
		names = append(names, name(item))
	}
	if more := len(items) - mostHeld; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}
