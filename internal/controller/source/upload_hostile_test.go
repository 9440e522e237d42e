// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"archive/tar"
	"crypto/rand"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
)

// hostileTar writes a tar with malicious entries, and a file of the given number of zeros.
func hostileTar(w io.Writer, files map[string]string, zeros int) error {
	archive := tar.NewWriter(w)
	var failed error
	for _, name := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(files[name])), Mode: 0o777}
		content := files[name]
		if to, isLink := strings.CutPrefix(content, "link:"); isLink {
			header.Typeflag, header.Linkname, header.Size, content = tar.TypeSymlink, to, 0, ""
		}
		failed = errors.Join(failed, archive.WriteHeader(header))
		_, err := io.WriteString(archive, content)
		failed = errors.Join(failed, err)
	}
	if zeros > 0 {
		failed = errors.Join(failed, archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "zeros", Size: int64(zeros)}))
		_, err := io.CopyN(archive, zeroReader{}, int64(zeros))
		failed = errors.Join(failed, err)
	}
	return errors.Join(failed, archive.Close())
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func random(t *testing.T, n int) []byte {
	t.Helper()
	data := make([]byte, n)
	_, _ = rand.Read(data)
	return data
}
