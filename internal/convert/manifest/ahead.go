// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"errors"
	"io"
	"iter"

	"go.yaml.in/yaml/v3"
)

const (
	// filesAhead is how many files are parsed while the objects of another one are built: a worker process has two processors.
	filesAhead = 2
	// largestAhead is the size in bytes of the largest file that is parsed ahead: the nodes of all its documents are in memory at once,
	// and need up to 170 times as much as the text, as those of {a,a,a} do: 22 MiB for each file.
	largestAhead = 128 << 10
)

// nodes are the documents of a YAML text. An error is the last.
type nodes = iter.Seq2[*yaml.Node, error]

// parse returns the documents of a YAML text one by one.
func parse(data []byte) nodes {
	return func(yield func(*yaml.Node, error) bool) {
		decoder := yaml.NewDecoder(bytes.NewReader(data))
		for {
			var node yaml.Node
			err := decoder.Decode(&node)
			if errors.Is(err, io.EOF) || !yield(&node, err) || err != nil {
				return
			}
		}
	}
}

// parseAhead is parse of a text that is parsed from now on, by another goroutine.
func parseAhead(data []byte) nodes {
	type document struct {
		node *yaml.Node
		err  error
	}
	var documents []document
	parsed := make(chan struct{})
	go func() {
		defer close(parsed)
		for node, err := range parse(data) {
			documents = append(documents, document{node, err})
		}
	}()
	return func(yield func(*yaml.Node, error) bool) {
		<-parsed
		for _, d := range documents {
			if !yield(d.node, d.err) {
				return
			}
		}
	}
}

// ReadAll returns the objects of several files, and finds the problems, as if Read was called for one after the other. Small files are
// parsed while the objects of those before are built.
func (r *Reader) ReadAll(names []string) []Manifest {
	var out []Manifest
	var ahead []file
	for next := 0; ; {
		for ; next < len(names) && len(ahead) <= filesAhead; next++ {
			ahead = append(ahead, r.begin(names[next]))
		}
		if len(ahead) == 0 {
			return out
		}
		if r.accepts(ahead[0]) {
			out = append(out, r.objectsOf(ahead[0])...)
		}
		ahead[0] = file{} // so that its nodes can be collected
		ahead = ahead[1:]
	}
}

// begin reads a file, and has it parsed if it is small.
func (r *Reader) begin(name string) file {
	f := r.load(name)
	if f.problem == nil && len(f.data) <= largestAhead && !isJSON(name, f.data) {
		f.nodes = parseAhead(f.data)
	}
	return f
}
