// SPDX-License-Identifier: Apache-2.0

package crdsafety

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// compositions compares keywords that consist of whole schemas. Lists of them are sets, for
// their order means nothing.
//
//	no longer there        widens
//	allOf with fewer       widens
//	anyOf with more        widens
//	else                   refused: whether it narrows is not decided
func compositions(p pair) []finding {
	var found []finding
	changed := func(keyword string) {
		found = append(found, finding{about: about{kind: keyword}, says: keyword + " changed"})
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		was, will := parts(p.was, keyword), parts(p.will, keyword)
		more := keyword == "anyOf" && len(was) > 0 || within(will, was)
		less := keyword == "allOf" || within(was, will)
		if len(will) > 0 && (!more || !less) {
			changed(keyword)
		}
	}
	if p.will.keywords["not"] != nil && whole(p.was, "not") != whole(p.will, "not") {
		changed("not")
	}
	for _, keyword := range []string{"patternProperties", "definitions", "dependencies", "additionalItems", "items"} { // Kubernetes takes none of them, and no list of items
		if whole(p.was, keyword) != whole(p.will, keyword) {
			changed(keyword)
		}
	}
	return found
}

// parts are the schemas in a list, each in its canonical form.
func parts(s schema, keyword string) []string {
	listed, _ := s.keywords[keyword].([]any)
	var all []string
	for _, one := range listed {
		all = append(all, canonical(one))
	}
	return all
}

// within tells whether all the parts are among the others.
func within(parts, others []string) bool {
	all := map[string]bool{}
	for _, part := range others {
		all[part] = true
	}
	return !slices.ContainsFunc(parts, func(part string) bool { return !all[part] })
}

// whole is the canonical form of a keyword that is not compared part by part; empty
// when it is not set.
func whole(s schema, keyword string) string {
	value := s.keywords[keyword]
	if value == nil || !own(keyword, value) {
		return ""
	}
	return canonical(map[string]any{keyword: value})
}

// canonical is one string for all schemas with the same meaning: sorted, without descriptions
// and without keywords that have their default.
func canonical(raw any) string {
	var to strings.Builder
	write(&to, raw)
	return to.String()
}

func write(to *strings.Builder, raw any) {
	keywords, ok := raw.(map[string]any)
	if !ok {
		writeValue(to, raw)
		return
	}
	var said []string
	for _, keyword := range slices.Sorted(maps.Keys(keywords)) {
		if kinds[keyword] != wording && !leftOut(keyword, keywords[keyword]) {
			said = append(said, keyword)
		}
	}
	writeMap(to, said, func(keyword string) {
		value := keywords[keyword]
		named, isMap := value.(map[string]any)
		listed, isList := value.([]any)
		switch {
		case kinds[keyword] == schemaOrList && isList:
			writeList(to, listed)
		case kinds[keyword] == schemaOrList:
			write(to, value)
		case kinds[keyword] == schemasByName && isMap:
			writeMap(to, slices.Sorted(maps.Keys(named)), func(name string) { write(to, named[name]) })
		default:
			writeValue(to, value)
		}
	})
}

func writeMap(to *strings.Builder, keys []string, write func(key string)) {
	to.WriteByte('{')
	for i, key := range keys {
		if i > 0 {
			to.WriteByte(',')
		}
		writeValue(to, key)
		to.WriteByte(':')
		write(key)
	}
	to.WriteByte('}')
}

func writeList(to *strings.Builder, list []any) {
	to.WriteByte('[')
	for i, one := range list {
		if i > 0 {
			to.WriteByte(',')
		}
		write(to, one)
	}
	to.WriteByte(']')
}

func writeValue(to *strings.Builder, value any) {
	text, err := json.Marshal(value)
	if err != nil { // a type that neither JSON nor YAML has
		text = fmt.Append(nil, value)
	}
	to.Write(text)
}

// leftOut tells whether the keyword may be omitted without a change of meaning.
func leftOut(keyword string, value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case bool:
		return !value && kinds[keyword] != schemaOrList && keyword != "default"
	case []any:
		return len(value) == 0
	case map[string]any:
		return len(value) == 0 && kinds[keyword] == schemasByName
	}
	return false
}
