// SPDX-License-Identifier: Apache-2.0

// Package listmap finds items with the same key in lists of the kinds of Kubernetes. The API server refuses to apply such objects
// ("failed to create typed patch object"), and an object that was refused in the middle of an installation leaves half of it behind.
package listmap

import (
	_ "embed"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// tableText is written by TestTableIsCurrent from the schemas of server-side apply. It has of all types only the fields that lead
// to lists with keys.
//
//go:embed table.txt
var tableText string

// field is how a field leads to lists with keys.
type field struct {
	how  string // type, items, values or keyed
	of   string // the type of the value, the items or the values
	keys []key  // of keyed; none for a set of scalars
}

// key is a field of an item by which the items of a list differ.
type key struct {
	name       string
	otherwise  string // the default
	hasDefault bool
}

// schemas are the types of the table by their names, and the types of kinds.
type schemas struct {
	kinds map[schema.GroupVersionKind]string
	types map[string]map[string]field
}

var table = sync.OnceValue(func() schemas {
	s := schemas{kinds: map[schema.GroupVersionKind]string{}, types: map[string]map[string]field{}}
	for line := range strings.Lines(tableText) {
		words := strings.Fields(line)
		if words[0] == "kind" {
			s.kinds[schema.FromAPIVersionAndKind(words[1], words[2])] = words[3]
			continue
		}
		fields := s.types[words[1]]
		if fields == nil {
			fields = map[string]field{}
			s.types[words[1]] = fields
		}
		f := field{how: words[3], of: words[4]}
		if f.how == "keyed" && words[5] != "-" {
			for text := range strings.SplitSeq(words[5], ",") {
				name, otherwise, hasDefault := strings.Cut(text, "=")
				f.keys = append(f.keys, key{name, otherwise, hasDefault})
			}
		}
		fields[words[2]] = f
	}
	return s
})
