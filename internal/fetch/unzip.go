// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"archive/zip"
	"compress/flate"
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
)

// UntarZstd unpacks a tar archive compressed with zstd, as Untar does.
func (t *Tree) UntarZstd(ctx context.Context, r io.Reader) error {
	raw := &witness{reader: r}
	unpacked, err := decompress(raw, Zstd)
	if err != nil {
		return raw.explain(err)
	}
	err = t.Untar(ctx, unpacked)
	return raw.explain(errors.Join(err, unpacked.Close()))
}

const (
	// zipDirectoryEntry is what an entry of a zip archive's directory takes, names of usual length included.
	zipDirectoryEntry = 256
	// zipDirectoryEnd is what may be read to find the directory: a comment has at most 64 KiB.
	zipDirectoryEnd = 128 << 10
	// zipEnd and zipEndBytes are the mark and the length of the record at the end, without its comment.
	zipEnd      = "PK\x05\x06"
	zipEndBytes = 22
	// zipEncrypted is the flag of an entry that needs a password (APPNOTE.TXT section 4.4.4).
	zipEncrypted = 1
)

// Unzip unpacks a zip archive of size bytes. The first entry that is not safe refuses the whole archive and is named
// in the error; after an error the tree is empty. Checksums are verified. The rules for links and duplicates are those
// of Tree.
func (t *Tree) Unzip(ctx context.Context, archive io.ReaderAt, size int64) error {
	err := t.unzip(ctx, archive, size)
	if err == nil {
		return nil
	}
	return errors.Join(zipError(err), t.Clear())
}

func (t *Tree) unzip(ctx context.Context, archive io.ReaderAt, size int64) error {
	// The directory is read at once, into memory, and what it says of its own length is not to be believed.
	bounded := &boundedReaderAt{ReaderAt: archive, left: zipDirectoryEnd + int64(t.limits.Entries)*zipDirectoryEntry}
	reader, err := zip.NewReader(bounded, size)
	if bounded.left < 0 {
		return Errorf(LimitExceeded, "its directory is too large for %d files, folders and links", t.limits.Entries)
	}
	if err != nil {
		return err
	}
	bounded.off = true
	if err := checkZipEnd(archive, size, len(reader.Comment)); err != nil {
		return err
	}
	for _, file := range reader.File {
		if err := t.unzipEntry(ctx, file); err != nil {
			return Describe(err, "archive entry %s", Quote(file.Name))
		}
	}
	return nil
}

// checkZipEnd refuses bytes after the end of a zip archive, which is a record and a comment.
func checkZipEnd(archive io.ReaderAt, size int64, comment int) error {
	mark := make([]byte, len(zipEnd))
	if _, err := archive.ReadAt(mark, max(size-zipEndBytes-int64(comment), 0)); err != nil {
		return err
	}
	if string(mark) != zipEnd {
		return Errorf(InvalidContent, "data follows the end of the zip archive")
	}
	return nil
}

func (t *Tree) unzipEntry(ctx context.Context, file *zip.File) error {
	where, err := t.locate(file.Name)
	if err != nil {
		return err
	}
	mode, folder := file.Mode(), strings.HasSuffix(file.Name, "/")
	switch {
	case mode.IsDir() != folder, !folder && where == t.prefix:
		return Errorf(InvalidContent, "it has the name of a folder and is none, or the reverse")
	case folder:
		return t.makeDirEntry(where)
	case mode&fs.ModeSymlink != 0:
		return t.skipLink(where)
	case !mode.IsRegular():
		return Errorf(InvalidContent, "its type is not supported, only files, folders and links are")
	case file.Flags&zipEncrypted != 0:
		return Errorf(InvalidContent, "it is encrypted")
	case file.UncompressedSize64 > uint64(t.limits.FileBytes): //nolint:gosec // a limit is positive
		return t.tooLarge(t.limits.FileBytes + 1)
	}
	return t.unzipFile(ctx, file, where)
}

func (t *Tree) unzipFile(ctx context.Context, file *zip.File, where string) error {
	content, err := file.Open()
	if err != nil {
		return err
	}
	err = t.put(where, contextReader{ctx, content})
	return errors.Join(err, content.Close())
}

// zipError gives what the decoder found its reason.
func zipError(err error) error {
	var corrupt flate.CorruptInputError
	if ReasonOf(err) != "" {
		return err
	}
	switch {
	case errors.Is(err, zip.ErrFormat), errors.Is(err, zip.ErrChecksum), errors.As(err, &corrupt),
		errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return Errorf(InvalidContent, "the zip archive is damaged, or cut short: %w", err)
	case errors.Is(err, zip.ErrAlgorithm):
		return Errorf(InvalidContent, "the zip archive uses a compression that is not supported: use deflate")
	}
	return err
}

// boundedReaderAt fails once more was read than there should be, and where nothing can be.
type boundedReaderAt struct {
	io.ReaderAt
	left int64
	off  bool
}

// ReadAt implements io.ReaderAt.
func (b *boundedReaderAt) ReadAt(p []byte, offset int64) (int, error) {
	if offset < 0 { // of an entry with an offset that overflows in the reader of zip archives
		return 0, io.ErrUnexpectedEOF
	}
	if !b.off {
		if b.left -= int64(len(p)); b.left < 0 {
			return 0, io.ErrUnexpectedEOF
		}
	}
	return b.ReaderAt.ReadAt(p, offset)
}
