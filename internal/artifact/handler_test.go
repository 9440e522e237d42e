// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/satchel-dev/satchel/internal/artifact/server"
	"github.com/satchel-dev/satchel/internal/artifact/storage"
)

func TestF18AnswersToRequests(t *testing.T) {
	store := openStore(t, t.TempDir())
	a := put(t, store, noise(9, 2000))
	whole := get(store, a).Body.String()
	folder := "/" + filepath.Dir(a.Path)
	identity := filepath.Base(a.Path)
	cases := map[string]struct {
		reason string
		method string
		path   string
		header map[string]string
		status int
		body   string
	}{
		"whole":            {method: "GET", path: "/" + a.Path, status: 200, body: whole},
		"head":             {reason: "a HEAD has no body", method: "HEAD", path: "/" + a.Path, status: 200},
		"range":            {method: "GET", path: "/" + a.Path, header: map[string]string{"Range": "bytes=5-9"}, status: 206, body: whole[5:10]},
		"suffix range":     {method: "GET", path: "/" + a.Path, header: map[string]string{"Range": "bytes=-5"}, status: 206, body: whole[len(whole)-5:]},
		"range beyond":     {method: "GET", path: "/" + a.Path, header: map[string]string{"Range": "bytes=999999-"}, status: 416, body: "*"},
		"range of another": {reason: "the file changed since", method: "GET", path: "/" + a.Path, header: map[string]string{"Range": "bytes=5-9", "If-Range": `"sha256:0"`}, status: 200, body: whole},
		"not modified":     {method: "GET", path: "/" + a.Path, header: map[string]string{"If-None-Match": `"` + a.Digest + `"`}, status: 304},
		"modified":         {method: "GET", path: "/" + a.Path, header: map[string]string{"If-None-Match": `"sha256:0"`}, status: 200, body: whole},
		"post":             {method: "POST", path: "/" + a.Path, status: 405, body: "*"},
		"put":              {method: "PUT", path: "/" + a.Path, status: 405, body: "*"},
		"options":          {method: "OPTIONS", path: "/", status: 405, body: "*"},
		"root":             {reason: "no listing", method: "GET", path: "/", status: 404, body: "*"},
		"kind":             {reason: "no listing", method: "GET", path: "/bundlesource", status: 404, body: "*"},
		"namespace":        {reason: "no listing", method: "GET", path: "/bundlesource/platform/", status: 404, body: "*"},
		"owner":            {reason: "no listing", method: "GET", path: folder, status: 404, body: "*"},
		"owner, slash":     {reason: "no listing, no redirect either", method: "GET", path: folder + "/", status: 404, body: "*"},
		"recorded digest":  {reason: "only archives are served", method: "GET", path: "/" + a.Path + ".sha256", status: 404, body: "*"},
		"trailing slash":   {method: "GET", path: "/" + a.Path + "/", status: 404, body: "*"},
		"double slash":     {method: "GET", path: "//" + a.Path, status: 404, body: "*"},
		"dots":             {method: "GET", path: folder + "/../app/" + identity, status: 404, body: "*"},
		"dot":              {method: "GET", path: folder + "/./" + identity, status: 404, body: "*"},
		"escaped dots":     {method: "GET", path: folder + "/%2e%2e/app/" + identity, status: 404, body: "*"},
		"escaped slash":    {method: "GET", path: "/bundlesource/platform%2fapp/" + identity, status: 404, body: "*"},
		"escaped letter":   {reason: "one spelling only", method: "GET", path: "/%62undlesource/platform/app/" + identity, status: 404, body: "*"},
		"outside":          {method: "GET", path: "/../../../../etc/passwd", status: 404, body: "*"},
		"NUL":              {method: "GET", path: folder + "/%00", status: 404, body: "*"},
		"guessed":          {reason: "the answer is that of a path that cannot exist", method: "GET", path: folder + "/" + digestOf(nil)[7:] + ".tar.gz", status: 404, body: "*"},
		"temporary":        {method: "GET", path: folder + "/.tmp-X", status: 404, body: "*"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			request := httptest.NewRequest(tc.method, "http://x"+tc.path, http.NoBody)
			for key, value := range tc.header {
				request.Header.Set(key, value)
			}
			answer := httptest.NewRecorder()
			server.NewHandler(store, server.Options{}).ServeHTTP(answer, request)
			if answer.Code != tc.status {
				t.Fatalf("answered %d where %d was expected: %s", answer.Code, tc.status, tc.reason)
			}
			if tc.body != "*" && answer.Body.String() != tc.body {
				t.Errorf("answered %d bytes where %d were expected", answer.Body.Len(), len(tc.body))
			}
			checkHeaders(t, answer, a)
		})
	}
}

func checkHeaders(t *testing.T, answer *httptest.ResponseRecorder, a meta.Artifact) {
	t.Helper()
	header := answer.Header()
	if header.Get("X-Content-Type-Options") != "nosniff" {
		t.Error("the type may be guessed")
	}
	if answer.Code < 300 && (header.Get("Etag") != `"`+a.Digest+`"` || header.Get("Content-Type") != "application/gzip") {
		t.Errorf("the headers are %v", header)
	}
	if answer.Code >= 400 && answer.Code != 416 && header.Get("Etag") != "" {
		t.Errorf("an error carries headers of the file: %v", header)
	}
}

// FuzzServerPath asks for arbitrary paths: nothing but the one artifact is ever answered.
func FuzzServerPath(f *testing.F) {
	store, err := storage.Open(storage.Options{Dir: f.TempDir(), BaseURL: "http://x", Now: func() time.Time { return time.Now().Add(time.Hour) }})
	if err != nil {
		f.Fatal(err)
	}
	a, err := store.Put(f.Context(), owner, "", files(map[string]string{"a": "1"}))
	if err != nil {
		f.Fatal(err)
	}
	handler := server.NewHandler(store, server.Options{})
	for _, path := range []string{
		"/" + a.Path, "/", "//" + a.Path, "/" + a.Path + "/", "/" + a.Path + ".sha256", "/bundlesource/platform/../platform/app/x.tar.gz",
		"/%2e%2e/%2e%2e/etc/passwd", "/bundlesource%2fplatform/app/" + filepath.Base(a.Path), "/bundlesource/platform/app/", "*", "http://y/" + a.Path, "/" + a.Path + "?x", "/a\\..\\b",
	} {
		f.Add("GET", path)
	}
	f.Fuzz(func(t *testing.T, method, target string) {
		request, err := http.ReadRequest(bufio.NewReader(strings.NewReader(method + " " + target + " HTTP/1.1\r\nHost: x\r\n\r\n")))
		if err != nil {
			return
		}
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		exact := request.URL.EscapedPath() == "/"+a.Path && (request.Method == http.MethodGet || request.Method == http.MethodHead)
		if ok := answer.Code == http.StatusOK; ok != exact {
			t.Errorf("%q %q was answered with %d", request.Method, target, answer.Code)
		}
		if answer.Code != http.StatusOK && answer.Code != http.StatusNotFound && answer.Code != http.StatusMethodNotAllowed {
			t.Errorf("%q %q was answered with %s", method, target, strconv.Itoa(answer.Code))
		}
	})
}
