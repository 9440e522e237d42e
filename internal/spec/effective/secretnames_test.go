// SPDX-License-Identifier: Apache-2.0

package effective_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// T23: at most 20 distinct Secrets are named by the sources of one object, also where no admission policy counts them.
func TestT23DistinctSecrets(t *testing.T) {
	for count, refused := range map[int]bool{20: false, 21: true} {
		var spec v1alpha1.BundleSourceSpec
		for i := range 2 * count { // each name twice
			spec.Sources = append(spec.Sources, v1alpha1.Source{Git: &v1alpha1.GitSource{SecretRef: &v1alpha1.LocalReference{Name: fmt.Sprint("s", i%count)}}})
		}
		if err := effective.SourceProblem(&spec); (err != nil) != refused || refused && !strings.Contains(err.Error(), "21 distinct Secrets, and may name 20") {
			t.Errorf("%d: %v", count, err)
		}
	}
}

// Each reference of a source in a field named for a Secret is counted.
func TestSecretNamesOfAllFields(t *testing.T) {
	want := map[string]bool{}
	var source v1alpha1.Source
	fill(reflect.ValueOf(&source).Elem(), "", want)
	spec := v1alpha1.BundleSourceSpec{Sources: []v1alpha1.Source{source}}
	got := effective.SecretNames(&spec)
	if len(got) != len(want) || len(got) < 10 {
		text, _ := json.Marshal(source)
		t.Errorf("got %v of %s", got, text)
	}
}

// fill sets a name of its own in each reference to a Secret.
func fill(value reflect.Value, path string, names map[string]bool) {
	switch value.Kind() {
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		fill(value.Elem(), path, names)
	case reflect.Struct:
		if value.Type() == reflect.TypeFor[v1alpha1.LocalReference]() {
			if strings.HasSuffix(path, "SecretRef") {
				names[path] = true
			}
			value.FieldByName("Name").SetString(strings.ToLower(path))
			return
		}
		for i := range value.NumField() {
			if value.Type().Field(i).IsExported() {
				fill(value.Field(i), path+"."+value.Type().Field(i).Name, names)
			}
		}
	}
}
