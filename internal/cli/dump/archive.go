// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Bounds of a dump.
const (
	MostOfFile = 8 << 20   // bytes of one file in it
	MostOfDump = 256 << 20 // bytes of all files, uncompressed
)

// Archive is a .tar.gz that is written to a temporary file beside its final path.
type Archive struct {
	file    *os.File
	gzip    *gzip.Writer
	tar     *tar.Writer
	wanted  string
	root    string
	now     time.Time
	Written int64
	files   int
}

// NewArchive begins an archive. A file that exists is not overwritten.
func NewArchive(wanted string, now time.Time) (*Archive, error) {
	if _, err := os.Lstat(wanted); err == nil {
		return nil, fmt.Errorf("the file %s exists already: choose another with -o", wanted)
	}
	file, err := os.CreateTemp(filepath.Dir(wanted), ".satchel-dump-*") // readable by its owner only
	if err != nil {
		return nil, fmt.Errorf("writing the dump: %w", err)
	}
	zipped := gzip.NewWriter(file)
	base, _, _ := strings.Cut(filepath.Base(wanted), ".")
	return &Archive{file: file, gzip: zipped, tar: tar.NewWriter(zipped), wanted: wanted, root: base, now: now}, nil
}

// room is how many bytes a further file may have.
func (a *Archive) room() int64 { return max(0, min(MostOfFile, MostOfDump-a.Written)) }

// Add writes a file. A file that is too long is cut, with a note at its end.
func (a *Archive) Add(name string, content []byte) error {
	if room := a.room(); int64(len(content)) > room {
		content = append(content[:room:room], "\n[cut here: the dump is bounded]\n"...)
	}
	header := &tar.Header{Name: a.root + "/" + name, Typeflag: tar.TypeReg, Mode: 0o600, Size: int64(len(content)), ModTime: a.now}
	if err := a.tar.WriteHeader(header); err != nil {
		return fmt.Errorf("writing the dump: %w", err)
	}
	if _, err := a.tar.Write(content); err != nil {
		return fmt.Errorf("writing the dump: %w", err)
	}
	a.Written += int64(len(content))
	a.files++
	return nil
}

// Close ends the archive and moves it to its final path.
func (a *Archive) Close() error {
	err := errors.Join(a.tar.Close(), a.gzip.Close(), a.file.Sync(), a.file.Close())
	if err == nil {
		err = os.Link(a.file.Name(), a.wanted) // unlike a rename it replaces nothing
		if errors.Is(err, os.ErrExist) {
			err = fmt.Errorf("the file %s exists by now", a.wanted)
		} else if err != nil {
			err = os.Rename(a.file.Name(), a.wanted) // on file systems without links
		}
	}
	_ = os.Remove(a.file.Name())
	if err != nil {
		return fmt.Errorf("writing the dump: %w", err)
	}
	return nil
}

// Drop removes what was written. After close it does nothing.
func (a *Archive) Drop() {
	_ = a.file.Close()
	_ = os.Remove(a.file.Name())
}

// readBounded reads what there is room for.
func readBounded(in io.Reader, room int64) ([]byte, error) {
	return io.ReadAll(io.LimitReader(in, room))
}
