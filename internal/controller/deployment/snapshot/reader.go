// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/certificate"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/artifact/lastapplied"
	"github.com/satchel-dev/satchel/internal/controller/deployment/certificates"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/spec/leftout"
)

// Reader reads the snapshot of a deployment once, when it is first needed.
type Reader struct {
	snapshots *lastapplied.Snapshots
	uid       string

	once sync.Once
	// objects are those of the snapshot, and wanted the certificates that they mounted and
	// trusted.
	objects map[inventory.ID]*unstructured.Unstructured
	wanted  []convert.Certificate
	begun   map[inventory.ID][]Begun // from the same file, before this reconcile
	files   leftout.Applied
}

// NewReader returns a reader of the snapshot of a deployment.
func NewReader(snapshots *lastapplied.Snapshots, uid string) *Reader {
	return &Reader{snapshots: snapshots, uid: uid}
}

// Object finds an object of the snapshot, and tells whether it trusted the certificates then; nil
// when there is none.
func (r *Reader) Object(id inventory.ID) (last *unstructured.Unstructured, trusted bool) {
	r.once.Do(r.read)
	last = r.objects[id]
	return last, last != nil && certificate.Trusts(last, certificates.Requests(r.wanted))
}

// Files says which files the objects of the snapshot came from.
func (r *Reader) Files() leftout.Applied {
	r.once.Do(r.read)
	return r.files
}

func (r *Reader) read() {
	last, applied, err := Read(r.snapshots, r.uid)
	if err != nil {
		return // without it, a field of another field manager is reported instead of reclaimed
	}
	r.wanted = last.Certificates
	r.readBegun(last.Begun)
	r.objects = make(map[inventory.ID]*unstructured.Unstructured, len(last.Objects))
	for _, object := range last.Objects {
		r.objects[inventory.IDOf(object)] = object
	}
	r.files = leftout.Applied{Known: applied, LeftOut: last.Files.LeftOut, Origins: last.origins(), Held: last.Files.held()}
}

// readBegun indexes the objects that were begun before this reconcile.
func (r *Reader) readBegun(begun []Begun) {
	if r.begun != nil {
		return
	}
	r.begun = make(map[inventory.ID][]Begun, len(begun))
	for _, object := range begun {
		id := inventory.IDOf(object.Object)
		r.begun[id] = append(r.begun[id], object)
	}
}

// BegunAs are the contents that were begun for an object since a revision was applied completely: those to which its
// inventory entry refers, or referred. The snapshot has to be read before.
func (r *Reader) BegunAs(entry inventory.Entry) []*unstructured.Unstructured {
	var contents []*unstructured.Unstructured
	for _, begun := range r.begun[entry.ID] {
		if begun.Recorded || begun.isOf(entry) {
			contents = append(contents, begun.Object)
		}
	}
	return contents
}
