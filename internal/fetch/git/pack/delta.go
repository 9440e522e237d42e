// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"bytes"
	"context"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/satchel-dev/satchel/internal/fetch"
)

const (
	// maxChain bounds the deltas between an object and the one that the pack holds as it is; git itself writes 50, 250
	// at most.
	maxChain = 1000
	// maxRebuilt bounds an object that is rebuilt in memory, its base and its delta. Objects that the pack holds as they
	// are can be larger: they are streamed.
	maxRebuilt = 16 << 20
	// maxHeld bounds the objects of a chain that are kept in memory because more deltas build on them; beyond it they are
	// read again.
	maxHeld = 2 * maxRebuilt
)

// rebuilding lets two packs at a time be rebuilt in this process, whosever they are, which bounds its memory: each holds
// maxHeld, an object, its base and its delta at most.
var rebuilding = make(chan struct{}, 2)

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
	found   Object
	content []byte  // nil when it is to be read again
	todo    []int64 // offsets of the deltas that build on it
	depth   int
}

// rebuild makes objects of all deltas, depth first, so that only one chain is in memory. It waits while other packs are
// being rebuilt.
func (p *File) rebuild(ctx context.Context, todo *deltas) error {
	if len(todo.byOffset)+len(todo.byHash) == 0 {
		return nil
	}
	select {
	case rebuilding <- struct{}{}:
		defer func() { <-rebuilding }()
	case <-ctx.Done():
		return fetch.NetworkError(context.Cause(ctx))
	}
	for _, hash := range todo.bases {
		base := p.objects[hash]
		waiting := todo.of(hash, base.offset)
		if len(waiting) == 0 {
			continue
		}
		if err := p.descend(ctx, todo, step{found: base, todo: waiting}); err != nil {
			return err
		}
	}
	if len(todo.byOffset)+len(todo.byHash) > 0 {
		return fetch.Errorf(fetch.InvalidContent, "the pack has deltas without a base")
	}
	return nil
}

// descend rebuilds what builds on one base. A step leaves the chain before its last delta is followed.
func (p *File) descend(ctx context.Context, todo *deltas, base step) error {
	chain := []step{base}
	for len(chain) > 0 {
		if ctx.Err() != nil {
			return fetch.NetworkError(context.Cause(ctx))
		}
		top := &chain[len(chain)-1]
		if err := p.hold(top); err != nil {
			return err
		}
		current, offset := *top, top.todo[0]
		if top.todo = top.todo[1:]; len(top.todo) == 0 {
			*top = step{}
			chain = chain[:len(chain)-1]
		}
		next, err := p.apply(todo, current, offset)
		if err != nil {
			return err
		}
		if next.depth > maxChain {
			return fetch.Errorf(fetch.LimitExceeded, "the pack has a chain of more than %d deltas", maxChain)
		}
		if len(next.todo) > 0 {
			chain = append(chain, next)
			release(chain)
		}
	}
	return nil
}

// hold has the content of a step in memory. Each time that is work, which counts against what may be inflated.
func (p *File) hold(s *step) error {
	if s.content != nil {
		return nil
	}
	if s.found.Size > maxRebuilt {
		return tooLargeToRebuild()
	}
	if err := p.inflate(s.found.Size); err != nil {
		return err
	}
	content, err := p.Read(s.found)
	s.content = content
	return err
}

// release drops the contents that are needed last, where all together are too large.
func release(chain []step) {
	held := 0
	for i := len(chain) - 1; i >= 0; i-- {
		if held += len(chain[i].content); held > maxHeld {
			chain[i].content = nil
		}
	}
}

// apply rebuilds one delta and stores the object.
func (p *File) apply(todo *deltas, base step, offset int64) (step, error) {
	delta, err := p.delta(offset)
	if err != nil {
		return step{}, err
	}
	size, err := targetSize(delta)
	if err != nil {
		return step{}, err
	}
	if err := p.inflate(size); err != nil {
		return step{}, err
	}
	content, err := patch(base.content, delta)
	if err != nil {
		return step{}, err
	}
	hash := plumbing.ComputeHash(base.found.kind, content)
	if err := p.keep(hash, base.found.kind, content); err != nil {
		return step{}, err
	}
	return step{found: p.objects[hash], content: content, todo: todo.of(hash, offset), depth: base.depth + 1}, nil
}

// delta reads a delta of the pack.
func (p *File) delta(offset int64) ([]byte, error) {
	header, err := p.scanner.SeekObjectHeader(offset)
	if err != nil {
		return nil, Damaged(err)
	}
	if header.Length > maxRebuilt {
		return nil, tooLargeToRebuild()
	}
	delta := bytes.NewBuffer(make([]byte, 0, header.Length))
	if _, _, err := p.scanner.NextObject(delta); err != nil {
		return nil, Damaged(err)
	}
	return delta.Bytes(), nil
}

func tooLargeToRebuild() error {
	return fetch.Errorf(fetch.LimitExceeded, "the pack holds an object of more than %d bytes as a difference to another one, "+
		"or as the base of one, which is too much to rebuild in memory: provide files of that size in an image or an archive",
		maxRebuilt)
}

// keep appends a rebuilt object to the second file.
func (p *File) keep(hash plumbing.Hash, kind plumbing.ObjectType, content []byte) error {
	if _, known := p.objects[hash]; known {
		return nil
	}
	if _, err := p.rebuilt.WriteAt(content, p.written); err != nil {
		return err
	}
	size := int64(len(content))
	p.objects[hash] = Object{kind: kind, offset: p.written, Size: size, rebuilt: true}
	p.written += size
	return nil
}
