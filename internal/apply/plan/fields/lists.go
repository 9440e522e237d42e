// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// keys are the merge keys of lists in the schemas of Kubernetes; the first one
// that all items have, with distinct values, is used. A missing second part has its default.
var keys = [][]keyPart{
	{{name: "name"}},
	{{name: "mountPath"}},
	{{name: "containerPort"}, {name: "protocol", or: "TCP"}},
	{{name: "port"}, {name: "protocol", or: "TCP"}},
	{{name: "type"}},
	{{name: "topologyKey"}, {name: "whenUnsatisfiable"}},
	{{name: "devicePath"}},
	{{name: "ip"}},
	{{name: "uid"}},
	{{name: "key"}},
}

// mostPairs of items without keys are compared; longer lists are reported as different.
const mostPairs = 1_000_000

type keyPart struct{ name, or string }

func (c *comparison) items(at place, before, after []any) {
	for _, key := range keys {
		was, will := byKey(before, key), byKey(after, key)
		if was != nil && will != nil {
			c.keyed(at, before, after, key, was, will)
			return
		}
	}
	if len(before) == len(after) && !scalars(before) && !scalars(after) {
		for i := range before {
			c.value(at.item(strconv.Itoa(i), nil), before[i], after[i])
		}
		return
	}
	if scalars(before) || scalars(after) || len(before)*len(after) > mostPairs {
		c.add(at, before, after)
		return
	}
	c.loose(at, before, after)
}

// keyed compares items that have keys; a new order of the remaining items is a change, too.
func (c *comparison) keyed(at place, before, after []any, parts []keyPart, was, will []string) {
	places := map[string]int{}
	for i, key := range will {
		places[key] = i
	}
	var stay []int
	found := map[string]any{}
	for i, key := range was {
		place, stays := places[key]
		found[key] = before[i]
		if !stays {
			c.value(at.item(key, parts), before[i], nil)
			continue
		}
		stay = append(stay, place)
	}
	for i, key := range will {
		c.value(at.item(key, parts), found[key], after[i])
	}
	if !slices.IsSorted(stay) && !c.wanted {
		c.add(at, texts(was), texts(will))
	}
}

// loose compares items without keys: items on both sides do not differ.
func (c *comparison) loose(at place, before, after []any) {
	taken := make([]bool, len(after))
	for i, item := range before {
		same := -1
		for j := range after {
			if !taken[j] && c.same(item, after[j]) {
				same = j
				break
			}
		}
		if same >= 0 {
			taken[same] = true
			continue
		}
		c.add(at.item(strconv.Itoa(i), nil), item, nil)
	}
	for j, item := range after {
		if !taken[j] {
			c.add(at.item(strconv.Itoa(j), nil), nil, item)
		}
	}
}

// byKey are the keys of all items, as `name="web"`; nil where they are not unique.
func byKey(items []any, parts []keyPart) []string {
	texts, seen := make([]string, 0, len(items)), map[string]bool{}
	for _, item := range items {
		fields, _ := item.(map[string]any)
		text, ok := keyOf(fields, parts)
		if !ok || seen[text] {
			return nil
		}
		seen[text] = true
		texts = append(texts, text)
	}
	return texts
}

func keyOf(fields map[string]any, parts []keyPart) (string, bool) {
	words := make([]string, 0, len(parts))
	for _, part := range parts {
		value := fields[part.name]
		switch typed := value.(type) {
		case nil:
			if part.or == "" {
				return "", false
			}
			words = append(words, part.name+"="+strconv.Quote(part.or))
		case string:
			words = append(words, part.name+"="+strconv.Quote(typed))
		case int64, float64, bool:
			words = append(words, fmt.Sprintf("%s=%v", part.name, typed))
		default:
			return "", false
		}
	}
	return strings.Join(words, ","), true
}

func scalars(items []any) bool {
	return slices.ContainsFunc(items, func(item any) bool {
		switch item.(type) {
		case map[string]any, []any:
			return false
		}
		return true
	})
}

func texts(words []string) []any {
	list := make([]any, 0, len(words))
	for _, word := range words {
		list = append(list, word)
	}
	return list
}
