// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/satchel-dev/satchel/internal/fetch"
)

const (
	// objectsPerEntry is how many objects a pack may have for each entry that a tree may have. What is outside the
	// wanted folder comes along.
	objectsPerEntry = 10
	// inflation is how many times larger than the largest pack its objects may be once inflated.
	inflation = 8
	// maxMetadata bounds a commit or tree object, which are not files.
	maxMetadata = 8 << 20
)

// File is a pack file with an index of its objects. Objects that the pack holds as they are stay in it; those it
// holds as deltas are rebuilt once and kept in a second file. No more than one object and a bounded part of the chain of
// deltas that leads to it is in memory at a time.
type File struct {
	limits  fetch.Limits
	file    *os.File
	scanner *packfile.Scanner
	rebuilt *os.File
	written int64 // bytes in rebuilt
	left    int64 // bytes that may yet be inflated
	objects map[plumbing.Hash]Object
}

// Object tells where the content of an object is.
type Object struct {
	kind    plumbing.ObjectType
	offset  int64
	Size    int64
	rebuilt bool
}

// Open indexes the pack in a file, which it closes on failure and owns otherwise.
func Open(ctx context.Context, file *os.File, scratch string, l fetch.Limits) (*File, error) {
	// The scanner counts from where the file stands when it is made.
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	rebuilt, err := os.OpenFile(filepath.Join(scratch, "rebuilt"), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	p := &File{
		limits: l, file: file, rebuilt: rebuilt, scanner: packfile.NewScanner(file),
		left: inflation * l.GitPackBytes, objects: map[plumbing.Hash]Object{},
	}
	if err := p.index(ctx); err != nil {
		return nil, errors.Join(Damaged(err), p.Close())
	}
	return p, nil
}

// Len is how many objects the pack holds.
func (p *File) Len() int { return len(p.objects) }

// Rebuilt is how many bytes of objects were rebuilt from deltas.
func (p *File) Rebuilt() int64 { return p.written }

// Close releases the files; the owner of their folder removes them.
func (p *File) Close() error { return errors.Join(p.file.Close(), p.rebuilt.Close()) }

func (p *File) index(ctx context.Context) error {
	_, count, err := p.scanner.Header()
	if err != nil {
		return err
	}
	if most := objectsPerEntry * p.limits.Entries; int64(count) > int64(most) {
		return fetch.Errorf(fetch.LimitExceeded, "the commit has more than %d objects", most)
	}
	todo := newDeltas()
	for range count {
		if err := ctx.Err(); err != nil {
			return fetch.NetworkError(context.Cause(ctx))
		}
		if err := p.scan(todo); err != nil {
			return err
		}
	}
	if _, err := p.scanner.Checksum(); err != nil {
		return err
	}
	return p.rebuild(ctx, todo)
}

// scan reads one object of the pack.
func (p *File) scan(todo *deltas) error {
	header, err := p.scanner.NextObjectHeader()
	if err != nil {
		return err
	}
	if err := p.inflate(header.Length); err != nil {
		return err
	}
	hasher := plumbing.NewHasher(header.Type, header.Length)
	var sink io.Writer = hasher
	if header.Type.IsDelta() {
		sink = io.Discard
	}
	written, _, err := p.scanner.NextObject(sink)
	if err != nil {
		return err
	}
	if written != header.Length {
		return fetch.Errorf(fetch.InvalidContent, "the pack has an object of another size than it declares")
	}
	switch header.Type {
	case plumbing.OFSDeltaObject:
		todo.byOffset[header.OffsetReference] = append(todo.byOffset[header.OffsetReference], header.Offset)
	case plumbing.REFDeltaObject:
		todo.byHash[header.Reference] = append(todo.byHash[header.Reference], header.Offset)
	case plumbing.CommitObject, plumbing.TreeObject, plumbing.BlobObject, plumbing.TagObject:
		hash := hasher.Sum()
		p.objects[hash] = Object{kind: header.Type, offset: header.Offset, Size: header.Length}
		todo.bases = append(todo.bases, hash)
	default:
		return fetch.Errorf(fetch.InvalidContent, "the pack has an object of the unknown kind %d", header.Type)
	}
	return nil
}

// inflate takes bytes off what may yet be inflated.
func (p *File) inflate(bytes int64) error {
	if bytes < 0 || bytes > p.left {
		return fetch.Errorf(fetch.LimitExceeded, "the objects of the commit have more than %d bytes",
			inflation*p.limits.GitPackBytes)
	}
	p.left -= bytes
	return nil
}

// Read returns the content of an object. The caller has checked its size, which is what read allocates.
func (p *File) Read(found Object) ([]byte, error) {
	content, err := p.Open(found)
	if err != nil {
		return nil, err
	}
	data := bytes.NewBuffer(make([]byte, 0, found.Size+bytes.MinRead))
	_, err = data.ReadFrom(content)
	return data.Bytes(), errors.Join(Damaged(err), content.Close())
}

// Open returns the content of an object. Only one can be open at a time.
func (p *File) Open(found Object) (io.ReadCloser, error) {
	if found.rebuilt {
		return io.NopCloser(io.NewSectionReader(p.rebuilt, found.offset, found.Size)), nil
	}
	if _, err := p.scanner.SeekObjectHeader(found.offset); err != nil {
		return nil, Damaged(err)
	}
	content, err := p.scanner.ReadObject()
	return content, Damaged(err)
}

// Get returns the content of a commit or tree.
func (p *File) Get(hash plumbing.Hash, kind plumbing.ObjectType) ([]byte, error) {
	found, err := p.Find(hash, kind)
	if err != nil {
		return nil, err
	}
	if found.Size > maxMetadata {
		return nil, fetch.Errorf(fetch.LimitExceeded, "the %s %s has more than %d bytes", kind, hash, maxMetadata)
	}
	return p.Read(found)
}

// Find returns an object of a kind that the pack must hold.
func (p *File) Find(hash plumbing.Hash, kind plumbing.ObjectType) (Object, error) {
	found, known := p.objects[hash]
	if !known {
		return Object{}, fetch.Errorf(fetch.InvalidContent, "the server did not send the object %s", hash)
	}
	if found.kind != kind {
		return Object{}, fetch.Errorf(fetch.InvalidContent, "the object %s is a %s, not a %s", hash, found.kind, kind)
	}
	return found, nil
}

// Damaged gives the scanner's findings a reason; those that have one, and failures of the disk, stay as they are.
func Damaged(err error) error {
	var local *fs.PathError
	if err == nil || fetch.ReasonOf(err) != "" || errors.As(err, &local) || errors.Is(err, context.Canceled) {
		return err
	}
	return fetch.Errorf(fetch.InvalidContent, "the pack is damaged: %s", fetch.Quote(err.Error()))
}
