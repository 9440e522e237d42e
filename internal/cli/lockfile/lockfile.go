// SPDX-License-Identifier: Apache-2.0

// Package lockfile writes a resolved bundle into a manifest: the lock of a BundleDeployment, or the image of a BundleSource. Every
// other byte of the file stays: comments, order and layout.
package lockfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Want is what is written.
type Want struct {
	Package string // of the BundleDeployment
	Name    string // of the BundleDeployment; "" for the only object, which may be a BundleSource
	Bundle  string
	Image   string // with a digest
}

// pinnedImage is what the API accepts as an image with its digest.
var pinnedImage = regexp.MustCompile(`^[][A-Za-z0-9._:/-]+@sha256:[0-9a-f]{64}$`)

// Write returns the file with the bundle, and the object that has it.
func Write(data []byte, want Want) (written []byte, object string, err error) {
	if !pinnedImage.MatchString(want.Image) {
		return nil, "", fmt.Errorf("the image %.200q has no valid digest", want.Image)
	}
	found, err := find(data, want)
	if err != nil {
		return nil, "", err
	}
	f := &file{data: data}
	if found.kind == "BundleSource" {
		err = f.source(found.at, want)
	} else {
		err = f.lock(found.at, want)
	}
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", found, err)
	}
	written = f.written()
	if _, err := find(written, want); err != nil {
		return nil, "", fmt.Errorf("%s: its layout cannot be edited: write the lock by hand once", found)
	}
	return written, found.String(), nil
}

// target is an object that can have the bundle.
type target struct {
	kind, name string
	at         *yaml.Node // spec.catalog, or spec.sources[0].image
}

func (t target) String() string { return t.kind + " " + t.name }

// find returns the only object of the file that can have the bundle.
func find(data []byte, want Want) (target, error) {
	var found []target
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return target{}, fmt.Errorf("reading YAML: %w", err)
		}
		if t, is := targetOf(document.Content[0], want); is {
			found = append(found, t)
		}
	}
	switch len(found) {
	case 0:
		return target{}, fmt.Errorf("it has no BundleDeployment with spec.catalog of package %s, and no BundleSource with one image: give the file of the object", want.Package)
	case 1:
		return found[0], nil
	}
	return target{}, fmt.Errorf("it has %s and %s: give a file with one of them", found[0], found[1])
}

func targetOf(root *yaml.Node, want Want) (target, bool) {
	t := target{kind: scalar(field(root, "kind")), name: scalar(field(field(root, "metadata"), "name"))}
	if want.Name != "" && (t.name != want.Name || t.kind != "BundleDeployment") {
		return t, false
	}
	spec := field(root, "spec")
	switch t.kind {
	case "BundleDeployment":
		t.at = field(spec, "catalog")
		return t, t.at != nil && scalar(field(t.at, "package")) == want.Package
	case "BundleSource":
		sources := field(spec, "sources")
		if sources == nil || sources.Kind != yaml.SequenceNode || len(sources.Content) != 1 {
			return t, false
		}
		t.at = field(sources.Content[0], "image")
		return t, t.at != nil
	}
	return t, false
}

// field is the value of a key of a mapping; nil for none.
func field(of *yaml.Node, key string) *yaml.Node {
	if at := keyAt(of, key); at >= 0 {
		return of.Content[at+1]
	}
	return nil
}

// keyAt is the position of a key in a mapping; -1 for none.
func keyAt(of *yaml.Node, key string) int {
	if of == nil || of.Kind != yaml.MappingNode {
		return -1
	}
	for i := 0; i+1 < len(of.Content); i += 2 {
		if of.Content[i].Value == key {
			return i
		}
	}
	return -1
}

func scalar(of *yaml.Node) string {
	if of == nil || of.Kind != yaml.ScalarNode {
		return ""
	}
	return of.Value
}

// file is the text with the changes to it.
type file struct {
	data  []byte
	edits []edit
}

// edit replaces the bytes from start to end.
type edit struct {
	start, end int
	text       string
}

func (f *file) written() []byte {
	slices.SortFunc(f.edits, func(a, b edit) int { return b.start - a.start })
	out := slices.Clone(f.data)
	for _, e := range f.edits {
		out = slices.Replace(out, e.start, e.end, []byte(e.text)...)
	}
	return out
}

// source writes the image of a BundleSource.
func (f *file) source(image *yaml.Node, want Want) error {
	if field(image, "version") != nil {
		return errors.New("spec.sources[0].image.version follows tags: remove it to pin the image")
	}
	reference := field(image, "reference")
	if reference == nil {
		return errors.New("spec.sources[0].image has no reference: write it once")
	}
	return f.replace(reference, want.Image)
}

// lock writes spec.catalog.lock, behind the package if it is new.
func (f *file) lock(of *yaml.Node, want Want) error {
	lock := field(of, "lock")
	if lock != nil {
		bundle, image := field(lock, "bundle"), field(lock, "image")
		if bundle == nil || image == nil {
			return errors.New("spec.catalog.lock needs bundle and image: remove it, or write both")
		}
		return errors.Join(f.replace(bundle, want.Bundle), f.replace(image, want.Image))
	}
	key := of.Content[keyAt(of, "package")]
	if of.Style&yaml.FlowStyle != 0 {
		first := f.offset(of.Content[0])
		text := fmt.Sprintf("lock: {bundle: %s, image: %s}, ", shown(want.Bundle, false), shown(want.Image, false))
		if of.Content[0].Style&yaml.DoubleQuotedStyle != 0 { // JSON
			text = fmt.Sprintf(`"lock": {"bundle": %s, "image": %s}, `, shown(want.Bundle, true), shown(want.Image, true))
		}
		f.edits = append(f.edits, edit{start: first, end: first, text: text})
		return nil
	}
	value := f.offset(field(of, "package"))
	indent := string(bytes.Repeat([]byte(" "), key.Column-1))
	text := fmt.Sprintf("%slock:\n%s  bundle: %s\n%s  image: %s\n", indent, indent, shown(want.Bundle, false), indent, shown(want.Image, false))
	end := bytes.IndexByte(f.data[value:], '\n')
	at := value + end + 1
	if end < 0 {
		at = len(f.data)
		text = "\n" + text
	}
	f.edits = append(f.edits, edit{start: at, end: at, text: text})
	return nil
}

// replace writes another value in place of a scalar.
func (f *file) replace(of *yaml.Node, value string) error {
	if of.Kind != yaml.ScalarNode {
		return fmt.Errorf("line %d is no plain value: write it as one", of.Line)
	}
	start := f.offset(of)
	length := tokenLength(f.data[start:], of)
	if length < 0 {
		return fmt.Errorf("line %d: the value is written in a way that cannot be edited: write it in one line", of.Line)
	}
	f.edits = append(f.edits, edit{start: start, end: start + length, text: shown(value, of.Style != 0)})
	return nil
}

// tokenLength is the length of a scalar as it is written; -1 for a form that is not edited.
func tokenLength(text []byte, of *yaml.Node) int {
	var quote byte
	switch of.Style {
	case yaml.DoubleQuotedStyle:
		quote = '"'
	case yaml.SingleQuotedStyle:
		quote = '\''
	case 0:
		if bytes.HasPrefix(text, []byte(of.Value)) {
			return len(of.Value)
		}
		return -1
	default:
		return -1
	}
	if text[0] != quote || bytes.Contains([]byte(of.Value), []byte{quote}) || bytes.ContainsAny([]byte(of.Value), "\\\n") {
		return -1
	}
	end := bytes.IndexByte(text[1:], quote)
	if end != len(of.Value) {
		return -1
	}
	return end + 2
}

// offset is the position of a node in the file.
func (f *file) offset(of *yaml.Node) int {
	at := 0
	for range of.Line - 1 {
		at += bytes.IndexByte(f.data[at:], '\n') + 1
	}
	for range of.Column - 1 {
		_, size := utf8.DecodeRune(f.data[at:])
		at += size
	}
	return at
}

// plainWord needs no quotes in YAML: it has a dot, so that it is no word with a meaning such as true.
var plainWord = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9/-]*\.[A-Za-z0-9@:._/-]*[A-Za-z0-9]$`)

// shown is a value as it is written.
func shown(value string, quoted bool) string {
	if !quoted && plainWord.MatchString(value) {
		return value
	}
	text, _ := json.Marshal(value) // a string can always be encoded; YAML reads what JSON writes
	return string(text)
}
