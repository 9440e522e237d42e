// SPDX-License-Identifier: Apache-2.0

package lastapplied

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/satchel-dev/satchel/internal/artifact/volume"
	"github.com/satchel-dev/satchel/internal/fetch"
)

const (
	suffix = ".snapshot"
	// magic begins every file and names its layout: magic, SHA-256 of what follows, zstd frame.
	magic = "satchel snapshot 1\n"
	// maxBytes bounds one snapshot unpacked. 25,000 objects of the permitted 16 MiB of manifests stay far below.
	maxBytes = 1 << 30
)

// Snapshots keeps one compressed value a key: the objects that were applied last, so that they can be kept from drifting
// while a newer revision cannot be loaded. Files are readable by this user only. It is safe for concurrent use with
// different keys.
type Snapshots struct {
	dir   string
	files volume.FileSystem
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

// Save replaces the value of key, which is a UID, as a whole: after a kill the previous or the present value is there.
func (s *Snapshots) Save(key string, data []byte) error {
	err := s.with(key, func(root *os.Root, name string) error {
		compressor, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
		if err != nil {
			return err
		}
		packed := compressor.EncodeAll(data, nil)
		sum := sha256.Sum256(packed)
		return volume.WriteDurably(s.files, root, name, bytes.Join([][]byte{[]byte(magic), sum[:], packed}, nil))
	})
	if err != nil {
		return fmt.Errorf("saving snapshot %.80q: %w", key, err)
	}
	return nil
}

// Load returns the value of key; false when there is none. A damaged one is an error with reason fetch.InvalidContent.
func (s *Snapshots) Load(key string) (data []byte, ok bool, err error) {
	err = s.with(key, func(root *os.Root, name string) error {
		opened, _, err := volume.OpenRegular(root, name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return volume.WrapError("reading", err)
		}
		defer opened.Close() //nolint:errcheck // only read from
		content, err := io.ReadAll(opened)
		if err != nil {
			return volume.WrapError("reading", err)
		}
		data, err = decode(content)
		ok = err == nil
		return err
	})
	if err != nil {
		return nil, false, fetch.Describe(err, "loading snapshot %.80q", key)
	}
	return data, ok, nil
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

func decode(content []byte) ([]byte, error) {
	rest, ok := bytes.CutPrefix(content, []byte(magic))
	if !ok || len(rest) < sha256.Size {
		return nil, fetch.Errorf(fetch.InvalidContent, "the file is damaged: its beginning is not that of a snapshot")
	}
	if sha256.Sum256(rest[sha256.Size:]) != [sha256.Size]byte(rest[:sha256.Size]) {
		return nil, fetch.Errorf(fetch.InvalidContent, "the file is damaged: its checksum is wrong")
	}
	expander, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBytes))
	if err != nil {
		return nil, fmt.Errorf("preparing to unpack: %w", err)
	}
	defer expander.Close()
	data, err := expander.DecodeAll(rest[sha256.Size:], nil)
	if err != nil {
		return nil, fetch.Errorf(fetch.InvalidContent, "the file is damaged: %w", err)
	}
	return data, nil
}
