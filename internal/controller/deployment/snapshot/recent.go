// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/certificate"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/artifact/lastapplied"
	"github.com/satchel-dev/satchel/internal/controller/deployment/certificates"
	"github.com/satchel-dev/satchel/internal/convert"
)

const (
	// mostRecent bounds what is kept of all snapshots, in bytes.
	mostRecent = 32 << 20
	// blockBytes is how much of a snapshot is compressed together, and decompressed to read one object.
	blockBytes = 32 << 10
	// placeBytes is what one object takes in the index.
	placeBytes = 48
)

// Recent reads single objects of snapshots. It keeps those that were read last in compressed blocks with an index, so that the
// next correction of drift costs the same for large and small deployments. The zero value is ready for use. It is safe for
// concurrent use.
type Recent struct {
	mu        sync.Mutex
	seed      maphash.Seed
	unpacker  *zstd.Decoder
	snapshots []*indexed // the last one read is at the end
}

// prepare returns what reads all snapshots.
func (r *Recent) prepare() (maphash.Seed, *zstd.Decoder, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unpacker == nil {
		unpacker, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return maphash.Seed{}, nil, err
		}
		r.seed, r.unpacker = maphash.MakeSeed(), unpacker
	}
	return r.seed, r.unpacker, nil
}

// indexed is a snapshot in blocks.
type indexed struct {
	uid          string
	stamp        lastapplied.Stamp
	revision     string
	certificates []convert.Certificate
	blocks       [][]byte
	places       map[uint64]place // by the hash of the identity; of two with one hash only one is found
	bytes        int
}

// place is where an object is: between two offsets of a block.
type place struct{ block, from, to uint32 }

// ReadSome reads some objects of the snapshot of a deployment, if all of them are in it, it is of
// the revision, and no certificate has to be injected.
func (r *Recent) ReadSome(snapshots *lastapplied.Snapshots, uid, revision string, ids []inventory.ID) (objects []*unstructured.Unstructured, whole bool, err error) {
	seed, unpacker, err := r.prepare()
	if err != nil {
		return nil, false, err
	}
	last, err := r.find(snapshots, uid, seed)
	if err != nil || last == nil || last.revision != revision {
		return nil, false, err
	}
	for _, id := range ids {
		object, err := last.object(unpacker, maphash.Comparable(seed, id), id)
		if err != nil {
			return nil, false, fmt.Errorf("reading the objects that were applied last: %w", err)
		}
		if object == nil || certificate.Trusts(object, certificates.Requests(last.certificates)) {
			return nil, false, nil
		}
		objects = append(objects, object)
	}
	return objects, true, nil
}

// Forget drops what is kept of a deployment.
func (r *Recent) Forget(uid string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remove(uid)
}

// remove takes a snapshot out of those that are kept, and returns it; nil if it is not one of them.
func (r *Recent) remove(uid string) *indexed {
	at := slices.IndexFunc(r.snapshots, func(other *indexed) bool { return other.uid == uid })
	if at < 0 {
		return nil
	}
	found := r.snapshots[at]
	r.snapshots = slices.Delete(r.snapshots, at, at+1)
	return found
}

// find returns the snapshot of a deployment as it is stored now; nil if there is none.
func (r *Recent) find(snapshots *lastapplied.Snapshots, uid string, seed maphash.Seed) (*indexed, error) {
	stamp, found, err := snapshots.Stamp(uid) // before the content: a snapshot that is saved meanwhile has another one
	if err != nil || !found {
		return nil, err
	}
	r.mu.Lock()
	last := r.remove(uid)
	r.mu.Unlock()
	if last == nil || !last.stamp.Same(stamp) {
		data, found, err := snapshots.Load(uid)
		if err != nil || !found || len(data) == 0 { // nothing was applied completely
			return nil, err
		}
		if last, err = index(data, seed); err != nil {
			return nil, fmt.Errorf("reading the objects that were applied last: %w", err)
		}
		last.uid, last.stamp = uid, stamp
	}
	r.keep(last)
	return last, nil
}

// keep adds a snapshot, and drops those that were not read for longest until all fit.
func (r *Recent) keep(last *indexed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remove(last.uid)
	bytes, first := last.bytes, len(r.snapshots)
	for first > 0 && bytes+r.snapshots[first-1].bytes <= mostRecent {
		first--
		bytes += r.snapshots[first].bytes
	}
	r.snapshots = append(slices.Clone(r.snapshots[first:]), last)
	if last.bytes > mostRecent {
		r.snapshots = nil
	}
}

// index packs the objects of a snapshot into blocks.
func index(data []byte, seed maphash.Seed) (*indexed, error) {
	var last partialSnapshot
	if err := json.Unmarshal(data, &last); err != nil {
		return nil, err
	}
	packer, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return nil, err
	}
	made := &indexed{revision: last.Revision, certificates: last.Certificates, places: make(map[uint64]place, len(last.Objects))}
	var open []byte
	for _, raw := range last.Objects {
		id, err := identify(raw)
		if err != nil {
			return nil, err
		}
		from := len(open)
		open = append(open, raw...)
		made.places[maphash.Comparable(seed, id)] = place{block: uint32(len(made.blocks)), from: uint32(from), to: uint32(len(open))} //nolint:gosec // a snapshot has less than 1 GiB
		if len(open) >= blockBytes {
			made.close(packer, open)
			open = open[:0]
		}
	}
	made.close(packer, open)
	made.bytes += placeBytes * len(made.places)
	return made, nil
}

func (i *indexed) close(packer *zstd.Encoder, open []byte) {
	packed := slices.Clone(packer.EncodeAll(open, nil))
	i.blocks = append(i.blocks, packed)
	i.bytes += len(packed)
}

// object decodes the object with an identity, and a hash of it; nil if it is not in the snapshot.
func (i *indexed) object(unpacker *zstd.Decoder, hash uint64, id inventory.ID) (*unstructured.Unstructured, error) {
	at, found := i.places[hash]
	if !found {
		return nil, nil //nolint:nilnil // it is not in the snapshot
	}
	open, err := unpacker.DecodeAll(i.blocks[at.block], nil)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(open[at.from:at.to]); err != nil {
		return nil, err
	}
	if inventory.IDOf(object) != id {
		return nil, nil //nolint:nilnil // another one with the same hash
	}
	return object, nil
}

// identify reads the identity of an object.
func identify(raw json.RawMessage) (inventory.ID, error) {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return inventory.ID{}, err
	}
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": head.APIVersion, "kind": head.Kind}}
	object.SetNamespace(head.Metadata.Namespace)
	object.SetName(head.Metadata.Name)
	return inventory.IDOf(object), nil
}

// partialSnapshot is a snapshot with objects that are not decoded.
type partialSnapshot struct {
	Revision     string                `json:"revision"`
	Objects      []json.RawMessage     `json:"objects"`
	Certificates []convert.Certificate `json:"certificates,omitempty"`
}
