// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/loader"
	"github.com/satchel-dev/satchel/internal/artifact/server"
	"github.com/satchel-dev/satchel/internal/artifact/storage"
	"github.com/satchel-dev/satchel/internal/fetch"
)

// oneReader knows the token "good", which reads one namespace; the token "down" cannot be reviewed.
func oneReader(namespace string) server.Readers {
	return func(_ context.Context, token string) (func(string) bool, error) {
		switch token {
		case "good":
			return func(asked string) bool { return asked == namespace }, nil
		case "down":
			return nil, errors.New("CANARY: no server to ask")
		}
		return nil, server.ErrUnauthenticated
	}
}

// TestT12Readers requests existing, missing and ownerless paths with each sort of credentials: a refusal is the same
// whatever exists.
func TestT12Readers(t *testing.T) {
	store := openStore(t, t.TempDir())
	handler := server.NewHandler(store, server.Options{Readers: oneReader("mine")})
	mine, err := store.Put(t.Context(), sourceOwner("mine", "app"), "", files(map[string]string{"a": "1"}))
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := store.Put(t.Context(), sourceOwner("theirs", "app"), "", files(map[string]string{"a": "2"}))
	if err != nil {
		t.Fatal(err)
	}
	absent := filepath.Dir(theirs.Path) + "/" + strings.Repeat("0", 64) + ".tar.gz"
	cases := map[string]struct {
		reason                        string
		header                        []string
		mine, theirs, absent, listing int
	}{
		"nothing":       {"no credentials", nil, 401, 401, 401, 401},
		"basic":         {"another scheme", []string{"Basic good"}, 401, 401, 401, 401},
		"no token":      {"the scheme alone", []string{"Bearer "}, 401, 401, 401, 401},
		"two":           {"it is not clear which counts", []string{"Bearer good", "Bearer bad"}, 401, 401, 401, 401},
		"huge":          {"no token is so long", []string{"Bearer " + strings.Repeat("x", 9000)}, 401, 401, 401, 401},
		"bad":           {"an invalid token", []string{"Bearer bad"}, 401, 401, 401, 401},
		"good":          {"the namespace's own", []string{"Bearer good"}, 200, 403, 403, 404},
		"scheme's case": {"schemes have no case", []string{"bearer good"}, 200, 403, 403, 404},
		"down":          {"it cannot be found out", []string{"Bearer down"}, 503, 503, 503, 503},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for path, want := range map[string]int{mine.Path: tc.mine, theirs.Path: tc.theirs, absent: tc.absent, "bundlesource/": tc.listing} {
				for _, method := range []string{http.MethodGet, http.MethodHead} {
					request := httptest.NewRequest(method, "/"+path, http.NoBody)
					request.Header["Authorization"] = tc.header
					answer := httptest.NewRecorder()
					handler.ServeHTTP(answer, request)
					if answer.Code != want {
						t.Errorf("%s: %s %s is answered with %d where %d was expected", tc.reason, method, path, answer.Code, want)
					}
					if want != 200 && strings.TrimSpace(answer.Body.String()) != http.StatusText(want) {
						t.Errorf("%s: the refusal says %q", tc.reason, answer.Body)
					}
					if (want == 401) != (answer.Header().Get("Www-Authenticate") == "Bearer") {
						t.Errorf("%s: the headers are %v", tc.reason, answer.Header())
					}
				}
			}
		})
	}
}

// TestT12PathsAndTokens asks with a token for its namespace by every spelling that could lead to another one: no answer but
// that to the exact path, and none that tells what exists.
func TestT12PathsAndTokens(t *testing.T) {
	store := openStore(t, t.TempDir())
	handler := server.NewHandler(store, server.Options{Readers: oneReader("mine")})
	mine, err := store.Put(t.Context(), sourceOwner("mine", "app"), "", files(map[string]string{"a": "1"}))
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := store.Put(t.Context(), sourceOwner("theirs", "app"), "", files(map[string]string{"a": "2"}))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Base(theirs.Path)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	for target, want := range map[string]int{
		"/" + mine.Path: 200, "/" + mine.Path + "?x=../theirs": 200, "/" + theirs.Path: 403, "http://theirs/" + theirs.Path: 403,
		"/bundlesource/mine/../theirs/app/" + file: 404, "/bundlesource/mine/..%2ftheirs/app/" + file: 404, "/bundlesource/mine/..%2Ftheirs%2Fapp%2F" + file: 404,
		"/bundlesource/mine%2f..%2ftheirs/app/" + file: 404, "/bundlesource/mine/%2e%2e/theirs/app/" + file: 404, "/bundlesource/mine/%252e%252e/theirs/app/" + file: 404,
		"/bundlesource/mine/..%5ctheirs/app/" + file: 404, "/bundlesource/mine/..%c0%aftheirs/app/" + file: 404, "/bundlesource/mine/.%00./theirs/app/" + file: 404,
		"/bundlesource/mine//theirs/app/" + file: 404, "//bundlesource/theirs/app/" + file: 404, "/./" + theirs.Path: 404, "/" + theirs.Path + ";mine": 404,
		"/BUNDLESOURCE/theirs/app/" + file: 404, "/bundlesource/THEIRS/app/" + file: 404, "/bundlesource/theirs/app/" + strings.ToUpper(file): 404, "/bundlesource/theirs%20/app/" + file: 404,
		"/" + theirs.Path + "%00": 404, "/" + theirs.Path + "/..": 404, "/" + theirs.Path + ".sha256": 404, "/": 404, "/bundlesource": 404, "/bundlesource/theirs": 404,
		"/bundlesource/theirs/app/": 404, "/bundlesource/mine/": 404, "/bundlesource/*/app/" + file: 404, "/..%2f..%2fetc%2fpasswd": 404, "/healthz": 404, "/debug/pprof/": 404,
	} {
		for token, expected := range map[string]int{"good": want, "bad": http.StatusUnauthorized, "": http.StatusUnauthorized} {
			if got := rawStatus(t, server.Listener.Addr().String(), target, token); got != expected {
				t.Errorf("%s with the token %q is answered with %d where %d was expected", target, token, got, expected)
			}
		}
	}
}

// rawStatus sends a target as it stands, which no client would do.
func rawStatus(t *testing.T, address, target, token string) int {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // a test
	header := ""
	if token != "" {
		header = "Authorization: Bearer " + token + "\r\n"
	}
	if _, err := io.WriteString(conn, "GET "+target+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"+header+"\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

// TestStatsOfTheServer counts what was asked for, refused and sent.
func TestStatsOfTheServer(t *testing.T) {
	store := openStore(t, t.TempDir())
	handler := server.NewHandler(store, server.Options{Readers: oneReader(owner.Namespace)})
	a := put(t, store, noise(1, 5000))
	for _, token := range []string{"good", "good", "bad"} {
		request := httptest.NewRequest(http.MethodGet, "/"+a.Path, http.NoBody)
		request.Header.Set("Authorization", "Bearer "+token)
		handler.ServeHTTP(httptest.NewRecorder(), request)
	}
	if got, want := store.Stats(), (storage.Stats{Artifacts: 1, Namespaces: 1, Bytes: *a.Size}); got != want {
		t.Errorf("the store: got %+v, want %+v", got, want)
	}
	if got, want := handler.Stats(), (server.Stats{Requests: 3, Denied: 1, Served: 2 * *a.Size}); got != want {
		t.Errorf("the handler: got %+v, want %+v", got, want)
	}
}

// TestTokenGoesToTheConfiguredServerOnly follows a token over its life: it is sent to the server, read again, and sent
// neither to another server nor after a redirect.
func TestTokenGoesToTheConfiguredServerOnly(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	write := func(token string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var stolen []string
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { stolen = append(stolen, r.Header["Authorization"]...) }))
	defer thief.Close()
	s := newServed(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/away" {
				http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
				return
			}
			if r.Header.Get("Authorization") != "Bearer good" {
				http.Error(w, "", http.StatusUnauthorized)
				return
			}
			h.ServeHTTP(w, r)
		})
	})
	a := s.put(t, noise(4, 1000))
	write("old")
	client, err := loader.NewClient(loader.ClientOptions{ServerURLs: []string{s.server.URL}, TokenFile: file})
	if err != nil {
		t.Fatal(err)
	}
	loads := newLoader(t, t.TempDir(), s.server.URL, func(o *loader.Options) { o.Client = client })
	_, err = loads.Load(t.Context(), owner, a)
	wantReason(t, err, fetch.Unauthorized)
	write("good")
	content, err := loads.Load(t.Context(), owner, a)
	if err != nil {
		t.Fatalf("with the new token: %v", err)
	}
	if err := content.Close(); err != nil {
		t.Error(err)
	}
	for _, url := range []string{thief.URL, s.server.URL + "/away"} { // this client follows redirects
		response, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close() //nolint:errcheck // a test
	}
	if len(stolen) > 0 {
		t.Errorf("the token went to another server: %v", stolen)
	}
	write(" ")
	if _, err := loader.NewClient(loader.ClientOptions{ServerURLs: []string{s.server.URL}, TokenFile: file}); err == nil || !strings.Contains(err.Error(), "--artifact-token-file") {
		t.Errorf("a file without a token: %v", err)
	}
}

// TestF24LoadAsksAgainAfterAStandby has every second connection meet a server that waits to lead.
func TestF24LoadAsksAgainAfterAStandby(t *testing.T) {
	asked := 0
	s := newServed(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if asked++; asked%2 == 1 {
				w.Header().Set(artifact.StandbyHeader, "true")
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			h.ServeHTTP(w, r)
		})
	})
	a := s.put(t, noise(4, 1000))
	content, err := newLoader(t, t.TempDir(), s.server.URL).Load(t.Context(), owner, a)
	if err != nil {
		t.Fatal(err)
	}
	if err := content.Close(); err != nil {
		t.Error(err)
	}
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
}
