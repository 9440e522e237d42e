// SPDX-License-Identifier: Apache-2.0

package http

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/guard"
	"github.com/satchel-dev/satchel/tests/measure"
)

const (
	// noisy is by how much a figure may miss its target on a machine that does other things too.
	noisy = 6
	// fileBytes is the size of each file in large archives.
	fileBytes = 8 << 20
)

// TestMain runs the tests or, in a process of its own, one way to download an archive.
func TestMain(m *testing.M) {
	measure.Main(m, func(args []string) error {
		folder, err := os.MkdirTemp("", "")
		if err != nil {
			return err
		}
		return ways[args[0]](args[1], folder)
	})
}

// ways are how an archive is downloaded: ours, which unpacks it, and a plain copy into a file.
var ways = map[string]func(url, folder string) error{
	"ours": func(url, folder string) error {
		limits := fetch.DefaultLimits()
		limits.DownloadBytes, limits.ExtractedBytes = 1<<30, 1<<30
		policy := guard.AddressPolicy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, InsecureHosts: []string{"127.0.0.1"}}
		f, err := New(Options{URL: url, Client: policy.HTTPClient(limits), Limits: limits})
		if err != nil {
			return err
		}
		tree, err := fetch.NewTree(folder, limits)
		if err != nil {
			return err
		}
		_, err = f.Fetch(context.Background(), fetch.Resolved{}, tree)
		return errors.Join(err, tree.Close())
	},
	"copied": func(url, folder string) error {
		response, err := http.Get(url) //nolint:gosec,noctx // the server of the test, in a process of its own
		if err != nil {
			return err
		}
		file, err := os.Create(filepath.Join(folder, "archive")) //nolint:gosec // a path of the test
		if err != nil {
			return err
		}
		_, err = io.Copy(file, response.Body)
		return errors.Join(err, file.Close(), response.Body.Close())
	},
}

// largeArchive is a tar.gz of so many files that cannot be compressed.
func largeArchive(t *testing.T, files int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "large.tgz")
	out, err := os.Create(path) //nolint:gosec // a path of the test
	if err != nil {
		t.Fatal(err)
	}
	packer, err := gzip.NewWriterLevel(out, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	random, w := rand.NewChaCha8([32]byte{1}), tar.NewWriter(packer)
	for i := range files {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: fmt.Sprint("file", i), Size: fileBytes}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(w, random, fileBytes); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), packer.Close(), out.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestS2LargeArchive downloads 56 MiB, or 512 MiB in the release suite, that cannot be compressed, beside a plain copy.
func TestS2LargeArchive(t *testing.T) {
	files := 7
	if os.Getenv("SATCHEL_FULL") != "" {
		files = 64
	}
	mebibytes := files * fileBytes >> 20
	path := largeArchive(t, files)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, path) }) + "/large.tgz"
	best := map[string]int{}
	for range 3 {
		for way := range ways {
			took, grown := measure.Elsewhere(t, way, url)
			if best[way] == 0 || took < best[way] {
				best[way] = took
			}
			t.Logf("%s: %d MiB in %d ms (%d MiB/s), memory grew by %d KiB", way, mebibytes, took, mebibytes*1000/max(took, 1), grown)
			if way == "ours" && grown > noisy*64<<10 {
				t.Error("that is far more than 64 MiB")
			}
		}
	}
	t.Logf("the best of three, in ms: %v", best)
	if best["ours"] > noisy*60_000 {
		t.Error("that is far more than 60 s")
	}
}

// TestS2DefaultsRefuse512MiB: declared, nothing of it is read; otherwise no more than the limit.
func TestS2DefaultsRefuse512MiB(t *testing.T) {
	const large = 512 << 20
	declared := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", strconv.Itoa(large)) })
	header := packed(t, "a", "")[:512]
	undeclared := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		random, chunk := rand.NewChaCha8([32]byte{1}), make([]byte, fileBytes+len(header))
		w.(http.Flusher).Flush()
		for range large / fileBytes {
			copy(chunk, sized(header, fileBytes))
			_, _ = random.Read(chunk[len(header):])
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	for url, text := range map[string]string{declared: "the server declares 536870912 bytes, more than 134217728", undeclared: "the download has more than 134217728 bytes"} {
		_, files, err := pull(t, Options{URL: url + "/b.tar"}, fetch.Resolved{})
		if fetch.ReasonOf(err) != fetch.LimitExceeded || !strings.Contains(err.Error(), text) || len(files) > 0 {
			t.Errorf("%d files, %v", len(files), err)
		}
	}
}

// sized returns a tar header with another size.
func sized(header []byte, size int) []byte {
	changed := append([]byte(nil), header...)
	copy(changed[124:136], fmt.Sprintf("%011o\x00", size))
	copy(changed[148:156], "        ")
	sum := 0
	for _, b := range changed {
		sum += int(b)
	}
	copy(changed[148:156], fmt.Sprintf("%06o\x00 ", sum))
	return changed
}
