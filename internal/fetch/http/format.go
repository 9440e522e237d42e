// SPDX-License-Identifier: Apache-2.0

package http

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// tarBlock is the size of a tar header, of which the magic stands at tarMagic.
const (
	tarBlock = 512
	tarMagic = 257
)

// format is what an archive can be.
type format struct {
	name     string
	magic    string // its bytes at the offset at
	at       int
	suffixes []string // names that promise it
	unpack   func(context.Context, *spooled, *fetch.Tree) error
}

var formats = []format{
	{name: "a tar.gz archive", magic: "\x1f\x8b", suffixes: []string{".tgz", ".tar.gz"},
		unpack: func(ctx context.Context, archive *spooled, tree *fetch.Tree) error {
			return tree.UntarGzip(ctx, archive)
		}},
	{name: "a tar archive", magic: "ustar", at: tarMagic, suffixes: []string{".tar"},
		unpack: func(ctx context.Context, archive *spooled, tree *fetch.Tree) error { return tree.Untar(ctx, archive) }},
	{name: "a tar.zst archive", magic: "\x28\xb5\x2f\xfd", suffixes: []string{".tzst", ".tar.zst"},
		unpack: func(ctx context.Context, archive *spooled, tree *fetch.Tree) error {
			return tree.UntarZstd(ctx, archive)
		}},
	{name: "a zip archive", magic: "PK\x03\x04", suffixes: []string{".zip"},
		unpack: func(ctx context.Context, archive *spooled, tree *fetch.Tree) error {
			return tree.Unzip(ctx, archive, archive.size)
		}},
	{name: "an empty zip archive", magic: "PK\x05\x06"},
	{name: "an xz archive", magic: "\xfd7zXZ\x00"},
	{name: "a bzip2 archive", magic: "BZh"},
	{name: "a 7z archive", magic: "7z\xbc\xaf\x27\x1c"},
}

// supported is the list of formats for people.
const supported = "publish a tar, tar.gz, tar.zst or zip archive"

// unpackAs unpacks what an archive turns out to be. Its first bytes decide; where the name in the URL promises another
// format, nothing is unpacked, for then the server sent something else than was asked for.
func unpackAs(ctx context.Context, archive *spooled, tree *fetch.Tree, name string) error {
	head := make([]byte, tarBlock)
	n, err := archive.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	head = head[:n]
	found := slices.IndexFunc(formats, func(f format) bool {
		return len(head) >= f.at && bytes.HasPrefix(head[f.at:], []byte(f.magic))
	})
	switch {
	case len(head) == 0:
		return fetch.Errorf(fetch.InvalidContent, "the server sent nothing")
	case found < 0 && isPage(head, archive.header):
		return fetch.Errorf(fetch.InvalidContent, "the server sent a web page, not an archive: "+
			"check the URL, which may need a login")
	case found < 0:
		return fetch.Errorf(fetch.InvalidContent, "not an archive: %s", supported)
	case formats[found].unpack == nil:
		return fetch.Errorf(fetch.InvalidContent, "%s is not supported: %s", formats[found].name, supported)
	}
	if promised, other := otherThan(formats[found], name); other {
		return fetch.Errorf(fetch.InvalidContent, "the URL names %s and the server sent %s: name it as what it is",
			promised, formats[found].name)
	}
	return formats[found].unpack(ctx, archive, tree)
}

// otherThan returns the format that a name promises, when that is not f.
func otherThan(f format, name string) (string, bool) {
	name = strings.ToLower(name)
	for _, each := range formats {
		for _, suffix := range each.suffixes {
			if strings.HasSuffix(name, suffix) && each.name != f.name {
				return each.name, true
			}
		}
	}
	return "", false
}

// isPage tells HTML by its label or its beginning.
func isPage(head []byte, header http.Header) bool {
	stated, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	start := bytes.ToLower(bytes.TrimSpace(head))
	return err == nil && stated == "text/html" ||
		bytes.HasPrefix(start, []byte("<!doctype html")) || bytes.HasPrefix(start, []byte("<html"))
}
