// SPDX-License-Identifier: Apache-2.0

package fbc_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/catalog/fbc"
)

const (
	jsonBlobs = `{"schema":"olm.package","name":"p","defaultChannel":"a"}
{"schema":"olm.channel","package":"p","name":"a","entries":[{"name":"p.v1","replaces":"p.v0","skips":["p.x","p.y"],"skipRange":"<1.0.0"}]}{"schema":
 "olm.bundle","package":"p","name":"p.v1","image":"i@sha256:1","properties":[{"type":"other","value":7},{"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}},{"type":"olm.package","value":{"packageName":"p","version":"9.9.9"}}]}
{"schema":"olm.deprecations","package":"p","entries":[{"reference":{"schema":"olm.bundle","name":"p.v1"},"message":"old"},{"reference":{"schema":"olm.package"},"message":"all"}]}
{"schema":"olm.deprecations","package":"p","entries":[{"reference":{"schema":"olm.bundle","name":"second"},"message":"second blob"}]}
{"schema":"custom","package":"p","anything":true}
{"schema":"olm.bundle","package":"q","name":"q.v1","image":"j"}
`
	yamlBlobs = `# a comment
---
schema: olm.package
name: p
defaultChannel: a
--- # the channel
schema: olm.channel
package: p
name: a
entries:
- {name: p.v1, replaces: p.v0, skips: [p.x, p.y], skipRange: <1.0.0}
---
---
schema: olm.bundle
package: p
name: p.v1
image: i@sha256:1
properties:
- type: olm.package
  value: {packageName: p, version: 1.0.0}
---
schema: olm.deprecations
package: p
entries:
- reference: {schema: olm.bundle, name: p.v1}
  message: old
- reference: {schema: olm.package}
  message: all
---
schema: olm.package
name: q
`
)

// lean is p of both.
func lean() *catalog.Package {
	return &catalog.Package{
		Name: "p", DefaultChannel: "a",
		Channels: []catalog.Channel{{Name: "a", Entries: []catalog.Entry{{Name: "p.v1", Replaces: "p.v0", Skips: []string{"p.x", "p.y"}, SkipRange: "<1.0.0"}}}},
		Bundles:  []catalog.Bundle{{Name: "p.v1", Image: "i@sha256:1", Version: "1.0.0"}},
		Deprecations: []catalog.Deprecation{
			{Schema: "olm.bundle", Name: "p.v1", Message: "old"}, {Schema: "olm.package", Message: "all"},
		},
	}
}

func files(all map[string]string) fstest.MapFS {
	found := fstest.MapFS{}
	for name, text := range all {
		found[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return found
}

// read reads the package p.
func read(t *testing.T, all map[string]string) fbc.Contents {
	t.Helper()
	contents, err := fbc.ReadPackage(files(all), ".", "p", fbc.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	return contents
}

// TestFormats reads the same package in each form that a catalog may have.
func TestFormats(t *testing.T) {
	documents := strings.Split(yamlBlobs, "---")
	lines := strings.SplitAfter(jsonBlobs, "\n")
	for name, all := range map[string]map[string]string{
		"JSON values":         {"catalog.json": jsonBlobs},
		"white space first":   {"catalog.json": " \n\t" + jsonBlobs},
		"YAML documents":      {"catalog.yaml": yamlBlobs},
		"CRLF":                {"catalog.yaml": strings.ReplaceAll(yamlBlobs, "\n", "\r\n")},
		"any name":            {"catalog": yamlBlobs},
		"folders":             {"a/p.yaml": documents[1] + "---" + documents[2], "b/c/q.json": jsonBlobs[strings.Index(jsonBlobs, "{\"schema\":\n \"olm.bundle"):]},
		"in order of path":    {"b.json": lines[4], "a.json": strings.Join(lines[:4], ""), "c": strings.Join(lines[5:], "")},
		"JSON between ---":    {"a.json": strings.Join(lines[:3], ""), "b": strings.ReplaceAll(strings.Join(lines[3:], ""), "}\n{", "}\n---\n{")},
		"YAML in braces":      {"a": "{schema: olm.package, name: p, defaultChannel: a}", "b": strings.Join(lines[1:], "")},
		"null":                {"a": "null", "b": jsonBlobs},
		"empty files":         {"a": "", "b": " \n", "c": "---\n", "d": "# nothing\n", "e": jsonBlobs},
		"upper case":          {"a": strings.NewReplacer(`"schema"`, `"Schema"`, `"package"`, `"PACKAGE"`, `"entries"`, `"Entries"`, `"image"`, `"Image"`).Replace(jsonBlobs)},
		"ignored files":       {"a": jsonBlobs, ".indexignore": "*.md\n# comment\n/drafts/\n!kept.md\n", "README.md": "# Hello", "drafts/x": "{", "z/kept.md": ""},
		"ignored in a folder": {"a": jsonBlobs, "b/.indexignore": "/x\n", "b/x": "{", "b/c/x": "{}"[:0], "b/y": ""},
	} {
		t.Run(name, func(t *testing.T) {
			contents := read(t, all)
			if diff := cmp.Diff(lean(), contents.Package); diff != "" || contents.Problem != nil {
				t.Errorf("%v, -want +got:\n%s", contents.Problem, diff)
			}
			if diff := cmp.Diff([]string{"p", "q"}, contents.Packages); diff != "" && strings.Contains(fmt.Sprint(all), "q") {
				t.Errorf("packages: -want +got:\n%s", diff)
			}
		})
	}
}

// TestFile reads a file by its name, and folders through symbolic links as ConfigMaps are mounted.
func TestFile(t *testing.T) {
	contents, err := fbc.ReadPackage(files(map[string]string{"a/one.json": jsonBlobs, "a/two.json": "{"}), "a/one.json", "p", fbc.DefaultLimits())
	if diff := cmp.Diff(lean(), contents.Package); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	dir := t.TempDir()
	for _, err := range []error{
		os.Mkdir(filepath.Join(dir, "..2026"), 0o755), os.WriteFile(filepath.Join(dir, "..2026", "catalog.yaml"), []byte(yamlBlobs), 0o600),
		os.Symlink("..2026", filepath.Join(dir, "..data")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	contents, err = fbc.ReadPackage(os.DirFS(dir), ".", "p", fbc.DefaultLimits())
	if diff := cmp.Diff(lean(), contents.Package); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
}

// TestNone wants nil where the catalog does not have the package.
func TestNone(t *testing.T) {
	contents := read(t, map[string]string{"a": `{"schema":"olm.bundle","package":"other","name":"p"}`})
	if contents.Package != nil || contents.Problem != nil {
		t.Errorf("got %+v", contents)
	}
	if contents = read(t, nil); contents.Package != nil || len(contents.Packages) != 0 {
		t.Errorf("an empty folder: got %+v", contents)
	}
	contents = read(t, map[string]string{"a": `{"schema":"custom","package":"p"}`})
	if contents.Package == nil {
		t.Error("a blob of another schema is no package; OLM v1 takes it for one")
	}
}

// TestC8VersionProblems has the texts of OLM v1.
func TestC8VersionProblems(t *testing.T) {
	const unmarshalling = "error unmarshalling package property: "
	for properties, want := range map[string]string{
		`null`:                               `no package property found in bundle "b"`,
		`[]`:                                 `no package property found in bundle "b"`,
		`[{"type":"olm.gvk","value":1}]`:     `no package property found in bundle "b"`,
		`[{"type":"olm.package","value":7}]`: unmarshalling + "json: cannot unmarshal number into Go value of type property.Package",
		`[{"type":"olm.package","value":"1.0.0"}]`:                             unmarshalling + "json: cannot unmarshal string into Go value of type property.Package",
		`[{"type":"olm.package","value":[]}]`:                                  unmarshalling + "json: cannot unmarshal array into Go value of type property.Package",
		`[{"type":"olm.package","value":{"version":1}}]`:                       unmarshalling + "json: cannot unmarshal number into Go struct field Package.version of type string",
		`[{"type":"olm.package","value":{"release":{}}}]`:                      unmarshalling + "json: cannot unmarshal object into Go struct field Package.release of type string",
		`[{"type":"olm.package"}]`:                                             unmarshalling + "unexpected end of JSON input",
		`[{"type":"olm.package","value":null}]`:                                "",
		`[{"type":"olm.package","value":{"version":"1.0.0"}}]`:                 "",
		`[{"type":"olm.package","value":{"version":"not one"}}]`:               "",
		`[{"type":"olm.package","value":{}},{"type":"olm.package","value":7}]`: "",
	} {
		contents := read(t, map[string]string{"a": `{"schema":"olm.bundle","package":"p","name":"b","properties":` + properties + `}`})
		if contents.Problem != nil || len(contents.Package.Bundles) != 1 || contents.Package.Bundles[0].VersionProblem != want {
			t.Errorf("%s: got %+v, %v", properties, contents.Package, contents.Problem)
		}
	}
}

// TestC24BadPackage wants one bad package to spoil itself only, and the problem to name file, blob and object.
func TestC24BadPackage(t *testing.T) {
	limits := fbc.DefaultLimits()
	limits.Entries, limits.Skips = 3, 2
	for blob, want := range map[string]string{
		`{"schema":"olm.channel","package":"q","name":"a","entries":7}`:                                       `bad.json, blob 2: olm.channel "a": the field entries has the wrong type: number`,
		`{"schema":"olm.channel","package":"q","name":"a","entries":[{},{},{},{}]}`:                           `bad.json, blob 2: olm.channel "a": more than 3 entries`,
		`{"schema":"olm.channel","package":"q","name":"a","entries":[{"name":"q.v1","skips":["1","2","3"]}]}`: `bad.json, blob 2: olm.channel "a": entry "q.v1": more than 2 skips`,
		`{"schema":"olm.bundle","package":"q","name":"b","image":[]}`:                                         `bad.json, blob 2: olm.bundle "b": the field image has the wrong type: array`,
		`{"schema":"olm.bundle","package":"q","name":"b","properties":[{"type":5}]}`:                          `bad.json, blob 2: olm.bundle "b": the field properties.type has the wrong type: number`,
		`{"schema":"olm.deprecations","package":"q","entries":[{"reference":1}]}`:                             `bad.json, blob 2: olm.deprecations "": the field entries.reference has the wrong type: number`,
		`{"package":"q","name":"b"}`:                     `bad.json, blob 2:  "b": the field schema is missing`,
		`{"schema":"olm.bundle","package":"q","name":7}`: `bad.json, blob 2: olm.bundle "": the field name has the wrong type: number`,
	} {
		all := files(map[string]string{"bad.json": `{"schema":"olm.package","name":"q"}` + blob, "good.json": jsonBlobs})
		bad, err := fbc.ReadPackage(all, ".", "q", limits)
		if err != nil || bad.Package != nil || bad.Problem == nil || !strings.HasPrefix(bad.Problem.Error(), want) {
			t.Errorf("%s: got %+v, %v, %v, want %s", blob, bad.Package, bad.Problem, err, want)
		}
		good, err := fbc.ReadPackage(all, ".", "p", limits)
		if diff := cmp.Diff(lean(), good.Package); diff != "" || err != nil || good.Problem != nil {
			t.Errorf("%s: the good package: %v %v, -want +got:\n%s", blob, err, good.Problem, diff)
		}
	}
	contents := read(t, map[string]string{"a": jsonBlobs + `{"name":"stray"}{"schema":5}{"schema":"olm.bundle","name":"b"}{"schema":"olm.package"}{"schema":"custom"}`})
	if len(contents.Problems) != 4 || contents.Package == nil || !strings.Contains(contents.Problems[0].Error(), "a, blob 8 is left out: the field schema is missing") {
		t.Errorf("blobs of no package: got %v", contents.Problems)
	}
}

// TestRefusedCatalogs is about what leaves the rest of the catalog without meaning, and about limits.
func TestRefusedCatalogs(t *testing.T) {
	small := fbc.Limits{Bytes: 2000, Blob: 500, Packages: 3, Bundles: 3, Entries: 10, Skips: 10}
	bundle := func(i int) string { return fmt.Sprintf(`{"schema":"olm.bundle","package":"p","name":"%d"}`, i) }
	long := strings.Repeat("x", 500)
	for name, c := range map[string]struct {
		all  map[string]string
		want string
	}{
		"syntax":            {map[string]string{"a/b.json": bundle(1) + "{]"}, "a/b.json, blob 2: invalid JSON: invalid character"},
		"truncated":         {map[string]string{"a.json": bundle(1)[:20]}, "a.json, blob 1: unexpected EOF; every file"},
		"no catalog":        {map[string]string{"README.md": "# Hello\n\n- a: {\n"}, "README.md, blob 1: yaml: "},
		"bytes":             {map[string]string{"a": strings.Repeat("---\n", 400), "b": strings.Repeat("---\n", 400)}, "b, blob 1: more than 2000 bytes of all files"},
		"blob, JSON":        {map[string]string{"a": bundle(1) + `{"schema":"x","name":"` + long + `"}`}, "a, blob 2: more than 500 bytes of one blob"},
		"blob, YAML":        {map[string]string{"a": "schema: x\n---\nschema: y\nname: " + long}, "a, blob 2: more than 500 bytes of one blob"},
		"a line of YAML":    {map[string]string{"a": "schema: " + strings.Repeat("x", 1900)}, "a, blob 1: more than 500 bytes of one blob"},
		"bundles":           {map[string]string{"a": bundle(1) + bundle(2), "b": bundle(3) + bundle(4)}, "b, blob 2: more than 3 bundles"},
		"packages":          {map[string]string{"a": `{"schema":"olm.package","name":"1"}{"schema":"x","package":"2"}{"schema":"x","package":"3"}{"schema":"x","package":"4"}`}, "a, blob 4: more than 3 packages"},
		"patterns":          {map[string]string{".indexignore": strings.Repeat("x\n", 1001)}, ".indexignore: more than 1000 patterns"},
		"bytes of patterns": {map[string]string{".indexignore": strings.Repeat("#\n", 100<<10), "b/.indexignore": strings.Repeat("#\n", 100<<10)}, "b/.indexignore: more than 262144 bytes of all files .indexignore"},
		"an alias bomb":     {map[string]string{"a": bomb()}, "a, blob 1: yaml: document contains excessive aliasing"},
		"two in one line":   {map[string]string{"a": "{schema: x}{schema: y}"}, "a, blob 1: invalid JSON"},
		"a list":            {map[string]string{"a": `[{"schema":"olm.package","name":"p"}]`}, "a, blob 1: this is no object"},
		"a list in a list":  {map[string]string{"a": bundle(1) + "[]"}, "a, blob 2: this is no object"},
		"--- and text":      {map[string]string{"a": "schema: x\n--- {schema: y}\n"}, "a, blob 1: something follows the end of the document"},
		"the end marker":    {map[string]string{"a": "schema: x\n...\nschema: y\n"}, "a, blob 1: "},
	} {
		t.Run(name, func(t *testing.T) {
			limits := small
			if name == "an alias bomb" {
				limits = fbc.DefaultLimits()
			}
			contents, err := fbc.ReadPackage(files(c.all), ".", "p", limits)
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v %+v, want %s", err, contents, c.want)
			}
		})
	}
	at := fbc.Limits{Bytes: 3000, Blob: int64(len(bundle(1))), Packages: 1, Bundles: 2}
	if contents, err := fbc.ReadPackage(files(map[string]string{"a": bundle(1) + bundle(2)}), ".", "p", at); err != nil || contents.Package == nil {
		t.Errorf("at the limits: got %v", err)
	}
}

func bomb() string {
	text := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := range 8 {
		text += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 10), ","))
	}
	return text
}

// TestErrors passes on what the files answer.
func TestErrors(t *testing.T) {
	if _, err := fbc.ReadPackage(files(nil), "missing", "p", fbc.DefaultLimits()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	stop := errors.New("stop")
	for _, text := range []string{jsonBlobs, yamlBlobs} {
		err := fbc.Walk(files(map[string]string{"a": text}), ".", fbc.DefaultLimits(), func(fbc.Blob) error { return stop })
		if !errors.Is(err, stop) || err.Error() != "stop" {
			t.Errorf("got %v", err)
		}
	}
}

// endless is a file of blobs that are made while they are read; it watches the memory.
type endless struct {
	blob, rest []byte
	left       int
	most       *uint64
}

func (e *endless) Read(p []byte) (int, error) {
	if len(e.rest) == 0 {
		if e.left == 0 {
			return 0, io.EOF
		}
		if e.left--; e.left%8 == 0 {
			runtime.GC()
			var memory runtime.MemStats
			runtime.ReadMemStats(&memory)
			*e.most = max(*e.most, memory.HeapAlloc)
		}
		e.rest = e.blob
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

func (e *endless) Stat() (fs.FileInfo, error) { return nil, fs.ErrInvalid }
func (e *endless) Close() error               { return nil }

// generatedFS has one file that is not there.
type generatedFS struct {
	fstest.MapFS
	file *endless
}

func (g generatedFS) Open(name string) (fs.File, error) {
	if name == "large" {
		return g.file, nil
	}
	return g.MapFS.Open(name)
}

// TestMemoryIsThatOfOneBlob reads many blobs of other packages, of 1 MiB each, and wants the memory of a few.
func TestMemoryIsThatOfOneBlob(t *testing.T) {
	for name, format := range map[string]string{
		"JSON": `{"schema":"olm.bundle","package":"other","name":"b","properties":[{"type":"olm.csv.metadata","value":"%s"}]}` + "\n",
		"YAML": "---\nschema: olm.bundle\npackage: other\nname: b\nproperties: [{type: olm.csv.metadata, value: %s}]\n",
	} {
		var before runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		most := uint64(0)
		file := &endless{blob: fmt.Appendf(nil, format, bytes.Repeat([]byte("x"), 1<<20)), left: 48, most: &most}
		contents, err := fbc.ReadPackage(generatedFS{files(map[string]string{"large": "", "p": jsonBlobs}), file}, ".", "p", fbc.DefaultLimits())
		if err != nil || contents.Package == nil || contents.Packages[0] != "other" {
			t.Fatalf("%s: got %v", name, err)
		}
		used := int64(most) - int64(before.HeapAlloc) //nolint:gosec // both are small
		t.Logf("%s: %d KiB for 48 blobs", name, used>>10)
		if used > 24<<20 {
			t.Errorf("%s: %d MiB are in use while 48 blobs of 1 MiB are read", name, used>>20)
		}
	}
}

// TestLargeBlobIsNotRead wants reading to stop soon after the limit of a blob that does not end.
func TestLargeBlobIsNotRead(t *testing.T) {
	limits := fbc.DefaultLimits()
	limits.Blob = 1 << 20
	for name, begin := range map[string]string{"JSON": `{"a":"`, "YAML": "a: "} {
		most := uint64(0)
		file := &endless{rest: []byte(begin), blob: bytes.Repeat([]byte("x"), 1<<20), left: 64, most: &most}
		_, err := fbc.ReadPackage(generatedFS{files(map[string]string{"large": ""}), file}, ".", "p", limits)
		var limit *fbc.LimitError
		if !errors.As(err, &limit) || limit.Most != 1<<20 {
			t.Errorf("%s: got %v", name, err)
		}
		if read := 64 - file.left; read > 4 {
			t.Errorf("%s: %d MiB of a blob of at most 1 MiB were read", name, read)
		}
	}
}

// FuzzReadPackage looks for files that panic, take long, or give more than they hold.
func FuzzReadPackage(f *testing.F) {
	f.Add([]byte(jsonBlobs), []byte("*.md"))
	f.Add([]byte(yamlBlobs), []byte("!a\n/**/b"))
	f.Add([]byte("{a: b}\n---\n- c"), []byte("["))
	f.Add([]byte(`{"schema":"olm.bundle","package":"p","properties":[{"type":"olm.package","value":7}]}`), []byte(""))
	f.Fuzz(func(t *testing.T, text, ignore []byte) {
		if len(text) > 10_000 || len(ignore) > 1000 {
			return
		}
		begin := time.Now()
		contents, err := fbc.ReadPackage(fstest.MapFS{"x/a": {Data: text}, "x/.indexignore": {Data: ignore}}, ".", "p", fbc.Limits{
			Bytes: 20_000, Blob: 5000, Packages: 10, Bundles: 10, Entries: 10, Skips: 10,
		})
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("it took %s", took)
		}
		if err != nil {
			return
		}
		if contents.Package != nil && (contents.Problem != nil || len(contents.Package.Bundles) > 10 || contents.Package.Name != "p") {
			t.Errorf("got %+v, %v", contents.Package, contents.Problem)
		}
		if len(contents.Packages) > 10 || len(contents.Problems) > 20 {
			t.Errorf("got %d packages and %d problems", len(contents.Packages), len(contents.Problems))
		}
	})
}
