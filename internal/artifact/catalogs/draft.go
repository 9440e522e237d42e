// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"os"
	"path"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/volume"
	"github.com/satchel-dev/satchel/internal/catalog/index"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/format"
)

// fileNames are the files of contents, in the order of their digests.
var fileNames = []string{index.AllFile, index.LeanFile, index.ListFile, index.IndexFile}

// sumsFile has the digests of the others.
const sumsFile = "sums"

// Draft is contents that are being written.
type Draft struct {
	store  *Store
	folder string // "" once it is published
	files  map[string]*DraftFile
}

// DraftFile is one file of a Draft.
type DraftFile struct {
	draft *Draft
	file  volume.File
	name  string
	sum   hash.Hash
	size  int64
	most  int64
}

// NewDraft begins contents. The caller discards the draft in every case; that does nothing once it is published.
func (s *Store) NewDraft() (*Draft, error) {
	d := &Draft{store: s, folder: path.Join(contentsFolder, volume.TemporaryPrefix+rand.Text()), files: map[string]*DraftFile{}}
	if err := volume.MakeFolders(s.options.Files, s.root, d.folder); err != nil {
		d.Discard()
		return nil, err
	}
	for _, name := range fileNames {
		file, err := s.options.Files.Create(s.root, path.Join(d.folder, name))
		if err != nil {
			d.Discard()
			return nil, volume.WrapError("creating a file", err)
		}
		d.files[name] = &DraftFile{draft: d, file: file, name: name, sum: sha256.New(), most: s.options.Bytes}
	}
	return d, nil
}

// File returns the file with a name of package index.
func (d *Draft) File(name string) *DraftFile { return d.files[name] }

// OpenLean opens the file with lean blobs for reading only.
func (d *Draft) OpenLean() (*os.File, error) {
	file, err := d.store.root.Open(path.Join(d.folder, index.LeanFile))
	return file, volume.WrapError("opening a file", err)
}

// Write implements io.Writer.
func (f *DraftFile) Write(p []byte) (int, error) {
	if f.size+int64(len(p)) > f.most {
		return 0, fetch.Errorf(fetch.LimitExceeded, "the file %s of the indexed catalog has more than %d bytes", f.name, f.most)
	}
	n, err := f.file.Write(p)
	f.size += int64(n)
	f.sum.Write(p[:n])
	return n, volume.WrapError("writing", err)
}

// Size is how many bytes were written.
func (f *DraftFile) Size() int64 { return f.size }

// Restart empties the file.
func (f *DraftFile) Restart() error {
	if f.size == 0 {
		return nil
	}
	name := path.Join(f.draft.folder, f.name)
	store := f.draft.store
	if err := errors.Join(f.file.Close(), store.root.Remove(name)); err != nil {
		return volume.WrapError("removing a file", err)
	}
	file, err := store.options.Files.Create(store.root, name)
	if err != nil {
		f.file = nil
		return volume.WrapError("creating a file", err)
	}
	f.file, f.size = file, 0
	f.sum.Reset()
	return nil
}

// Discard removes what was not published.
func (d *Draft) Discard() {
	for _, file := range d.files {
		if file.file != nil {
			file.file.Close() //nolint:errcheck // its content is thrown away
			file.file = nil
		}
	}
	if d.folder != "" {
		d.store.root.RemoveAll(d.folder) //nolint:errcheck // the next start removes what is left
	}
}

// finish makes the files durable, and returns their digests and their size.
func (d *Draft) finish() (sums []byte, size int64, err error) {
	var text bytes.Buffer
	for _, name := range fileNames {
		file := d.files[name]
		if err := errors.Join(file.file.Sync(), file.file.Close()); err != nil {
			return nil, 0, volume.WrapError("syncing", err)
		}
		file.file = nil
		size += file.size
		fmt.Fprintf(&text, "%x  %s\n", file.sum.Sum(nil), name)
	}
	if err := volume.WriteDurably(d.store.options.Files, d.store.root, path.Join(d.folder, sumsFile), text.Bytes()); err != nil {
		return nil, 0, err
	}
	return text.Bytes(), size, nil
}

// Publish makes a catalog serve the contents of a draft. Signature is kept with the record. Its errors are *volume.StorageError
// and those of Quota; what the catalog served until then stays served.
func (s *Store) Publish(catalog types.NamespacedName, d *Draft, signature []byte) (Record, error) {
	sums, size, err := d.finish()
	if err != nil {
		return Record{}, fmt.Errorf("storing catalog %s: %w", catalog, err)
	}
	sum := sha256.Sum256(sums)
	record := Record{
		Contents: hex.EncodeToString(sum[:]), Digest: artifact.DigestPrefix + hex.EncodeToString(d.files[index.AllFile].sum.Sum(nil)),
		Bytes: size, StoredTime: time.Now().UTC().Truncate(time.Second), Signature: signature,
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before, had := s.records[catalog]
	if had && before.Contents == record.Contents {
		record.StoredTime = before.StoredTime
	}
	if err := s.options.Quota.Reserve(catalog.Namespace, record.Contents, size); err != nil {
		return Record{}, fmt.Errorf("storing catalog %s: %w", catalog, err)
	}
	if err := errors.Join(s.settle(d, record), s.write(catalog, record)); err != nil {
		return Record{}, fmt.Errorf("storing catalog %s: %w", catalog, errors.Join(err, s.release(catalog.Namespace, record.Contents)))
	}
	s.records[catalog] = record
	if had && before.Contents != record.Contents {
		return record, s.release(catalog.Namespace, before.Contents)
	}
	return record, nil
}

// settle gives the folder of a draft its name, unless equal contents are there and whole.
func (s *Store) settle(d *Draft, record Record) error {
	folder := path.Join(contentsFolder, record.Contents)
	if _, err := s.verified(record.Contents); err == nil {
		return nil
	}
	if err := s.root.RemoveAll(folder); err != nil {
		return volume.WrapError("replacing a damaged catalog", err)
	}
	if err := s.options.Files.SyncDir(s.root, d.folder); err != nil {
		return volume.WrapError("syncing the folder", err)
	}
	if err := s.options.Files.Rename(s.root, d.folder, folder); err != nil {
		return volume.WrapError("renaming", err)
	}
	d.folder = ""
	return volume.WrapError("syncing the folder", s.options.Files.SyncDir(s.root, contentsFolder))
}

func (s *Store) write(catalog types.NamespacedName, record Record) error {
	content, err := json.Marshal(record)
	if err != nil {
		return err
	}
	if err := volume.MakeFolders(s.options.Files, s.root, path.Join(recordsFolder, catalog.Namespace)); err != nil {
		return err
	}
	return volume.WriteDurably(s.options.Files, s.root, recordFile(catalog), format.Catalog.Prepend(content))
}
