// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"fmt"
	"maps"
	"reflect"
	"text/template"

	"github.com/Masterminds/sprig/v3"
)

// guard looks at the arguments of a function before it is called, where it could take more than they are large.
type guard func(m *meter, args []reflect.Value) error

// functions are those that templates have: sprig's, text/template's and Helm's own, each counted or refused. What is in none
// of the tables is refused, too, so that a new version of a library brings nothing that nobody has looked at.
func (r *renderer) functions() template.FuncMap {
	all := sprig.TxtFuncMap()
	delete(all, "env")
	delete(all, "expandenv")
	maps.Copy(all, builtins())
	maps.Copy(all, helmFunctions())
	maps.Copy(all, steadyFunctions())
	counted := make(template.FuncMap, len(all))
	for name, function := range all {
		counted[name] = r.counted(name, function)
	}
	maps.Copy(counted, r.ownFunctions())
	return counted
}

// builtins are functions of text/template that print whatever they are given.
func builtins() template.FuncMap {
	return template.FuncMap{
		"print": fmt.Sprint, "printf": fmt.Sprintf, "println": fmt.Sprintln,
		"html": template.HTMLEscaper, "js": template.JSEscaper, "urlquery": template.URLQueryEscaper,
	}
}

// counted returns a function that counts before and after it is called, of the same type.
func (r *renderer) counted(name string, function any) any {
	if why, refused := refusals[name]; refused {
		return func(...any) (string, error) { return "", &refusal{function: name, why: why} }
	}
	if constant[name] {
		return function
	}
	before, known := guards[name]
	if !known {
		return func(...any) (string, error) { return "", &refusal{function: name, why: unknownFunction} }
	}
	return r.wrap(name, function, before)
}

var errorType = reflect.TypeFor[error]()

// wrap counts what a function is given and what it makes. An error of the meter becomes one of the function: as its own
// where it has one, else as one more result.
func (r *renderer) wrap(name string, function any, before guard) any {
	inner := reflect.ValueOf(function)
	t := inner.Type()
	fails := t.NumOut() == 2 && t.Out(1) == errorType
	in := make([]reflect.Type, t.NumIn())
	for i := range in {
		in[i] = t.In(i)
	}
	call := inner.Call
	if t.IsVariadic() {
		call = inner.CallSlice
	}
	outer := reflect.FuncOf(in, []reflect.Type{t.Out(0), errorType}, t.IsVariadic())
	return reflect.MakeFunc(outer, func(args []reflect.Value) []reflect.Value {
		mark, err := r.markIn(name, args)
		if mark != "" && (t.Out(0).Kind() == reflect.String || t.Out(0).Kind() == reflect.Interface) {
			var none error
			return []reflect.Value{reflect.ValueOf(mark).Convert(t.Out(0)), reflect.ValueOf(&none).Elem()}
		}
		if err == nil {
			err = before(r.m, args)
		}
		if err != nil {
			return []reflect.Value{reflect.Zero(t.Out(0)), reflect.ValueOf(&err).Elem()}
		}
		results := call(args)
		if !existing[name] {
			err = r.m.make(size(results[0]))
		}
		if err != nil || !fails {
			return []reflect.Value{results[0], reflect.ValueOf(&err).Elem()}
		}
		return results
	}).Interface()
}

// spread returns the arguments of a call with those of a variadic one by one.
func spread(args []reflect.Value) []reflect.Value {
	if len(args) == 0 || args[len(args)-1].Kind() != reflect.Slice {
		return args
	}
	last := args[len(args)-1]
	all := append([]reflect.Value{}, args[:len(args)-1]...)
	for i := range last.Len() {
		all = append(all, last.Index(i))
	}
	return all
}

// flat is the guard of functions that take about as long as their arguments are large by themselves.
func flat(m *meter, args []reflect.Value) error {
	total := int64(0)
	for _, arg := range args {
		total += size(arg)
	}
	return m.read(total)
}

// keyed is the guard of functions that look up keys.
func keyed(m *meter, args []reflect.Value) error {
	total := int64(0)
	for _, arg := range spread(args) {
		if arg.Kind() == reflect.String {
			total += int64(arg.Len())
		}
	}
	return m.read(total)
}

// whole is the guard of functions that print, copy or compare all that their arguments hold.
func whole(m *meter, args []reflect.Value) error {
	total, err := m.weighAll(args)
	if err != nil {
		return err
	}
	return m.make(total.bytes)
}

// looked is whole for functions that make nothing of it.
func looked(m *meter, args []reflect.Value) error {
	_, err := m.weighAll(args)
	return err
}

func (m *meter) weighAll(args []reflect.Value) (weight, error) {
	var total weight
	for _, arg := range args {
		w, err := m.weigh(arg)
		if err != nil {
			return total, err
		}
		total.values += w.values
		total.bytes += w.bytes
	}
	return total, nil
}
