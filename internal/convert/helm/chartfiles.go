// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"encoding/base64"
	"errors"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/gobwas/glob"
	"sigs.k8s.io/yaml"
)

// files are what templates see as .Files, by their path. Helm's own lets chance decide between files of the same name.
type files map[string][]byte

// GetBytes returns a file; one that is missing is empty.
func (f files) GetBytes(name string) []byte {
	if data, ok := f[name]; ok {
		return data
	}
	return []byte{}
}

// Get returns a file as a text.
func (f files) Get(name string) string { return string(f[name]) }

// Glob returns the files with a path that matches the pattern; all files if the pattern is invalid.
func (f files) Glob(pattern string) files {
	match, err := glob.Compile(pattern, '/')
	if err != nil {
		match = glob.MustCompile("**")
	}
	found := files{}
	for name, data := range f {
		if match.Match(name) {
			found[name] = data
		}
	}
	return found
}

// AsConfig prints the files as the data of a ConfigMap: by their name, without folders.
func (f files) AsConfig() string {
	return f.print(func(data []byte) string { return string(data) })
}

// AsSecrets prints the files as the data of a Secret.
func (f files) AsSecrets() string { return f.print(base64.StdEncoding.EncodeToString) }

func (f files) print(encode func([]byte) string) string {
	if f == nil {
		return ""
	}
	data := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		data[path.Base(name)] = encode(f[name])
	}
	text, err := yaml.Marshal(data)
	if err != nil {
		return "" // as Helm has it
	}
	return strings.TrimSuffix(string(text), "\n")
}

// Lines returns the lines of a file.
func (f files) Lines(name string) []string {
	if len(f[name]) == 0 {
		return []string{}
	}
	return strings.Split(strings.TrimSuffix(string(f[name]), "\n"), "\n")
}

// asFiles converts the files of Helm's engine, which have a type of their own.
func asFiles(engines any) (files, error) {
	v := reflect.ValueOf(engines)
	if !v.IsValid() || !v.CanConvert(reflect.TypeFor[files]()) {
		return nil, errors.New("the files of the chart are of another type")
	}
	made, _ := v.Convert(reflect.TypeFor[files]()).Interface().(files) // of that type
	return made, nil
}
