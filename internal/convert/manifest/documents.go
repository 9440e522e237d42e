// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"
)

// document is one decoded document; an empty one has a nil value.
type document struct {
	number int
	value  any
	most   int64 // no object of it is larger as JSON; 0: not known
}

// fault is what is wrong inside one document: where (a line, 0 if unknown) and what; it quotes no values.
type fault struct {
	rule    string
	line    int
	message string
	remedy  string
	final   bool // of the whole bundle: what follows is not read
}

func (f *fault) Error() string { return f.message }

func (r *Reader) decode(f file) []document {
	if isJSON(f.name, f.data) {
		documents, err := r.decodeJSON(f.name, f.data)
		if err == nil {
			return documents
		}
		if namedJSON(f.name) {
			r.report(Problem{File: f.name, Document: len(documents) + 1, Rule: RuleSyntax, Message: "this is not valid JSON: " + err.Error()})
			return nil
		}
	}
	return r.decodeYAML(f)
}

// isJSON tells that a file is JSON by its name, or may be by its first character.
func isJSON(name string, data []byte) bool {
	data = bytes.TrimLeft(data, " \t\r\n")
	return namedJSON(name) || len(data) > 0 && data[0] == '{'
}

func namedJSON(name string) bool { return strings.EqualFold(path.Ext(name), ".json") }

func (r *Reader) decodeYAML(f file) []document {
	name := f.name
	if crowded(f.data, r.limits.Values) {
		r.stop(Problem{File: name, Rule: RuleLimit, Remedy: "split the file, or raise --limit-manifest-values",
			Message: fmt.Sprintf("the file may hold more than %d values (mappings, lists, scalars)", r.limits.Values)})
		return nil
	}
	if f.nodes == nil {
		f.nodes = parse(f.data)
	}
	var documents []document
	number := 0
	for node, err := range f.nodes {
		number++
		if err != nil {
			r.report(Problem{File: name, Document: number, Rule: RuleSyntax, Message: "this is not valid YAML: " + syntaxError(err)})
			return documents
		}
		if !r.countDocument(name, number) {
			return documents
		}
		b := builder{names: r.names, maxDepth: r.limits.Depth, aliasBudget: &r.aliasBudget, values: &r.values, repeats: &r.repeats}
		value, err := b.value(node, 0)
		r.repeats.located(name, number)
		if err != nil {
			if r.reportFault(name, number, err); r.stopped {
				return nil
			}
			continue
		}
		documents = append(documents, document{number: number, value: value, most: b.most})
	}
	return documents
}

// unknownAnchor matches the one message of the parser that quotes the text.
var unknownAnchor = regexp.MustCompile(`unknown anchor '.*' referenced`)

func syntaxError(err error) string {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	return unknownAnchor.ReplaceAllString(message, "an alias names an anchor that does not exist")
}

// decodeJSON returns an error where the text is no JSON, with the documents before it; a fault within JSON is reported.
func (r *Reader) decodeJSON(name string, data []byte) ([]document, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	before := *r // what was counted
	var documents []document
	for number := 1; ; number++ {
		b := jsonBuilder{decoder: decoder, data: data, names: r.names, maxDepth: r.limits.Depth, values: &r.values, repeats: &r.repeats}
		value, err := b.next()
		r.repeats.located(name, number)
		var f *fault
		switch {
		case errors.Is(err, io.EOF):
			return documents, nil
		case errors.As(err, &f):
			if f.line == 0 {
				f.line = b.line(decoder.InputOffset())
			}
			r.reportFault(name, number, err)
			return nil, nil
		case err != nil:
			r.documents = before.documents // it may be YAML, and is counted again
			r.values.left = before.values.left
			r.repeats = before.repeats
			return documents, err
		}
		if !r.countDocument(name, number) {
			return documents, nil
		}
		documents = append(documents, document{number: number, value: value})
	}
}

func (r *Reader) countDocument(name string, number int) bool {
	if r.documents++; r.documents <= r.limits.Documents {
		return true
	}
	r.stop(Problem{File: name, Document: number, Rule: RuleLimit, Remedy: "split the bundle",
		Message: fmt.Sprintf("the bundle has more than %d documents", r.limits.Documents)})
	return false
}

func (r *Reader) reportFault(name string, number int, err error) {
	p := Problem{File: name, Document: number, Rule: RuleSyntax, Message: err.Error()}
	var f *fault
	if errors.As(err, &f) {
		p.Rule, p.Remedy = f.rule, f.remedy
		if f.line > 0 {
			p.Message = fmt.Sprintf("line %d: %s", f.line, f.message)
		}
	}
	if f != nil && f.final {
		r.stop(p)
		return
	}
	r.report(p)
}
