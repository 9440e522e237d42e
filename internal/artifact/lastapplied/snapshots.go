// SPDX-License-Identifier: Apache-2.0

package lastapplied

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/satchel-dev/satchel/internal/artifact/volume"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/format"
)

const (
	suffix = ".snapshot"
	// maxBytes bounds one snapshot unpacked. 25,000 objects of the permitted 16 MiB of manifests stay far below.
	maxBytes = 1 << 30
)

// Snapshots keeps one compressed value a key: the objects that were applied last, so that they can be kept from drifting
// while a newer revision cannot be loaded. Each value may have an addition, which is replaced by itself. Files are readable by this
// user only. It is safe for concurrent use with different keys.
type Snapshots struct {
	dir     string
	files   volume.FileSystem
	packers sync.Pool // of *zstd.Encoder: the tables of one are hundreds of times as large as a small snapshot
}

// Open prepares a folder, which one process uses at a time; nil means the real file system.
func Open(dir string, files volume.FileSystem) (*Snapshots, error) {
	if files == nil {
		files = volume.OSFileSystem{}
	}
	root, err := volume.OpenFolder(dir)
	if err == nil {
		err = errors.Join(volume.RemoveTemporary(root, "."), root.Close())
	}
	if err != nil {
		return nil, fmt.Errorf("opening the snapshots: %w", err)
	}
	return &Snapshots{dir: dir, files: files}, nil
}

// Save replaces the value of key, which is a UID, as a whole, and removes its addition: after a kill all is as before, or as it is to
// be. What is stored already is not written again.
func (s *Snapshots) Save(key string, data []byte) error {
	return s.save(key, func(file) (file, error) {
		value, err := s.pack(data)
		return file{value: value}, err
	})
}

// SaveAddition replaces the addition to the value of key, and leaves the value as it is. A value that is missing or damaged is
// empty afterwards. The cost depends on the addition, and little on the value.
func (s *Snapshots) SaveAddition(key string, data []byte) error {
	return s.save(key, func(stored file) (file, error) {
		addition, err := s.pack(data)
		return file{value: stored.value, addition: addition}, err
	})
}

// save replaces the file of key by what update makes of it, which is empty if it cannot be read.
func (s *Snapshots) save(key string, update func(file) (file, error)) error {
	err := s.with(key, func(root *os.Root, name string) error {
		stored, content, err := read(root, name)
		if err != nil {
			stored, content = file{}, nil
		}
		next, err := update(stored)
		if err != nil {
			return err
		}
		if encoded := next.encode(); !bytes.Equal(encoded, content) {
			return volume.WriteDurably(s.files, root, name, encoded)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("saving snapshot %.80q: %w", key, err)
	}
	return nil
}

// Load returns the value of key; false when there is none. A damaged one is an error with reason fetch.InvalidContent.
func (s *Snapshots) Load(key string) (data []byte, ok bool, err error) {
	return s.load(key, func(stored file) []byte { return stored.value })
}

// LoadAddition returns the addition to the value of key, which is empty if none was saved; false when there is no file.
// A damaged one is an error with reason fetch.InvalidContent.
func (s *Snapshots) LoadAddition(key string) (data []byte, ok bool, err error) {
	return s.load(key, func(stored file) []byte { return stored.addition })
}

func (s *Snapshots) load(key string, part func(file) []byte) (data []byte, ok bool, err error) {
	err = s.with(key, func(root *os.Root, name string) error {
		stored, _, err := read(root, name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		data, err = unpack(part(stored))
		ok = err == nil
		return err
	})
	if err != nil {
		return nil, false, fetch.Describe(err, "loading snapshot %.80q", key)
	}
	return data, ok, nil
}

// read reads and checks a file.
func read(root *os.Root, name string) (stored file, content []byte, err error) {
	opened, _, err := volume.OpenRegular(root, name)
	if errors.Is(err, fs.ErrNotExist) {
		return file{}, nil, err
	}
	if err != nil {
		return file{}, nil, volume.WrapError("reading", err)
	}
	defer opened.Close() //nolint:errcheck // only read from
	if content, err = io.ReadAll(opened); err != nil {
		return file{}, nil, volume.WrapError("reading", err)
	}
	stored, err = parse(content)
	return stored, content, err
}

// Stamp tells one stored value of a key from others.
type Stamp struct{ info fs.FileInfo }

// Same tells whether nothing was stored between two stamps.
func (s Stamp) Same(other Stamp) bool {
	return s.info != nil && other.info != nil && os.SameFile(s.info, other.info) &&
		s.info.ModTime().Equal(other.info.ModTime()) && s.info.Size() == other.info.Size()
}

// Stamp returns the stamp of the value of key, without reading it; false when there is none.
func (s *Snapshots) Stamp(key string) (stamp Stamp, ok bool, err error) {
	err = s.with(key, func(root *os.Root, name string) error {
		info, err := root.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return volume.WrapError("reading", err)
		}
		stamp, ok = Stamp{info: info}, true
		return nil
	})
	if err != nil {
		return Stamp{}, false, fetch.Describe(err, "loading snapshot %.80q", key)
	}
	return stamp, ok, nil
}

// Delete removes the value of key. That there is none is no error.
func (s *Snapshots) Delete(key string) error {
	err := s.with(key, func(root *os.Root, name string) error {
		if err := root.RemoveAll(name); !errors.Is(err, fs.ErrNotExist) {
			return volume.WrapError("removing", err)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("deleting snapshot %.80q: %w", key, err)
	}
	return nil
}

// KeepOnly removes the values of all keys that are not listed: of deployments that were deleted while no controller ran. It
// is for the start, before Save is called for a key that the list may lack. It removes what it can before it returns an
// error. Files that are no snapshots are left alone.
func (s *Snapshots) KeepOnly(keys map[string]bool) error {
	present, err := s.keys()
	failed := []error{err}
	for _, key := range present {
		if !keys[key] {
			failed = append(failed, s.Delete(key))
		}
	}
	if err := errors.Join(failed...); err != nil {
		return fmt.Errorf("removing the snapshots of deployments that are gone: %w", err)
	}
	return nil
}

// keys lists what has a value, sorted.
func (s *Snapshots) keys() ([]string, error) {
	root, err := volume.OpenFolder(s.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // only read from
	entries, err := volume.ListFolder(root, ".")
	if err != nil {
		return nil, volume.WrapError("listing a folder", err)
	}
	var keys []string
	for _, entry := range entries {
		if key, ok := strings.CutSuffix(entry.Name(), suffix); ok && volume.CheckUID(key) == nil {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// with runs work on the file of a key.
func (s *Snapshots) with(key string, work func(root *os.Root, name string) error) error {
	if err := volume.CheckUID(key); err != nil {
		return err
	}
	root, err := volume.OpenFolder(s.dir)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // all that was written is synced by then
	return work(root, key+suffix)
}

// file is a stored file: compressed parts, of which an empty one holds nothing.
type file struct{ value, addition []byte }

func (f file) encode() []byte {
	encoded := []byte(format.Snapshot.Line())
	for _, part := range [][]byte{f.value, f.addition} {
		sum := sha256.Sum256(part)
		encoded = binary.BigEndian.AppendUint64(encoded, uint64(len(part)))
		encoded = append(append(encoded, sum[:]...), part...)
	}
	return encoded
}

// parse verifies the checksums of a file, without decompressing it.
func parse(content []byte) (f file, err error) {
	rest, err := volume.Cut(format.Snapshot, content)
	if err != nil {
		return file{}, err
	}
	for _, part := range []*[]byte{&f.value, &f.addition} {
		const head = 8 + sha256.Size
		if len(rest) < head || binary.BigEndian.Uint64(rest) > uint64(len(rest)-head) { //nolint:gosec // the rest is at least as long as the head
			return file{}, fetch.Errorf(fetch.InvalidContent, "the file is damaged: it is not a whole snapshot")
		}
		size := int(binary.BigEndian.Uint64(rest)) //nolint:gosec // it was compared with the size of the file
		*part = rest[head : head+size]
		if err := verify(*part, rest[8:]); err != nil {
			return file{}, err
		}
		rest = rest[head+size:]
	}
	return f, nil
}

// verify compares a part with a checksum.
func verify(part, sum []byte) error {
	if sha256.Sum256(part) != [sha256.Size]byte(sum[:sha256.Size]) {
		return fetch.Errorf(fetch.InvalidContent, "the file is damaged: a checksum is wrong")
	}
	return nil
}

func (s *Snapshots) pack(data []byte) ([]byte, error) {
	packer, ok := s.packers.Get().(*zstd.Encoder)
	if !ok {
		var err error
		if packer, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest)); err != nil {
			return nil, err
		}
	}
	defer s.packers.Put(packer)
	return packer.EncodeAll(data, nil), nil
}

func unpack(packed []byte) ([]byte, error) {
	if len(packed) == 0 {
		return nil, nil
	}
	expander, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBytes))
	if err != nil {
		return nil, fmt.Errorf("preparing to unpack: %w", err)
	}
	defer expander.Close()
	data, err := expander.DecodeAll(packed, nil)
	if err != nil {
		return nil, fetch.Errorf(fetch.InvalidContent, "the file is damaged: %w", err)
	}
	return data, nil
}
