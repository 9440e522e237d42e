// SPDX-License-Identifier: Apache-2.0

package http

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// tarBlock is the size of a tar header, of which the magic stands at tarMagic.
const (
	tarBlock = 512
	tarMagic = 257
)

// foreign are formats that are known and not supported.
var foreign = []struct{ magic, name string }{
	{"PK\x03\x04", "a zip archive"},
	{"PK\x05\x06", "a zip archive"},
	{"\x28\xb5\x2f\xfd", "a zstd archive"},
	{"\xfd7zXZ\x00", "an xz archive"},
	{"BZh", "a bzip2 archive"},
	{"7z\xbc\xaf\x27\x1c", "a 7z archive"},
}

// unpackAs unpacks what body turns out to be. Its first bytes decide, not its name or the server's word.
func unpackAs(ctx context.Context, body io.Reader, tree *fetch.Tree, header http.Header) error {
	buffered := bufio.NewReaderSize(body, 64<<10)
	head, err := buffered.Peek(tarBlock)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return tree.UntarGzip(ctx, buffered)
	case len(head) == tarBlock && bytes.HasPrefix(head[tarMagic:], []byte("ustar")):
		return tree.Untar(ctx, buffered)
	case len(head) == 0:
		return fetch.Errorf(fetch.InvalidContent, "the server sent nothing")
	case isPage(head, header):
		return fetch.Errorf(fetch.InvalidContent, "the server sent a web page, not an archive: "+
			"check the URL, which may need a login")
	}
	for _, format := range foreign {
		if bytes.HasPrefix(head, []byte(format.magic)) {
			return fetch.Errorf(fetch.InvalidContent, "%s is not supported: publish a tar or tar.gz archive", format.name)
		}
	}
	return fetch.Errorf(fetch.InvalidContent, "not an archive: publish a tar or tar.gz archive")
}

// isPage tells HTML by its label or its beginning.
func isPage(head []byte, header http.Header) bool {
	stated, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	start := bytes.ToLower(bytes.TrimSpace(head))
	return err == nil && stated == "text/html" ||
		bytes.HasPrefix(start, []byte("<!doctype html")) || bytes.HasPrefix(start, []byte("<html"))
}
