// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/satchel-dev/satchel/internal/concurrentio"
	"github.com/satchel-dev/satchel/internal/fetch/links"
)

const (
	copyBufferBytes = 64 << 10
	// compressionLevel takes less than half of the time of the default level, for files of manifests that are an eighth larger.
	compressionLevel = 2
)

// WriteCanonical writes the regular files of tree as an uncompressed tar that depends on nothing but their names and bytes:
// sorted names, each folder right before the first file in it, no owner, epoch times, files 0644 and folders 0755. Anything
// but regular files and folders is an error. What a tree is known to lack (see links.Of) is named first, in a global PAX header, which
// those who do not know it skip.
func WriteCanonical(ctx context.Context, w io.Writer, tree fs.FS) error {
	names, err := regularFiles(ctx, tree)
	if err != nil {
		return err
	}
	archive := canonicalWriter{tree: tree, tar: tar.NewWriter(w), buffer: make([]byte, copyBufferBytes)}
	if err := archive.nameLeftOut(); err != nil {
		return err
	}
	for _, name := range names {
		if err := archive.add(ctx, name); err != nil {
			return fmt.Errorf("packing %q: %w", name, err)
		}
	}
	if err := archive.tar.Close(); err != nil {
		return fmt.Errorf("ending the tar: %w", err)
	}
	return nil
}

// nameLeftOut writes the global header. All folders were listed before, so that a folder of the disk knows its links.
func (w *canonicalWriter) nameLeftOut() error {
	records, err := links.Records(links.Of(w.tree))
	if err == nil && records != nil {
		err = w.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: records})
	}
	if err != nil {
		return fmt.Errorf("naming what is left out: %w", err)
	}
	return nil
}

// regularFiles lists the paths of all regular files, sorted by their bytes. All paths below one folder are neighbours then.
func regularFiles(ctx context.Context, tree fs.FS) ([]string, error) {
	var names []string
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("listing %q: %w", name, err)
		case entry.IsDir():
			return ctx.Err()
		case !entry.Type().IsRegular():
			return fmt.Errorf("packing %q: it is neither a regular file nor a folder", name)
		}
		names = append(names, name)
		return nil
	})
	slices.Sort(names)
	return names, err
}

// canonicalWriter adds files in sorted order and remembers the folder it is in.
type canonicalWriter struct {
	tree   fs.FS
	tar    *tar.Writer
	folder string
	buffer []byte
}

func (w *canonicalWriter) add(ctx context.Context, name string) error {
	if err := w.enter(path.Dir(name)); err != nil {
		return err
	}
	file, err := w.tree.Open(name)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // only read from
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("it is no longer a regular file")
	}
	if err := w.tar.WriteHeader(canonicalHeader(tar.TypeReg, name, info.Size())); err != nil {
		return err
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{w.tar}, contextReader{ctx, file}, w.buffer)
	if err != nil {
		return err
	}
	return w.tar.Flush()
}

// enter writes the folders from the current one down to folder that have not been written yet.
func (w *canonicalWriter) enter(folder string) error {
	if folder == "." || folder == w.folder || strings.HasPrefix(w.folder, folder+"/") {
		return nil
	}
	if err := w.enter(path.Dir(folder)); err != nil {
		return err
	}
	w.folder = folder
	return w.tar.WriteHeader(canonicalHeader(tar.TypeDir, folder+"/", 0))
}

func canonicalHeader(kind byte, name string, size int64) *tar.Header {
	mode := int64(0o644)
	if kind == tar.TypeDir {
		mode = 0o755
	}
	return &tar.Header{Typeflag: kind, Name: name, Size: size, Mode: mode, ModTime: time.Unix(0, 0)}
}

// Sums are what packing a tree finds out.
type Sums struct {
	Identity string // of the uncompressed tar, hexadecimal
	Digest   string // of the compressed file, hexadecimal
	Size     int64  // of the compressed file
}

// Packer packs trees. It keeps its compressors, which are larger than most bundles, for the next tree. It is safe for
// concurrent use.
type Packer struct {
	compressors sync.Pool
}

// Pack writes tree to w as a canonical tar, compressed, in one pass. The gzip header carries no name and no time. Of a large
// tree, reading, compressing and writing run at once.
func (p *Packer) Pack(ctx context.Context, w io.Writer, tree fs.FS) (Sums, error) {
	outer := &digestWriter{to: w, hash: sha256.New()}
	compressed := concurrentio.NewWriter(outer)
	defer compressed.Abandon()
	compressor, release := p.compressor(compressed)
	defer release()
	content := concurrentio.NewWriter(compressor)
	defer content.Abandon()
	inner := &digestWriter{to: content, hash: sha256.New()}
	if err := WriteCanonical(ctx, inner, tree); err != nil {
		return Sums{}, err
	}
	for _, stage := range []io.Closer{content, compressor, compressed} {
		if err := stage.Close(); err != nil {
			return Sums{}, fmt.Errorf("ending the gzip stream: %w", err)
		}
	}
	return Sums{Identity: inner.sum(), Digest: outer.sum(), Size: outer.size}, nil
}

// compressor returns one that writes to w until it is released.
func (p *Packer) compressor(w io.Writer) (compressor *gzip.Writer, release func()) {
	compressor, kept := p.compressors.Get().(*gzip.Writer)
	if !kept {
		compressor, _ = gzip.NewWriterLevel(w, compressionLevel) // fails for a level that does not exist
	}
	compressor.Reset(w)
	return compressor, func() {
		compressor.Reset(io.Discard) // a kept one holds no file
		p.compressors.Put(compressor)
	}
}

// digestWriter hashes and counts what passes through it.
type digestWriter struct {
	to   io.Writer
	hash hash.Hash
	size int64
}

func (w *digestWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	w.hash.Write(p[:n])
	w.size += int64(n)
	return n, err
}

func (w *digestWriter) sum() string { return hex.EncodeToString(w.hash.Sum(nil)) }

// contextReader ends with the context.
type contextReader struct {
	ctx  context.Context //nolint:containedctx // Read has no parameter for it
	from io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.from.Read(p)
}
