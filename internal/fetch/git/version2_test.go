// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// modern is a repository behind git's own HTTP server, which speaks version 2 of the protocol.
type modern struct {
	*repository
	url string

	mutex sync.Mutex
	calls []string // "<method> <what> <version>"
	bytes int64
}

func newModern(t *testing.T) *modern {
	t.Helper()
	r := newRepository(t)
	backend := filepath.Join(r.git(nil, "--exec-path"), "git-http-backend")
	if _, err := os.Stat(backend); err != nil {
		t.Skip("git is installed without its HTTP server")
	}
	m := &modern{repository: r}
	handler := &cgi.Handler{
		Path: backend, Stderr: &strings.Builder{},
		Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(r.dir), "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null"},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		m.mutex.Lock()
		m.calls = append(m.calls, strings.TrimSpace(q.Method+" "+strings.TrimPrefix(q.URL.Path, "/repo.git/")+" "+q.Header.Get("Git-Protocol")))
		m.mutex.Unlock()
		handler.ServeHTTP(&tallied{w, m}, q)
	}))
	t.Cleanup(server.Close)
	m.url = server.URL + "/repo.git"
	return m
}

// tallied counts what is answered.
type tallied struct {
	http.ResponseWriter
	m *modern
}

func (w *tallied) Write(p []byte) (int, error) {
	w.m.mutex.Lock()
	w.m.bytes += int64(len(p))
	w.m.mutex.Unlock()
	return w.ResponseWriter.Write(p)
}

func (m *modern) seen() (calls []string, bytes int64) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	calls, bytes = m.calls, m.bytes
	m.calls, m.bytes = nil, 0
	return calls, bytes
}

const (
	oldList = "GET info/refs"
	newList = "GET info/refs version=2"
	newAsk  = "POST git-upload-pack version=2"
)

func TestVersion2(t *testing.T) {
	m := newModern(t)
	first := m.files("main", "a", "1")
	m.git(nil, "tag", "-a", "-m", "annotated", "v1.0.0", first)
	second := m.files("main", "a", "2")
	m.git(nil, "update-ref", "refs/heads/mainline", first) // begins with the name of another
	cases := map[string]struct {
		reason string
		o      Options
		want   fetch.Resolved
		a      string
		calls  []string
	}{
		"Default": {"one request to resolve, two to fetch", Options{}, fetch.Resolved{Reference: "main", Digest: "sha1:" + second}, "2", []string{oldList, newList, newAsk}},
		"Branch":  {"not the one that begins so", Options{Branch: "main"}, fetch.Resolved{Reference: "main", Digest: "sha1:" + second}, "2", []string{oldList, newList, newAsk}},
		"Tag":     {"the commit, not the tag object", Options{Tag: "v1.0.0"}, fetch.Resolved{Reference: "v1.0.0", Digest: "sha1:" + first}, "1", []string{oldList, newList, newAsk}},
		"Commit":  {"nothing to resolve", Options{Commit: first}, fetch.Resolved{Digest: "sha1:" + first, Pinned: true}, "1", []string{newList, newAsk}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.o.URL = m.url
			m.seen()
			resolved, files, err := pull(t, tc.o)
			if err != nil || resolved != tc.want || files["a"] != tc.a {
				t.Errorf("%s: %+v %v %v", tc.reason, resolved, files, err)
			}
			calls, _ := m.seen()
			if diff := cmp.Diff(tc.calls, calls); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
		})
	}
}

// TestF17Version2GivesWhatWasResolved has a branch that is rewritten between the two requests.
func TestF17Version2GivesWhatWasResolved(t *testing.T) {
	m := newModern(t)
	m.files("main", "a", "1")
	f := fetcher(t, Options{URL: m.url, Branch: "main"})
	resolved, err := f.Resolve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m.files("main", "a", "2")
	if got, files, err := fetchInto(t, f, resolved); err != nil || files["a"] != "1" || got != resolved {
		t.Errorf("the resolved commit, not the newest: %v %v %v", got, files, err)
	}
	m.git(nil, "reflog", "expire", "--expire=now", "--all")
	m.git(nil, "prune", "--expire=now")
	if _, files, err := fetchInto(t, f, resolved); fetch.ReasonOf(err) != fetch.Moved || len(files) > 0 {
		t.Errorf("a commit that is gone: %v %v", files, err)
	}
}

// TestM17Version2Tags verifies tags in the newer version of the protocol.
func TestM17Version2Tags(t *testing.T) {
	m := newModern(t)
	alice := newAuthor(t, m.repository, "alice")
	commit := alice.sign("1")
	alice.signed("tag", "-s", "-m", "x", "v1.0.0", commit)
	m.git(nil, "tag", "v2.0.0", commit)
	o := Options{URL: m.url, SemVer: "1.x", Verify: &Verification{Mode: VerifyTagAndHEAD, Keys: alice.keys}}
	m.seen()
	resolved, files, err := pull(t, o)
	if err != nil || files["a"] != "1" || !strings.HasPrefix(resolved.VerifiedBy, "tag: ssh ") || !strings.Contains(resolved.VerifiedBy, "; commit: ssh ") {
		t.Errorf("%+v %v %v", resolved, files, err)
	}
	calls, _ := m.seen()
	if diff := cmp.Diff([]string{oldList, newList, newAsk, newAsk}, calls); diff != "" {
		t.Error(diff)
	}
	o.SemVer = "2.x"
	if _, _, err := pull(t, o); fetch.ReasonOf(err) != fetch.Unverified {
		t.Errorf("a tag without an object: %v", err)
	}
}

// TestM15LongLists has as many references as docs/dev/reliability.md names, of pull requests mostly, and says what each way costs.
func TestM15LongLists(t *testing.T) {
	m := newModern(t)
	commit := m.files("main", "a", "1")
	m.git(nil, "tag", "-a", "-m", "annotated", "v1.0.0", commit)
	packed, err := os.OpenFile(filepath.Join(m.dir, "packed-refs"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewWriter(packed)
	_, _ = fmt.Fprintln(lines, "# pack-refs with: peeled fully-peeled sorted ")
	for i := range 100_000 - 2 {
		_, _ = fmt.Fprintf(lines, "%s refs/pull/%06d/head\n", commit, i)
	}
	if err := lines.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		o      Options
		want   string
		calls  []string
		most   int64
	}{
		"Default":  {"HEAD comes first", Options{}, "main", []string{oldList}, 1 << 20},
		"Branch":   {"branches come before pull requests", Options{Branch: "main"}, "main", []string{oldList}, 1 << 20},
		"Tag":      {"tags come after them", Options{Tag: "v1.0.0"}, "v1.0.0", []string{oldList, newList, newAsk}, 1 << 20},
		"SemVer":   {"of all tags", Options{SemVer: "*"}, "v1.0.0", []string{oldList, newList, newAsk}, 1 << 20},
		"NoBranch": {"the rest of the list is not read", Options{Branch: "none"}, "", []string{oldList, newList, newAsk}, 1 << 20},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.o.URL = m.url
			m.seen()
			resolved, err := fetcher(t, tc.o).Resolve(t.Context())
			if tc.want == "" && fetch.ReasonOf(err) != fetch.NotFound || tc.want != "" && (err != nil || resolved.Reference != tc.want) {
				t.Errorf("%s: %+v %v", tc.reason, resolved, err)
			}
			calls, bytes := m.seen()
			t.Logf("%d requests, about %d KiB", len(calls), bytes>>10)
			if diff := cmp.Diff(tc.calls, calls); diff != "" || bytes > 6*tc.most {
				t.Errorf("%s: %d bytes, %s", tc.reason, bytes, diff)
			}
		})
	}
	old := m.repository
	old.seen()
	if resolved, err := fetcher(t, Options{URL: old.url, Tag: "v1.0.0"}).Resolve(t.Context()); err != nil || resolved.Digest != "sha1:"+commit {
		t.Errorf("a server that knows only the older version: %+v %v", resolved, err)
	}
	if got := old.seen(); len(got) != 2 {
		t.Errorf("it lists all in the second request: %v", got)
	}
}

func TestM18Version2Answers(t *testing.T) {
	const able = "version 2\n"
	hello := line("# service=git-upload-pack\n") + "0000" + line(able) + line("agent=git/x\n") + line("ls-refs=unborn\n") + line("fetch=shallow\n") + line("object-format=sha1\n") + "0000"
	cases := map[string]struct {
		reason, hello, answer string
		want                  fetch.Reason
	}{
		"NoPack":    {"an empty answer", hello, "", fetch.InvalidContent},
		"Flush":     {"nothing but an end", hello, "0000", fetch.InvalidContent},
		"Sections":  {"a section without an end", hello, line("shallow-info\n") + line("shallow "+someCommit), fetch.InvalidContent},
		"CutPack":   {"half a pack", hello, line("packfile\n") + line("\x01PACK"), fetch.InvalidContent},
		"NotOurs":   {"it has no such commit", hello, line("ERR upload-pack: not our ref " + someCommit), fetch.Moved},
		"Failure":   {"it fails on the way", hello, line("packfile\n") + line("\x03died"), fetch.Unreachable},
		"CutHello":  {"half a greeting", hello[:60], "", fetch.InvalidContent},
		"NoRawPack": {"a pack without channels", hello, line("packfile\n") + "PACK\x00\x00\x00\x02", fetch.InvalidContent},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			url := hostile(t, tc.hello, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(tc.answer)) })
			_, files, err := pull(t, Options{URL: url, Commit: someCommit})
			if fetch.ReasonOf(err) != tc.want || len(files) > 0 {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
	endless := hostile(t, hello, func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write([]byte(strings.Repeat(line("shallow-info\n")+"0001", 1000))); err != nil {
				return
			}
		}
	})
	limits := fetch.DefaultLimits()
	limits.GitPackBytes = 1 << 20
	if _, _, err := pull(t, Options{URL: endless, Commit: someCommit, Limits: limits}); fetch.ReasonOf(err) != fetch.LimitExceeded {
		t.Errorf("sections without end: %v", err)
	}
}
