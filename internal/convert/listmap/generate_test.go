// SPDX-License-Identifier: Apache-2.0

package listmap

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

var update = flag.Bool("update", false, "write the table again")

// TestTableIsCurrent: the table is what the schemas of server-side apply say about all kinds of client-go.
func TestTableIsCurrent(t *testing.T) {
	want := newGenerator(t).table()
	if *update {
		if err := os.WriteFile("table.txt", []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if tableText != want {
		t.Errorf("the table is not what the schemas say: run go test ./internal/convert/listmap -update, and look at the difference")
	}
	if len(table().kinds) < 60 {
		t.Errorf("the table has %d kinds only", len(table().kinds))
	}
}

// generator reduces schemas to what leads to lists with keys.
type generator struct {
	kinds  map[string]string // type of each kind
	schema *schema.Schema
	leads  map[string]bool
}

func newGenerator(t *testing.T) *generator {
	t.Helper()
	g := &generator{kinds: map[string]string{}, leads: map[string]bool{}}
	converter := applyconfigurations.NewTypeConverter(scheme.Scheme)
	for kind := range scheme.Scheme.AllKnownTypes() {
		object, err := scheme.Scheme.New(kind)
		if err != nil || kind.Version == runtime.APIVersionInternal {
			continue
		}
		object.GetObjectKind().SetGroupVersionKind(kind)
		typed, err := converter.ObjectToTyped(object)
		if err != nil || typed.TypeRef().NamedType == nil {
			continue // options and lists are no kinds
		}
		g.schema = typed.Schema()
		g.kinds[kind.GroupVersion().String()+" "+kind.Kind] = *typed.TypeRef().NamedType
	}
	return g
}

func (g *generator) table() string {
	var lines []string
	for changed := true; changed; { // types may contain themselves, as in schemas of CRDs
		changed = false
		for _, def := range g.schema.Types {
			if !g.leads[def.Name] && len(g.fields(def.Name)) > 0 {
				g.leads[def.Name], changed = true, true
			}
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(g.kinds)) {
		if name := g.kinds[kind]; g.leads[name] {
			lines = append(lines, "kind "+kind+" "+name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(g.leads)) {
		lines = append(lines, g.fields(name)...)
	}
	return strings.Join(lines, "\n") + "\n"
}

// fields are the lines of a type: how its fields lead to lists with keys.
func (g *generator) fields(name string) []string {
	def, _ := g.schema.FindNamedType(name)
	if def.Map == nil {
		return nil
	}
	var lines []string
	for _, field := range def.Map.Fields {
		if field.Name == "status" {
			continue // no bundle sets it
		}
		if what := g.reference(field.Type); what != "" {
			lines = append(lines, fmt.Sprintf("field %s %s %s", name, field.Name, what))
		}
	}
	slices.Sort(lines)
	return lines
}

// reference says what a field is: a type, "items" of a type, "values" of a type, or a list with keys.
func (g *generator) reference(ref schema.TypeRef) string {
	if ref.NamedType != nil {
		if g.leads[*ref.NamedType] {
			return "type " + *ref.NamedType
		}
		return ""
	}
	atom, _ := g.schema.Resolve(ref)
	switch {
	case atom.List != nil && atom.List.ElementRelationship == schema.Associative:
		return "keyed " + g.element(atom.List.ElementType) + " " + g.keys(atom.List)
	case atom.List != nil:
		if element := g.element(atom.List.ElementType); g.leads[element] {
			return "items " + element
		}
	case atom.Map != nil && len(atom.Map.Fields) == 0:
		if element := g.element(atom.Map.ElementType); g.leads[element] {
			return "values " + element
		}
	}
	return ""
}

func (g *generator) element(ref schema.TypeRef) string {
	if ref.NamedType == nil {
		return "scalar"
	}
	return *ref.NamedType
}

// keys are those of the items, each with its default; "-" for a set of scalars.
func (g *generator) keys(list *schema.List) string {
	if len(list.Keys) == 0 {
		return "-"
	}
	var keys []string
	atom, _ := g.schema.Resolve(list.ElementType)
	for _, key := range list.Keys {
		text := key
		if field, found := atom.Map.FindField(key); found && field.Default != nil {
			text += fmt.Sprintf("=%v", field.Default)
		}
		keys = append(keys, text)
	}
	return strings.Join(keys, ",")
}
