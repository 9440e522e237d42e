// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/satchel-dev/satchel/internal/fetch/artifact"
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
			store.Handler().ServeHTTP(answer, request)
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

func TestF13RemovedWhileDownloading(t *testing.T) {
	store := openStore(t, t.TempDir())
	a := put(t, store, noise(10, 3<<20))
	addr := serve(t, store)
	response, err := http.Get("http://" + addr + "/" + a.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // a test
	if err := store.Remove(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(response.Body)
	if err != nil || digestOf(data) != a.Digest {
		t.Errorf("%d bytes came: %v", len(data), err)
	}
	if answer := get(store, a); answer.Code != http.StatusNotFound {
		t.Errorf("a removed artifact is answered with %d", answer.Code)
	}
}

// serve runs Store.Server until the test ends and returns its address.
func serve(t *testing.T, store *artifact.Store) string {
	t.Helper()
	server := store.Server("127.0.0.1:0")
	listener, err := listen()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// TestF18SlowPeersAreCut lets many peers do nothing at each stage of a request, and some one download slowly.
func TestF18SlowPeersAreCut(t *testing.T) {
	store := openStore(t, t.TempDir())
	a := put(t, store, noise(11, 8<<20))
	addr := serve(t, store)
	path := "GET /" + a.Path + " HTTP/1.1\r\nHost: x\r\n"
	peers, behaviours := 20, map[string]string{
		"silent":       "",
		"half header":  path,
		"body to come": strings.Replace(path, "GET", "POST", 1) + "Content-Length: 100\r\n\r\nx",
		"idle":         strings.Replace(path, "GET", "HEAD", 1) + "\r\n",
		"not reading":  path + "\r\n",
	}
	if full() {
		peers = 100
	}
	var group sync.WaitGroup
	for name, sent := range behaviours {
		for range peers {
			group.Go(func() {
				if took, err := untilClosed(addr, sent, name == "not reading"); err != nil || took > 10*time.Second {
					t.Errorf("%s: closed after %v: %v", name, took, err)
				}
			})
		}
	}
	group.Go(func() { slowDownload(t, addr, a) })
	start := time.Now()
	response, err := http.Get("http://" + addr + "/" + a.Path)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil || digestOf(data) != a.Digest {
		t.Errorf("among them %d bytes came: %v", len(data), err)
	}
	t.Logf("8 MiB among %d slow peers took %v", 5*peers, time.Since(start))
	group.Wait()
}

// untilClosed measures how long the server bears with a peer that sends only so much. It reads the answer to its end, or
// waits without reading until the server has given up.
func untilClosed(addr, sent string, waits bool) (time.Duration, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return 0, err
	}
	defer conn.Close() //nolint:errcheck // a test
	start := time.Now()
	if _, err := conn.Write([]byte(sent)); err != nil {
		return 0, err
	}
	if waits {
		// What was in flight can be read afterwards, but it is not all of it.
		time.Sleep(9800 * time.Millisecond)
		n, err := io.Copy(io.Discard, conn)
		if n > 7<<20 {
			return 0, fmt.Errorf("%d bytes came", n)
		}
		_ = err
		return 9800 * time.Millisecond, nil
	}
	if err := conn.SetReadDeadline(start.Add(15 * time.Second)); err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, conn)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return time.Since(start), err
	}
	return time.Since(start), nil // closed or reset
}

// slowDownload takes longer than any time-out of the server, and is not cut because it moves.
func slowDownload(t *testing.T, addr string, a meta.Artifact) {
	start := time.Now()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close() //nolint:errcheck // a test
	if tcp, ok := conn.(*net.TCPConn); !ok || tcp.SetReadBuffer(64<<10) != nil {
		t.Error("the size of the socket's buffer cannot be set")
	}
	fmt.Fprintf(conn, "GET /%s HTTP/1.1\r\nHost: x\r\nRange: bytes=0-1999999\r\n\r\n", a.Path)
	response, err := http.ReadResponse(bufio.NewReaderSize(conn, 4<<10), nil)
	if err != nil {
		t.Error(err)
		return
	}
	defer response.Body.Close() //nolint:errcheck // a test
	n, err := io.Copy(io.Discard, slowReader{response.Body, start.Add(12 * time.Second)})
	if err != nil || n != 2_000_000 || time.Since(start) < 12*time.Second {
		t.Errorf("a slow download got %d bytes in %v: %v", n, time.Since(start), err)
	}
}

// slowReader reads less than 80 kB a second until a time.
type slowReader struct {
	from  io.Reader
	until time.Time
}

func (s slowReader) Read(p []byte) (int, error) {
	if time.Now().Before(s.until) {
		time.Sleep(50 * time.Millisecond)
		p = p[:min(len(p), 4_000)]
	}
	return s.from.Read(p)
}

func TestF18HugeHeaders(t *testing.T) {
	addr := serve(t, openStore(t, t.TempDir()))
	request, err := http.NewRequest(http.MethodGet, "http://"+addr+"/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Huge", strings.Repeat("x", 64<<10))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return // the connection was closed while we still sent
	}
	defer response.Body.Close() //nolint:errcheck // a test
	if response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("answered %d", response.StatusCode)
	}
}

func TestF18ConnectionsPerAddress(t *testing.T) {
	store := openStore(t, t.TempDir(), func(o *artifact.Options) { o.ConnectionsPerAddress = 3 })
	a := put(t, store, files(map[string]string{"a": "1"}))
	addr := serve(t, store)
	ask := func(conn net.Conn) bool {
		fmt.Fprintf(conn, "HEAD /%s HTTP/1.1\r\nHost: x\r\n\r\n", a.Path)
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		return err == nil && response.StatusCode == http.StatusOK
	}
	var held []net.Conn
	for i := range 5 {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // a test
		if got, want := ask(conn), i < 3; got != want {
			t.Errorf("connection %d: served is %v", i+1, got)
		}
		held = append(held, conn)
	}
	if err := held[0].Close(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(5 * time.Second)
	for served := false; !served; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		served = ask(conn)
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		if time.Now().After(deadline) {
			t.Fatal("a closed connection still counts")
		}
	}
}

// FuzzServerPath asks for arbitrary paths: nothing but the one artifact is ever answered.
func FuzzServerPath(f *testing.F) {
	store, err := artifact.Open(artifact.Options{Dir: f.TempDir(), BaseURL: "http://x", Now: func() time.Time { return time.Now().Add(time.Hour) }})
	if err != nil {
		f.Fatal(err)
	}
	a, err := store.Put(f.Context(), owner, "", files(map[string]string{"a": "1"}))
	if err != nil {
		f.Fatal(err)
	}
	handler := store.Handler()
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
