// SPDX-License-Identifier: Apache-2.0

package http

import (
	"context"
	"crypto/sha512"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/fetch"
)

func TestM6Formats(t *testing.T) {
	archive := packed(t, "a", "1")
	cases := map[string]struct {
		reason string
		data   []byte
		want   fetch.Reason
		text   string
	}{
		"TarGzip":   {"what the name says", gzipped(t, archive), "", ""},
		"Tar":       {"named .tgz", archive, fetch.InvalidContent, "the URL names a tar.gz archive and the server sent a tar archive"},
		"Zip":       {"named .tgz", zipped(t, "a", "1"), fetch.InvalidContent, "the server sent a zip archive"},
		"Zstd":      {"named .tgz", zstded(t, archive), fetch.InvalidContent, "the server sent a tar.zst archive"},
		"SevenZip":  {"known, and not supported", []byte("7z\xbc\xaf\x27\x1c rest"), fetch.InvalidContent, "a 7z archive is not supported: publish a tar"},
		"Page":      {"an error page with 200", []byte("\n <!DOCTYPE html><html>"), fetch.InvalidContent, "a web page, not an archive"},
		"Text":      {"no archive", []byte("hello"), fetch.InvalidContent, "not an archive: publish"},
		"Nothing":   {"no archive", nil, fetch.InvalidContent, "sent nothing"},
		"CutZstd":   {"named .tgz", zstded(t, archive)[:20], fetch.InvalidContent, "the server sent a tar.zst archive"},
		"CutGzip":   {"half of it", gzipped(t, archive)[:50], fetch.InvalidContent, "cut short"},
		"Garbage":   {"something follows", append(gzipped(t, archive), 'x'), fetch.InvalidContent, "data follows the end"},
		"Double":    {"gzip in gzip", gzipped(t, gzipped(t, archive)), fetch.InvalidContent, ""},
		"Members":   {"two of them", append(gzipped(t, archive), gzipped(t, archive)...), fetch.InvalidContent, "data follows the end"},
		"OnlyZeros": {"no archive", make([]byte, 10240), fetch.InvalidContent, "not an archive"},
		"Escapes":   {"names are checked", gzipped(t, packed(t, "../a", "1")), fetch.InvalidContent, `archive entry "../a": its name leads out`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			resolved, files, err := pull(t, Options{URL: serve(t, body(tc.data)) + "/bundle.tgz"}, fetch.Resolved{})
			if fetch.ReasonOf(err) != tc.want || err != nil && !strings.Contains(err.Error(), tc.text) {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if err != nil {
				if len(files) > 0 {
					t.Errorf("%s: %v stayed", tc.reason, files)
				}
				return
			}
			if diff := cmp.Diff(map[string]string{"a": "1"}, files); diff != "" || resolved.Digest != fetch.SHA256(tc.data).String() {
				t.Errorf("%s: %s %+v", tc.reason, diff, resolved)
			}
		})
	}
}

func TestM20Digests(t *testing.T) {
	data := gzipped(t, packed(t, "a", "1"))
	url := serve(t, body(data))
	right := fetch.SHA256(data).String()
	cases := map[string]struct {
		reason, digest string
		want           fetch.Reason
	}{
		"Right":  {"the normal case", right, ""},
		"Upper":  {"people paste it", strings.ToUpper(right), ""},
		"SHA512": {"the family", fmt.Sprintf("sha512:%x", sha512.Sum512(data)), ""},
		"SHA384": {"the family", fmt.Sprintf("sha384:%x", sha512.Sum384(data)), ""},
		"Wrong":  {"other bytes", fetch.SHA256([]byte("x")).String(), fetch.DigestMismatch},
		"Short":  {"cut", right[:len(right)-1], fetch.Refused},
		"SHA1":   {"broken", "sha1:" + strings.Repeat("a", 40), fetch.Refused},
		"MD5":    {"broken", "md5:" + strings.Repeat("a", 32), fetch.Refused},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := Options{URL: url, Digest: tc.digest, Client: client(t)}
			resolved := fetch.Resolved{}
			if f, err := New(o); err == nil {
				resolved, err = f.Resolve(context.Background())
				if err != nil || !resolved.Pinned || resolved.Digest != strings.ToLower(tc.digest) {
					t.Errorf("%+v, %v", resolved, err)
				}
			}
			got, files, err := pull(t, o, resolved)
			if fetch.ReasonOf(err) != tc.want {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if tc.want == "" && (files["a"] != "1" || got != resolved) || tc.want != "" && len(files) > 0 {
				t.Errorf("%s: %v %+v", tc.reason, files, got)
			}
		})
	}
}

func TestM20Answers(t *testing.T) {
	plain := packed(t, "a", strings.Repeat("x", 4000))
	small := fetch.DefaultLimits()
	small.DownloadBytes = int64(len(plain))
	smaller := small
	smaller.DownloadBytes--
	status := func(code int, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(code)
			if code != http.StatusNotModified {
				_, _ = w.Write(plain)
			}
		}
	}
	cases := map[string]struct {
		reason  string
		handler http.HandlerFunc
		limits  fetch.Limits
		want    fetch.Reason
		text    string
	}{
		"Labelled":     {"servers label a .tgz as compressed", status(200, "Content-Encoding", "gzip"), small, "", ""},
		"Brotli":       {"it was not requested", status(200, "Content-Encoding", "br"), small, fetch.InvalidContent, "content encoding"},
		"HTML":         {"an error page with 200", status(200, "Content-Type", "text/html; charset=utf-8"), small, "", ""},
		"Partial":      {"not the whole archive", status(206), small, fetch.Unreachable, "206 Partial Content"},
		"NotModified":  {"nothing was asked conditionally", status(304), small, fetch.Unreachable, "304"},
		"NoContent":    {"no archive", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, small, fetch.Unreachable, "204"},
		"NotFound":     {"gone", status(404), small, fetch.NotFound, "not found (404 Not Found): check the URL"},
		"Forbidden":    {"private", status(403), small, fetch.Unauthorized, "access denied (403 Forbidden)"},
		"Limited":      {"too often", status(429, "Retry-After", "7"), small, fetch.RateLimited, "429"},
		"Broken":       {"the server's fault", status(503), small, fetch.Unreachable, "503"},
		"Declared":     {"larger than allowed, and says so", status(200), smaller, fetch.LimitExceeded, "more than"},
		"Undeclared":   {"larger than allowed, and does not say", chunked(plain), smaller, fetch.LimitExceeded, "more than"},
		"AtLimit":      {"input at the limit is accepted", chunked(plain), small, "", ""},
		"LengthTooBig": {"cut by the server", status(200, "Content-Length", "99999"), fetch.DefaultLimits(), fetch.Unreachable, "cut"},
		"LengthTooSmall": {"the rest is not read", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write(plain[:1000])
		}, small, fetch.InvalidContent, "cut short"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, files, err := pull(t, Options{URL: serve(t, tc.handler), Limits: tc.limits}, fetch.Resolved{})
			if fetch.ReasonOf(err) != tc.want || err != nil && !strings.Contains(err.Error(), tc.text) {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if (len(files) > 0) != (tc.want == "") {
				t.Errorf("%s: %d files", tc.reason, len(files))
			}
		})
	}
}

func TestM20EndlessBodyIsClosedAtTheCap(t *testing.T) {
	var sent atomic.Int64
	ended := make(chan struct{})
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		defer close(ended)
		// Endless PAX headers: never a file, never an end.
		block := packed(t, strings.Repeat("n", 200), "")[:1536]
		for {
			n, err := w.Write(block)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	})
	limits := fetch.DefaultLimits()
	limits.DownloadBytes = 1 << 20
	limits.Entries = 100
	if _, _, err := pull(t, Options{URL: url, Limits: limits}, fetch.Resolved{}); fetch.ReasonOf(err) != fetch.LimitExceeded {
		t.Errorf("got %v", err)
	}
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("the connection is still open")
	}
	t.Logf("%d bytes were sent before the connection was closed", sent.Load())
}

func TestM20DeclaredSizeIsEnough(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(64<<20))
		w.WriteHeader(http.StatusOK)
	})
	limits := fetch.DefaultLimits()
	limits.DownloadBytes = 32 << 20
	_, _, err := pull(t, Options{URL: url, Limits: limits}, fetch.Resolved{})
	if fetch.ReasonOf(err) != fetch.LimitExceeded || !strings.Contains(err.Error(), "the server declares") {
		t.Errorf("got %v", err)
	}
}
