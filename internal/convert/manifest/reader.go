// SPDX-License-Identifier: Apache-2.0

// Package manifest reads Kubernetes objects from YAML and JSON of untrusted bundles.
//
// It reads what kubectl reads, YAML 1.1 scalars included, and is stricter where kubectl guesses: keys that appear twice with
// different values, aliases that multiply, values JSON cannot hold and whatever exceeds a limit are refused, each problem naming
// file and document.
package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// mostProblems ends the reading of a bundle in which everything is wrong.
const mostProblems = 100

// Manifest is one object and where it was read.
type Manifest struct {
	File string
	// Document counts from 1; the items of a List share the number of their list.
	Document int
	Object   *unstructured.Unstructured
}

// Problem returns a problem of this manifest.
func (m Manifest) Problem(rule, message, remedy string) Problem {
	return Problem{File: m.File, Document: m.Document, Object: Describe(m.Object), Rule: rule, Message: message, Remedy: remedy}
}

// Describe names an object for people: "Kind name", "Kind" or "object name" where the rest is missing.
func Describe(object *unstructured.Unstructured) string {
	kind, name := object.GetKind(), object.GetName()
	if kind == "" && name == "" {
		return ""
	}
	if kind == "" {
		kind = "object"
	}
	return strings.TrimSpace(presentable(kind) + " " + presentable(name))
}

// presentable keeps texts that could not be names from spoiling a message.
func presentable(text string) string {
	text = shorten(text, longestName)
	if strings.ContainsFunc(text, unicode.IsControl) {
		return strconv.Quote(text)
	}
	return text
}

// Named says whether a file is a manifest by its name.
func Named(file string) bool {
	switch strings.ToLower(path.Ext(file)) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// Reader reads the manifests of one bundle, all of them counted against one set of limits. It gathers problems instead
// of stopping at the first, except that a limit on the whole ends the reading.
type Reader struct {
	files    fs.FS
	limits   Limits
	names    interned
	problems []Problem
	stopped  bool

	bytes              int64
	documents, objects int
	aliasBudget        int
	values             budget
	repeats            repeats
}

// NewReader reads from files within limits; limits that are zero take their defaults.
func NewReader(files fs.FS, limits Limits) *Reader {
	limits = limits.OrDefault()
	return &Reader{
		files: files, limits: limits, names: interned{}, aliasBudget: int(limits.TotalBytes),
		values: budget{left: limits.Values, limit: limits.Values},
	}
}

// Problems is what was wrong so far.
func (r *Reader) Problems() []Problem { return r.problems }

// Read returns the objects of one file in the order of their documents, Lists flattened. What is wrong becomes Problems.
func (r *Reader) Read(name string) []Manifest {
	if f := r.load(name); r.accepts(f) {
		return r.objectsOf(f)
	}
	return nil
}

// mostBeside is the size of a file beside the manifests: published ones stay below 8 KiB, and their values are not counted.
const mostBeside = 256 << 10

// ReadFile returns the bytes of a file beside the manifests (annotations, properties) within the limit of one file, and
// 256 KiB. Its problem bears rule, unless the file could not be read this time.
func (r *Reader) ReadFile(name, rule string) ([]byte, *Problem) {
	data, problem := r.readLimited(name, min(mostBeside, r.limits.FileBytes))
	if problem != nil && problem.Rule != RuleRead {
		problem.Rule = rule
	}
	return data, problem
}

// file is the text of a file, or the problem of reading it.
type file struct {
	name    string
	data    []byte
	problem *Problem
	nodes   nodes // of the text, if it is parsed already
}

// load reads a file, unless the reading of the bundle has ended.
func (r *Reader) load(name string) file {
	if r.stopped {
		return file{}
	}
	data, problem := r.readLimited(name, r.limits.FileBytes)
	if problem == nil {
		data, problem = text(name, data)
	}
	return file{name: name, data: data, problem: problem}
}

// accepts counts a file that was read, or reports its problem.
func (r *Reader) accepts(f file) bool {
	if r.stopped {
		return false
	}
	if f.problem != nil {
		r.report(*f.problem)
		return false
	}
	return r.count(f.name, len(f.data))
}

func (r *Reader) readLimited(name string, limit int64) ([]byte, *Problem) {
	if linked, err := Linked(r.files, name); err != nil || linked {
		return nil, linkProblem(name, err)
	}
	f, err := r.files.Open(name)
	if err != nil {
		return nil, unreadable(name, err)
	}
	defer f.Close() //nolint:errcheck // opened for reading only: closing cannot lose anything
	info, err := f.Stat()
	if err != nil {
		return nil, unreadable(name, err)
	}
	if !info.Mode().IsRegular() {
		return nil, &Problem{File: name, Rule: RuleFile, Message: "this is not a regular file", Remedy: "replace it by one"}
	}
	var read bytes.Buffer
	read.Grow(int(min(info.Size(), limit)) + bytes.MinRead)
	if _, err := read.ReadFrom(io.LimitReader(f, limit+1)); err != nil {
		return nil, unreadable(name, err)
	}
	if int64(read.Len()) > limit {
		return nil, &Problem{File: name, Rule: RuleLimit, Remedy: "split the file, or raise --limit-manifest-bytes",
			Message: fmt.Sprintf("the file is larger than the %d bytes that it may have", limit)}
	}
	return read.Bytes(), nil
}

// Linked says whether a path leads through a symbolic link. Links are never followed: they can lead out of the bundle.
func Linked(files fs.FS, name string) (bool, error) {
	for at := 0; at <= len(name); at++ {
		if at < len(name) && name[at] != '/' {
			continue
		}
		info, err := fs.Lstat(files, name[:at])
		if err != nil {
			return false, err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return true, nil
		}
	}
	return false, nil
}

func linkProblem(name string, err error) *Problem {
	if err != nil {
		return unreadable(name, err)
	}
	return &Problem{File: name, Rule: RuleFile, Message: "this is a symbolic link, or lies behind one", Remedy: "replace the link by what it points to"}
}

// unreadable tells a file that the bundle lacks from one that cannot be read now; without the machine's own path.
func unreadable(name string, err error) *Problem {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return &Problem{File: name, Rule: RuleFile, Message: "the file does not exist"}
	}
	return Unreadable(name, err)
}

// Unreadable is the problem of a file or folder that cannot be read now.
func Unreadable(name string, err error) *Problem {
	message := err.Error()
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		message = pathError.Err.Error()
	}
	return &Problem{File: name, Rule: RuleRead, Message: "reading fails: " + message, Remedy: "it is tried again"}
}

// text strips a byte order mark and refuses what cannot be a text in UTF-8.
func text(name string, data []byte) ([]byte, *Problem) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	switch {
	case bytes.IndexByte(data, 0) >= 0:
		return nil, &Problem{File: name, Rule: RuleSyntax, Message: "the file contains NUL bytes, so it is not a UTF-8 text file", Remedy: "save it as UTF-8"}
	case !utf8.Valid(data):
		return nil, &Problem{File: name, Rule: RuleSyntax, Message: "the file is not valid UTF-8", Remedy: "save it as UTF-8"}
	}
	return data, nil
}

func (r *Reader) report(p Problem) {
	if r.stopped {
		return
	}
	r.problems = append(r.problems, p)
	if len(r.problems) >= mostProblems {
		r.stop(Problem{File: p.File, Rule: RuleLimit, Message: fmt.Sprintf("reading stopped after %d problems", mostProblems)})
	}
}

func (r *Reader) stop(p Problem) {
	r.problems = append(r.problems, p)
	r.stopped = true
}
