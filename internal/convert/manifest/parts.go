// SPDX-License-Identifier: Apache-2.0

package manifest

import "fmt"

// Bytes returns a file that is no manifest, counted against the limits like one.
func (r *Reader) Bytes(name string) ([]byte, bool) {
	if r.stopped {
		return nil, false
	}
	data, problem := r.readLimited(name, r.limits.FileBytes)
	if problem != nil {
		r.report(*problem)
		return nil, false
	}
	return data, r.count(name, len(data))
}

// Values returns the documents of a file that need not be objects, such as patches; empty ones are left out.
func (r *Reader) Values(name string) ([]any, bool) {
	f := r.load(name)
	if !r.accepts(f) {
		return nil, false
	}
	return r.documentsOf(f)
}

// ValuesOf is Values of a text that stands within a file.
func (r *Reader) ValuesOf(name string, data []byte) ([]any, bool) {
	if r.stopped || !r.count(name, len(data)) {
		return nil, false
	}
	data, problem := text(name, data)
	if problem != nil {
		r.report(*problem)
		return nil, false
	}
	return r.documentsOf(file{name: name, data: data})
}

func (r *Reader) documentsOf(f file) ([]any, bool) {
	before := len(r.problems)
	var values []any
	for _, d := range r.decode(f) {
		if d.value != nil {
			values = append(values, d.value)
		}
	}
	return values, len(r.problems) == before && !r.stopped
}

// Objects returns the objects of a text that was made of a file.
func (r *Reader) Objects(name string, data []byte) []Manifest {
	if r.stopped || !r.count(name, len(data)) {
		return nil
	}
	return r.objectsOf(file{name: name, data: data})
}

func (r *Reader) objectsOf(f file) []Manifest {
	documents := r.decode(f)
	out := make([]Manifest, 0, len(documents))
	for _, d := range documents {
		if d.value != nil {
			out = r.collect(out, f.name, d)
		}
	}
	return out
}

// count counts the bytes of a file.
func (r *Reader) count(name string, size int) bool {
	if r.bytes += int64(size); r.bytes <= r.limits.TotalBytes {
		return true
	}
	r.stop(Problem{File: name, Rule: RuleLimit, Remedy: "split the bundle, or raise --limit-manifests-bytes",
		Message: fmt.Sprintf("the manifests up to here are larger than %d bytes in all", r.limits.TotalBytes)})
	return false
}
