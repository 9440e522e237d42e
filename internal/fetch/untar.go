// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"

	"github.com/satchel-dev/satchel/internal/concurrentio"
)

// Untar unpacks an uncompressed tar archive and reads r to its end. The first entry that is not safe refuses the
// whole archive and is named in the error; after an error the tree is empty. The rules for links and duplicates are
// those of Tree. Modes, owners, times and extended attributes are ignored. An archive without its end marker is
// refused: nothing else tells that it was not cut between two entries.
func (t *Tree) Untar(ctx context.Context, r io.Reader) error {
	whole := &ending{reader: r}
	if err := t.unpack(ctx, whole, t.place); err != nil {
		return err
	}
	if !whole.marked() {
		return errors.Join(Errorf(InvalidContent, "the archive is cut short: its end marker is missing"), t.Clear())
	}
	return nil
}

// UntarGzip unpacks a tar archive compressed into one gzip member. The checksum at the end is verified, and nothing
// may follow it.
func (t *Tree) UntarGzip(ctx context.Context, r io.Reader) error {
	raw := &witness{reader: r}
	buffered := bufio.NewReaderSize(raw, 64<<10)
	unzipped, err := gzip.NewReader(buffered)
	if err != nil {
		return raw.explain(err)
	}
	unzipped.Multistream(false)
	ahead := concurrentio.NewReader(unzipped)
	err = errors.Join(t.Untar(ctx, ahead), ahead.Close())
	if err == nil {
		if err = atEnd(buffered); err != nil {
			err = errors.Join(err, t.Clear())
		}
	}
	return raw.explain(err)
}

// atEnd refuses bytes after the end of a compressed archive.
func atEnd(r *bufio.Reader) error {
	_, err := r.ReadByte()
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	}
	return Errorf(InvalidContent, "data follows the end of the gzip archive")
}

// placer stores one entry of an archive at a checked path of the folder.
type placer func(header *tar.Header, where string, content io.Reader) error

// unpack hands each entry to place, and leaves an empty tree behind when one fails.
func (t *Tree) unpack(ctx context.Context, r io.Reader, place placer) error {
	raw := &witness{reader: &meter{
		reader: contextReader{ctx, r}, left: &t.left.stream, limit: streamBytes(t.limits), what: "unpacked archive",
	}}
	archive := tar.NewReader(raw)
	err := t.entries(archive, place)
	if err == nil {
		err = drain(raw)
	}
	if err == nil {
		return nil
	}
	return errors.Join(raw.explain(err), t.Clear())
}

func (t *Tree) entries(archive *tar.Reader, place placer) error {
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag == tar.TypeXGlobalHeader {
			if err := t.left.entry(t.limits); err != nil {
				return err
			}
			t.leaveOutListed(header.PAXRecords)
			continue
		}
		if err := t.entry(archive, header, place); err != nil {
			return Describe(err, "archive entry %s", Quote(header.Name))
		}
	}
}

// entry checks what holds for entries of every kind.
func (t *Tree) entry(archive *tar.Reader, header *tar.Header, place placer) error {
	where, err := t.locate(header.Name)
	if err != nil {
		return err
	}
	if header.Typeflag != tar.TypeDir && (where == t.prefix || strings.HasSuffix(header.Name, "/")) {
		return Errorf(InvalidContent, "it has the name of a folder and is none")
	}
	if header.Typeflag == tar.TypeGNUSparse || sparse(header) {
		return Errorf(InvalidContent, "sparse files are not supported")
	}
	if header.Size > t.limits.FileBytes {
		return t.tooLarge(header.Size)
	}
	return place(header, where, archive)
}

// place stores an entry of a plain archive.
func (t *Tree) place(header *tar.Header, where string, content io.Reader) error {
	switch header.Typeflag {
	case tar.TypeReg:
		return t.put(where, content)
	case tar.TypeDir:
		return t.makeDirEntry(where)
	case tar.TypeSymlink, tar.TypeLink:
		return t.skipLink(where)
	}
	return Errorf(InvalidContent, "its type %s is not supported, only files, folders and links are",
		Quote(string(rune(header.Typeflag))))
}

// makeDirEntry is makeDir for an entry of its own: it counts even when the folder exists.
func (t *Tree) makeDirEntry(where string) error {
	if t.kinds[where] != directory {
		return t.makeDir(where)
	}
	return t.left.entry(t.limits)
}

// skipLink leaves nothing under the name of a link.
func (t *Tree) skipLink(where string) error {
	t.links.Add(where)
	if t.kinds[where] == directory {
		return Errorf(InvalidContent, "a link would replace a folder")
	}
	if err := t.left.entry(t.limits); err != nil {
		return err
	}
	return t.remove(where)
}

// sparse tells whether a PAX header declares holes.
func sparse(header *tar.Header) bool {
	for key := range header.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return false
}

// drain reads what follows the last entry, which may only be zeros.
func drain(r io.Reader) error {
	buffer := make([]byte, 32<<10)
	for {
		n, err := r.Read(buffer)
		for _, b := range buffer[:n] {
			if b != 0 {
				return Errorf(InvalidContent, "data follows the end of the archive")
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// ending watches how a tar archive ends.
type ending struct {
	reader io.Reader
	total  int64
	zeros  int64 // at the end of what was read
}

func (e *ending) Read(p []byte) (int, error) {
	n, err := e.reader.Read(p)
	rest := int64(len(bytes.TrimRight(p[:n], "\x00")))
	if rest > 0 {
		e.zeros = 0
	}
	e.total += int64(n)
	e.zeros += int64(n) - rest
	return n, err
}

// tarBlock is the unit of tar archives; two blocks of zeros mark the end.
const tarBlock = 512

func (e *ending) marked() bool {
	return e.total%tarBlock == 0 && e.zeros >= 2*tarBlock
}

// contextReader ends reading when ctx ends.
type contextReader struct {
	ctx    context.Context
	reader io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, NetworkError(context.Cause(c.ctx))
	}
	return c.reader.Read(p)
}

// witness remembers why its reader failed, since decoders on top of it report a failed source as damaged content.
type witness struct {
	reader io.Reader
	failed error
}

func (w *witness) Read(p []byte) (int, error) {
	n, err := w.reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		w.failed = err
	}
	return n, err
}

// explain returns the source's failure where there is one, else err with the reason of damaged content.
func (w *witness) explain(err error) error {
	if err != nil && w.failed != nil {
		err = w.failed
	}
	if err == nil || ReasonOf(err) != "" {
		return err
	}
	if text, damaged := damage(err); damaged {
		return Errorf(InvalidContent, "%s: %w", text, err)
	}
	return err
}

// damage tells whether a decoder found its input broken, and what to call that.
func damage(err error) (string, bool) {
	var corrupt flate.CorruptInputError
	switch {
	case errors.Is(err, gzip.ErrChecksum), errors.As(err, &corrupt):
		return "the gzip archive is damaged", true
	case errors.Is(err, gzip.ErrHeader):
		return "it is not a gzip archive", true
	case errors.Is(err, tar.ErrHeader), errors.Is(err, tar.ErrFieldTooLong):
		return "it is not a tar archive, or damaged", true
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "the archive is cut short", true
	}
	return "", false
}
