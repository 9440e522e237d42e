// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"context"
	"encoding/binary"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// maxChain bounds the deltas between an object and the one that the pack holds as it is; git itself writes 50, 250
// at most.
const maxChain = 1000

// deltas are the objects of a pack that are described by their difference to another one.
type deltas struct {
	byOffset map[int64][]int64         // offset of the base -> offsets of deltas
	byHash   map[plumbing.Hash][]int64 // hash of the base -> offsets of deltas
	bases    []plumbing.Hash           // objects that are no deltas, in the order of the pack
}

func newDeltas() *deltas {
	return &deltas{byOffset: map[int64][]int64{}, byHash: map[plumbing.Hash][]int64{}}
}

// of returns the deltas of an object; each is returned once.
func (d *deltas) of(hash plumbing.Hash, offset int64) []int64 {
	found := append(d.byOffset[offset], d.byHash[hash]...)
	delete(d.byOffset, offset)
	delete(d.byHash, hash)
	return found
}

// step is an object on the way from a base to a delta of a delta.
type step struct {
	kind    plumbing.ObjectType
	content []byte
	todo    []int64 // offsets of the deltas that build on it
}

// rebuild makes objects of all deltas, depth first, so that only one chain is in memory.
func (p *pack) rebuild(ctx context.Context, todo *deltas) error {
	for _, hash := range todo.bases {
		base := p.objects[hash]
		waiting := todo.of(hash, base.offset)
		if len(waiting) == 0 {
			continue
		}
		content, err := p.read(base)
		if err != nil {
			return err
		}
		if err := p.descend(ctx, todo, step{base.kind, content, waiting}); err != nil {
			return err
		}
	}
	if len(todo.byOffset)+len(todo.byHash) > 0 {
		return fetch.Errorf(fetch.InvalidContent, "the pack has deltas without a base")
	}
	return nil
}

// descend rebuilds what builds on one base.
func (p *pack) descend(ctx context.Context, todo *deltas, base step) error {
	chain, held := []step{base}, int64(len(base.content))
	for len(chain) > 0 {
		if ctx.Err() != nil {
			return fetch.NetworkError(context.Cause(ctx))
		}
		top := &chain[len(chain)-1]
		if len(top.todo) == 0 {
			held -= int64(len(top.content))
			chain = chain[:len(chain)-1]
			continue
		}
		offset := top.todo[0]
		top.todo = top.todo[1:]
		next, err := p.apply(todo, *top, offset)
		if err != nil {
			return err
		}
		if len(next.todo) == 0 {
			continue
		}
		chain, held = append(chain, next), held+int64(len(next.content))
		if len(chain) > maxChain || held > 2*p.largest() {
			return fetch.Errorf(fetch.LimitExceeded, "the pack has a chain of more than %d deltas, or of %d bytes",
				maxChain, 2*p.largest())
		}
	}
	return nil
}

// apply rebuilds one delta and stores the object.
func (p *pack) apply(todo *deltas, base step, offset int64) (step, error) {
	var delta bytes.Buffer
	header, err := p.scanner.SeekObjectHeader(offset)
	if err != nil {
		return step{}, damaged(err)
	}
	if header.Length > p.largest() {
		return step{}, tooLarge(p.largest())
	}
	if _, _, err := p.scanner.NextObject(&delta); err != nil {
		return step{}, damaged(err)
	}
	if err := p.checkTarget(delta.Bytes()); err != nil {
		return step{}, err
	}
	content, err := packfile.PatchDelta(base.content, delta.Bytes())
	if err != nil {
		return step{}, damaged(err)
	}
	hash := plumbing.ComputeHash(base.kind, content)
	if err := p.keep(hash, base.kind, content); err != nil {
		return step{}, err
	}
	return step{base.kind, content, todo.of(hash, offset)}, nil
}

// checkTarget reads the size that a delta announces: after the size of its base, both in groups of seven bits.
func (p *pack) checkTarget(delta []byte) error {
	_, length := binary.Uvarint(delta)
	if length <= 0 {
		return fetch.Errorf(fetch.InvalidContent, "the pack has a malformed delta")
	}
	size, length := binary.Uvarint(delta[length:])
	if length <= 0 {
		return fetch.Errorf(fetch.InvalidContent, "the pack has a malformed delta")
	}
	if size > uint64(p.largest()) { //nolint:gosec // limits are positive
		return tooLarge(p.largest())
	}
	return p.inflate(int64(size)) //nolint:gosec // bounded by the line above
}

// keep appends a rebuilt object to the second file.
func (p *pack) keep(hash plumbing.Hash, kind plumbing.ObjectType, content []byte) error {
	if _, known := p.objects[hash]; known {
		return nil
	}
	if _, err := p.rebuilt.WriteAt(content, p.written); err != nil {
		return err
	}
	size := int64(len(content))
	p.objects[hash] = object{kind: kind, offset: p.written, size: size, rebuilt: true}
	p.written += size
	return nil
}
