// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"errors"
	"fmt"
	"reflect"
	"text/template"

	"helm.sh/helm/v4/pkg/chart/common"
)

// refusal is the error of a function that would make two renders differ.
type refusal struct {
	function, why string
	site          string // where it was called, as text/template names it, if that is not where it fails
}

func (r *refusal) Error() string { return fmt.Sprintf("the function %s %s", r.function, r.why) }

// complaint is what a chart says by fail or required; it is meant for whoever installs it.
type complaint struct{ text string }

func (c *complaint) Error() string { return c.text }

// ownFunctions are those that answer for Helm's engine, and those that count.
func (r *renderer) ownFunctions() template.FuncMap {
	return template.FuncMap{
		"fail":     func(text string) (string, error) { return "", &complaint{text} },
		"required": required,
		"lookup": func(_, _, _, _ string) map[string]any {
			r.asked("lookup")
			return map[string]any{}
		},
		"getHostByName": func(string) string {
			r.asked("getHostByName")
			return ""
		},
		fnEnter:  r.m.enter,
		fnLeave:  r.m.leave,
		fnTick:   r.m.tick,
		fnRange:  r.ranged,
		fnOut:    r.printed,
		fnRead:   r.compared,
		fnMade:   r.made,
		fnValues: r.valuesYAML,
		fnRandom: r.random,
	}
}

func required(complain string, v any) (any, error) {
	if v == nil || v == "" {
		return v, &complaint{complain}
	}
	return v, nil
}

// asked remembers that a template wanted to know something of the cluster or the network.
func (r *renderer) asked(function string) {
	r.m.asked[r.file(r.m.inside())+" calls "+function] = true
}

// ranged counts what a loop has to sort before it begins.
func (r *renderer) ranged(v reflect.Value) (reflect.Value, error) {
	of := v
	for of.IsValid() && (of.Kind() == reflect.Interface || of.Kind() == reflect.Pointer) && !of.IsNil() {
		of = of.Elem()
	}
	if of.IsValid() && of.Kind() == reflect.Map {
		return v, r.m.step(int64(of.Len()) * stepsPerKey)
	}
	return v, nil
}

// printed counts what is printed as a whole; the writer counts texts.
func (r *renderer) printed(v reflect.Value) (reflect.Value, error) {
	if !holds(v) {
		return v, nil
	}
	w, err := r.m.weigh(v)
	if err != nil {
		return v, err
	}
	return v, r.m.read(w.bytes)
}

// holds tells whether a value may hold others.
func holds(v reflect.Value) bool {
	for v.IsValid() && v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Map, reflect.Slice, reflect.Array, reflect.Struct, reflect.Pointer:
		return true
	}
	return false
}

func (r *renderer) compared(v reflect.Value) (reflect.Value, error) {
	if v.Kind() == reflect.String {
		return v, r.m.read(int64(v.Len()))
	}
	return v, nil
}

func (r *renderer) made(v reflect.Value) (reflect.Value, error) { return v, r.m.make(size(v)) }

// valuesYAML is the method YAML of values, and the field of that name of other maps.
func (r *renderer) valuesYAML(v any) (any, error) {
	switch v := v.(type) {
	case common.Values:
		w, err := r.m.weigh(reflect.ValueOf(v))
		if err != nil {
			return nil, err
		}
		if err := r.m.make(w.bytes); err != nil {
			return nil, err
		}
		return v.YAML()
	case map[string]any:
		return v["YAML"], nil
	case nil:
		return nil, errors.New("nil pointer evaluating interface {}.YAML")
	}
	return nil, fmt.Errorf("can't evaluate field YAML in type %T", v)
}
