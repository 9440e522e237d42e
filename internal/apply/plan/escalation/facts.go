// SPDX-License-Identifier: Apache-2.0

package escalation

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// facts are what is not known to be harmless in an object. Places are the paths of Pods and containers in it.
type facts struct {
	// powers count where they are new at a place.
	powers map[fact]bool
	// restrictions count where they are gone from a place that still exists.
	restrictions map[fact]bool
	// unlisted are the values of fields that are not on the list, by path. Every difference counts.
	unlisted map[string]string
	// keys are labels and annotations that may mean something to others. Every difference counts.
	keys map[key]string
	// references to other objects, and the ServiceAccounts of Pods by place.
	references map[reference]bool
	accounts   map[string]string
	// places that exist, with the Pod of each container.
	places map[string]string
	// secret: no value is shown.
	secret bool
}

// fact is a power or a restriction at a place. prefix names the container.
type fact struct{ place, prefix, text string }

func newFacts() *facts {
	return &facts{
		powers: map[fact]bool{}, restrictions: map[fact]bool{}, unlisted: map[string]string{}, keys: map[key]string{},
		references: map[reference]bool{}, accounts: map[string]string{}, places: map[string]string{},
	}
}

func factsOf(object *unstructured.Unstructured, by rule) *facts {
	f := newFacts()
	f.secret = by.secret
	metadata := fields(object.Object["metadata"])
	f.metadata("", metadata, by.strictKeys)
	if by.why != "" {
		return f
	}
	for _, name := range slices.Sorted(maps.Keys(object.Object)) {
		switch name {
		case "apiVersion", "kind", "metadata", "status":
		default:
			by.fields.at(name).read(f, object.Object[name], name)
		}
	}
	return f
}

func (f *facts) hold(holds bool, at spot, power string) {
	if holds {
		f.powers[fact{at.place, at.prefix, power}] = true
	}
}

func (f *facts) bind(binds bool, at spot, what string) {
	if binds {
		f.restrictions[fact{at.place, at.prefix, what}] = true
	}
}

func (f *facts) refer(group, kind string, name any) {
	if name := text(name); name != "" {
		f.references[reference{group, kind, name}] = true
	}
}

// leave records a field that is not on the list. Empty values mean nothing.
func (f *facts) leave(place string, value any) {
	switch value := value.(type) {
	case nil:
		return
	case string:
		if value == "" {
			return
		}
	case map[string]any:
		if len(value) == 0 {
			return
		}
	case []any:
		if len(value) == 0 {
			return
		}
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		encoded = fmt.Append(nil, value)
	}
	f.unlisted[place] = string(encoded)
}

// mostShown is how many characters of a value are shown.
const mostShown = 100

// shown is a value for people; nothing where it may be secret.
func (f *facts) shown(before, value string) string {
	if f.secret {
		return ""
	}
	if len(value) > mostShown {
		value = strings.ToValidUTF8(value[:mostShown], "") + "..."
	}
	return before + value
}

// differences lists what counts of two states of an object.
func differences(had, has *facts) []string {
	words := slices.Concat(keyChanges(had, has), fieldChanges(had, has))
	for _, power := range slices.SortedFunc(maps.Keys(has.powers), fact.compare) {
		if !had.powers[power] {
			words = append(words, power.prefix+power.text)
		}
	}
	for _, lost := range slices.SortedFunc(maps.Keys(had.restrictions), fact.compare) {
		if _, exists := has.places[lost.place]; exists && !has.restricts(lost) {
			words = append(words, "no longer has "+lost.prefix+lost.text)
		}
	}
	return words
}

func (f fact) compare(other fact) int {
	return cmp.Or(strings.Compare(f.place, other.place), strings.Compare(f.text, other.text))
}

// restricts tells whether a restriction holds at its place: by itself, by that of the Pod, or by a wider one.
func (f *facts) restricts(what fact) bool {
	for _, wider := range []fact{what, {place: f.places[what.place], text: what.text}, {what.place, what.prefix, dropsAll}} {
		if f.restrictions[wider] && (wider.text == what.text || strings.HasPrefix(what.text, drops)) {
			return true
		}
	}
	return false
}

// fieldChanges lists differences in fields that are not on the list.
func fieldChanges(had, has *facts) []string {
	paths := maps.Clone(had.unlisted)
	maps.Copy(paths, has.unlisted)
	var words []string
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		before, had := had.unlisted[path]
		after, set := has.unlisted[path]
		switch {
		case !had:
			words = append(words, "sets ."+path+has.shown(" to ", after))
		case !set:
			words = append(words, "no longer sets ."+path+has.shown(", which was ", before))
		case before != after:
			words = append(words, "changes ."+path+has.shown(" from ", before)+has.shown(" to ", after))
		}
	}
	return words
}

// field is what is known about a field.
type field struct {
	// all: every value is harmless.
	all bool
	// only these values, as text, are harmless.
	only []string
	// below: the fields of a map, or of the maps in a list. Others are not on the list.
	below map[string]field
	// check reads the value.
	check func(f *facts, place string, value any)
}

// anything is a field of which every value is harmless.
var anything = field{all: true}

// at is a field of a map.
func (d field) at(name string) field {
	if d.below == nil {
		return d
	}
	return d.below[name]
}

// read records what is not known to be harmless in the value of a field. place is its path.
func (d field) read(f *facts, value any, place string) {
	switch {
	case d.all:
	case d.check != nil:
		d.check(f, place, value)
	case d.only != nil:
		if !slices.Contains(d.only, scalar(value)) {
			f.leave(place, value)
		}
	case d.below != nil:
		d.descend(f, value, place)
	default:
		f.leave(place, value)
	}
}

// descend reads a map, or the maps in a list.
func (d field) descend(f *facts, value any, place string) {
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			d.below[name].read(f, value[name], place+"."+name)
		}
	case []any:
		for i, item := range value {
			d.descend(f, item, placeOf(place, i, item))
		}
	default:
		f.leave(place, value)
	}
}

// placeOf is the path of an item of a list: by its name, since items move.
func placeOf(list string, index int, item any) string {
	if name := text(fields(item)["name"]); name != "" {
		return fmt.Sprintf("%s[%s]", list, name)
	}
	return fmt.Sprintf("%s[%d]", list, index)
}

func fields(value any) map[string]any { found, _ := value.(map[string]any); return found }

func list(value any) []any { found, _ := value.([]any); return found }

func text(value any) string { found, _ := value.(string); return found }

// scalar is a string, number or boolean as text; nothing for null.
func scalar(value any) string {
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

func isTrue(value any) bool { found, _ := value.(bool); return found }

func isFalse(value any) bool { found, is := value.(bool); return is && !found }
