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
	data, ok := r.load(name)
	if !ok {
		return nil, false
	}
	return r.documentsOf(name, data)
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
	return r.documentsOf(name, data)
}

func (r *Reader) documentsOf(name string, data []byte) ([]any, bool) {
	before := len(r.problems)
	var values []any
	for _, d := range r.decode(name, data) {
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
	var out []Manifest
	for _, d := range r.decode(name, data) {
		if d.value != nil {
			out = r.collect(out, name, d)
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
