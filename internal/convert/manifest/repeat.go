// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Repeat is a key that a mapping has twice with equal values: an author's oversight without effect. With different values one of
// them would win silently, so that is refused.
type Repeat struct {
	File string
	// Document counts from 1.
	Document int
	Key      string
	// Line is that of the second key, First that of the first one; lines of the text that was read.
	Line, First int
	// Differ tells that the values differ, and the last one counts: of RepeatsIn, and of readers with LastKeys.
	Differ bool
}

// String names file, line and key; it quotes no value.
func (r Repeat) String() string {
	place := r.File + ": "
	if r.Document > 1 {
		place += fmt.Sprintf("document %d: ", r.Document)
	}
	return fmt.Sprintf("%sline %d: %s", place, r.Line, r.what())
}

// Message is String without the file.
func (r Repeat) Message() string { return fmt.Sprintf("line %d: %s", r.Line, r.what()) }

func (r Repeat) what() string {
	how := "equal"
	if r.Differ {
		how = "different"
	}
	return fmt.Sprintf("the key %q appears twice in one mapping, with %s values; the first is in line %d", shorten(r.Key, longestQuoted), how, r.First)
}

// mostRepeats bounds the list of a bundle that was made to have many.
const mostRepeats = 100

// repeats gathers what the builders of one bundle find.
type repeats struct {
	strict  bool   // equal values are refused as well
	lenient bool   // different values are gathered as well
	labels  bool   // the same, in the labels and annotations of metadata
	option  string // what a refusal proposes beside its remedy
	found   []Repeat
	more    int
}

// add records a repeated key, or returns the fault that it is. place returns the lines, and is called only where they are shown.
func (r *repeats) add(key string, equal bool, in within, place func() (line, first int)) error {
	if equal && !r.strict || r.lenient || r.labels && in.labels() {
		if len(r.found) >= mostRepeats {
			r.more++
			return nil
		}
		line, first := place()
		found := Repeat{Key: key, Line: line, First: first, Differ: !equal}
		again := func(known Repeat) bool {
			return known.Document == 0 && known.Line == line && known.First == first && known.Key == key
		}
		if !slices.ContainsFunc(r.found, again) { // an alias brings it again
			r.found = append(r.found, found)
		}
		return nil
	}
	line, first := place()
	found := Repeat{Key: key, Line: line, First: first, Differ: !equal}
	return &fault{rule: RuleSyntax, line: line, remedy: "keep one of them" + r.option, message: found.what()}
}

// located says where the repeats were found that were added last.
func (r *repeats) located(file string, document int) {
	for i := len(r.found) - 1; i >= 0 && r.found[i].Document == 0; i-- {
		r.found[i].File, r.found[i].Document = file, document
	}
}

// Strict has the reader refuse keys that appear twice also where their values are equal: for texts that their author can
// correct at once, and for those that a library reads again and refuses.
func (r *Reader) Strict() *Reader {
	r.repeats.strict = true
	return r
}

// within is where a mapping is: the key that has it, and the key around that.
type within struct{ outer, inner string }

// labels tells whether a mapping has labels or annotations.
func (w within) labels() bool {
	return w.outer == "metadata" && (w.inner == "labels" || w.inner == "annotations")
}

// LastKeys has the last one of keys with different values count, with a warning: everywhere if all is set, and otherwise in labels
// and annotations, which others read. A refusal proposes the option.
func (r *Reader) LastKeys(all bool, option string) *Reader {
	r.repeats.labels = true
	r.repeats.lenient = all
	r.repeats.option = option
	return r
}

// Repeats are the repeated keys that were found so far and not refused, up to a hundred.
func (r *Reader) Repeats() []Repeat { return r.repeats.found }

// Warnings are Repeats in words.
func (r *Reader) Warnings() []string {
	var said []string
	for _, repeat := range r.repeats.found {
		text := repeat.String()
		if repeat.Differ {
			text += "; the last one counts"
		}
		said = append(said, text)
	}
	if r.repeats.more > 0 {
		said = append(said, fmt.Sprintf("%d more keys appear twice in one mapping", r.repeats.more))
	}
	return said
}

// RepeatsIn returns the keys that appear twice in the mappings of a YAML file beside the manifests, which is read by another
// parser, also those with different values. What cannot be read is left to that parser.
func RepeatsIn(file string, data []byte) []Repeat {
	limits := DefaultLimits()
	aliases, found := mostBeside, &repeats{lenient: true}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for number := 1; ; number++ {
		var node yaml.Node
		if err := decoder.Decode(&node); errors.Is(err, io.EOF) || err != nil {
			return found.found
		}
		b := builder{names: interned{}, maxDepth: limits.Depth, aliasBudget: &aliases, values: &budget{left: mostBeside, limit: mostBeside}, repeats: found}
		if _, err := b.value(&node, 0); err != nil {
			return found.found
		}
		found.located(file, number)
	}
}

// same tells whether two values that were read are equal.
func same(a, b any) bool { return reflect.DeepEqual(a, b) }
