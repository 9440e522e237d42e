// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"reflect"
)

// Bounds of a value that is printed, copied or compared as a whole.
const (
	deepest   = 100 // nested maps and lists
	perValue  = 16  // bytes that a value takes beside its text
	perIndent = 2   // bytes by which each level is indented when it is printed
)

// weight is what a value takes when it is written out; parts that it holds twice count twice.
type weight struct{ values, bytes int64 }

// weigh walks through the whole of a value, at most as far as the budget goes.
func (m *meter) weigh(v reflect.Value) (weight, error) {
	w := weigher{mostValues: m.steps, mostBytes: m.made}
	if err := w.value(v, 0); err != nil {
		return w.weight, err
	}
	return w.weight, m.step(w.values/4 + w.bytes/bytesPerStep)
}

type weigher struct {
	weight
	mostValues, mostBytes int64
}

func (w *weigher) value(v reflect.Value, depth int) error {
	w.values++
	w.bytes += perValue + int64(depth)*perIndent
	switch {
	case w.values > w.mostValues:
		return errSteps
	case w.bytes > w.mostBytes:
		return errMade
	case depth > deepest:
		return errNest
	}
	switch v.Kind() {
	case reflect.String:
		w.bytes += int64(v.Len())
	case reflect.Interface, reflect.Pointer:
		if !v.IsNil() {
			return w.value(v.Elem(), depth+1)
		}
	case reflect.Slice, reflect.Array:
		return w.list(v, depth)
	case reflect.Map:
		return w.entries(v, depth)
	case reflect.Struct:
		for i := range v.NumField() {
			if err := w.value(v.Field(i), depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *weigher) list(v reflect.Value, depth int) error {
	switch v.Type().Elem().Kind() {
	case reflect.Uint8, reflect.Int, reflect.Int64: // of fixed size, and often long
		w.bytes += int64(v.Len()) * perValue
		w.values += int64(v.Len()) / bytesPerStep
		return nil
	}
	for i := range v.Len() {
		if err := w.value(v.Index(i), depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (w *weigher) entries(v reflect.Value, depth int) error {
	each := v.MapRange()
	for each.Next() {
		if err := w.value(each.Key(), depth+1); err != nil {
			return err
		}
		if err := w.value(each.Value(), depth+1); err != nil {
			return err
		}
	}
	return nil
}

// size is what a value takes by itself, without what it holds.
func size(v reflect.Value) int64 {
	for v.IsValid() && v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.String:
		return int64(v.Len())
	case reflect.Slice, reflect.Array, reflect.Map:
		each := int64(perValue)
		if kind := v.Type().Elem().Kind(); kind == reflect.Uint8 {
			each = 1
		} else if v.Kind() == reflect.Map {
			each = 3 * perValue
		}
		return int64(v.Len()) * each
	}
	return 0
}
