// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/spec/values"
)

// Scrub removes values of Secrets from the output: the user may read them, but other readers, such as those of a pipeline's
// log, may not.
func (v *Preview) Scrub(s *values.Scrubber) {
	if s.Empty() {
		return
	}
	scrubFields(s, reflect.ValueOf(v).Elem())
	for i, o := range v.Account.Manifests {
		v.Account.Manifests[i] = scrubbedObject(s, o)
	}
	for i := range v.Objects {
		o := &v.Objects[i]
		o.Before, o.After = scrubbedObject(s, o.Before), scrubbedObject(s, o.After)
		if desired, ok := scrubbedValue(s, o.Desired).(map[string]any); ok {
			o.Desired = desired
		}
	}
}

// scrubFields scrubs all strings of a value in place.
func scrubFields(s *values.Scrubber, v reflect.Value) {
	switch v.Kind() { //nolint:exhaustive // the other kinds hold no strings
	case reflect.String:
		if v.CanSet() {
			v.SetString(s.Text(v.String()))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			scrubFields(s, v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			scrubFields(s, v.Index(i))
		}
	case reflect.Interface:
		if v.CanSet() && !v.IsNil() {
			v.Set(reflect.ValueOf(scrubbedValue(s, v.Interface())))
		}
	}
}

func scrubbedObject(s *values.Scrubber, o *unstructured.Unstructured) *unstructured.Unstructured {
	if o == nil {
		return nil
	}
	fields, _ := scrubbedValue(s, o.Object).(map[string]any)
	return &unstructured.Unstructured{Object: fields}
}

// scrubbedValue is a copy of a JSON value with scrubbed strings and numbers.
func scrubbedValue(s *values.Scrubber, value any) any {
	switch typed := value.(type) {
	case string:
		return s.Text(typed)
	case int64, float64:
		if text := fmt.Sprint(typed); s.Text(text) != text {
			return values.Redacted
		}
	case []any:
		list := make([]any, len(typed))
		for i := range typed {
			list[i] = scrubbedValue(s, typed[i])
		}
		return list
	case map[string]any:
		fields := make(map[string]any, len(typed))
		for name := range typed {
			fields[name] = scrubbedValue(s, typed[name])
		}
		return fields
	}
	return value
}
