// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"encoding/base64"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/gobwas/glob"
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

// longestPattern bounds patterns of files: each alternative in braces doubles the work to match others.
const longestPattern = 256

// Glob returns the files whose path matches a pattern; of one that is no pattern, all.
func (f files) Glob(pattern string) (files, error) {
	if len(pattern) > longestPattern || strings.Count(pattern, "{") > 4 || strings.Count(pattern, "*") > 16 {
		return nil, &stopped{"a pattern of files is too long, or has too many alternatives", "write a simpler one"}
	}
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
	return found, nil
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
	return orNothing(toYAML(data))
}

// Lines returns the lines of a file.
func (f files) Lines(name string) []string {
	if len(f[name]) == 0 {
		return []string{}
	}
	return strings.Split(strings.TrimSuffix(string(f[name]), "\n"), "\n")
}
