// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fluxcd/pkg/gittestserver"
	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/fetch"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // the test server logs each request
	os.Exit(m.Run())
}

// repository is a bare repository behind a real Git server.
type repository struct {
	t   *testing.T
	dir string
	url string

	mutex    sync.Mutex
	requests []string
}

func newRepository(t *testing.T) *repository {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed, which the test server needs")
	}
	server := gittestserver.NewGitServer(t.TempDir())
	r := &repository{t: t, dir: filepath.Join(server.Root(), "org", "repo.git")}
	server.AddHTTPMiddlewares(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			r.mutex.Lock()
			r.requests = append(r.requests, request.Method+" "+request.URL.Path)
			r.mutex.Unlock()
			next.ServeHTTP(w, request)
		})
	})
	if err := server.StartHTTP(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.StopHTTP)
	r.url = server.HTTPAddress() + "/org/repo.git"
	if out, err := exec.Command("git", "init", "-q", "--bare", "-b", "main", r.dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return r
}

// git runs a command in the repository, with input, and returns its output.
func (r *repository) git(input []byte, args ...string) string {
	r.t.Helper()
	command := exec.Command("git", args...)
	command.Env = append(os.Environ(), "GIT_DIR="+r.dir, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org",
		"GIT_AUTHOR_DATE=2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE=2026-01-01T00:00:00Z")
	command.Stdin = bytes.NewReader(input)
	var failure bytes.Buffer
	command.Stderr = &failure
	out, err := command.Output()
	if err != nil {
		r.t.Fatalf("git %v: %v: %s", args, err, failure.String())
	}
	return strings.TrimSpace(string(out))
}

// leaf is an entry of a tree for tests, of any name and mode.
type leaf struct{ mode, name, hash string }

func (r *repository) blob(content string) string {
	return r.git([]byte(content), "hash-object", "-w", "--stdin")
}

// tree writes a tree object as it stands, which git's own commands would refuse.
func (r *repository) tree(leaves ...leaf) string {
	var raw bytes.Buffer
	for _, l := range leaves {
		var hash []byte
		if _, err := fmt.Sscanf(l.hash, "%x", &hash); err != nil {
			r.t.Fatal(err)
		}
		raw.WriteString(l.mode + " " + l.name + "\x00")
		raw.Write(hash)
	}
	return r.git(raw.Bytes(), "hash-object", "-t", "tree", "-w", "--literally", "--stdin")
}

// commit makes a branch point at a new commit of a tree, and returns it.
func (r *repository) commit(branch, tree, message string) string {
	args := []string{"commit-tree", "-m", message, tree}
	commit := r.git(nil, args...)
	r.git(nil, "update-ref", "refs/heads/"+branch, commit)
	return commit
}

// files commits plain files, given as path and content in turn.
func (r *repository) files(branch string, files ...string) string {
	index := filepath.Join(r.t.TempDir(), "index")
	r.t.Setenv("GIT_INDEX_FILE", index)
	for i := 0; i < len(files); i += 2 {
		r.git(nil, "update-index", "--add", "--cacheinfo", "100644,"+r.blob(files[i+1])+","+files[i])
	}
	return r.commit(branch, r.git(nil, "write-tree"), fmt.Sprintf("%.100q", files))
}

func (r *repository) seen() []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	seen := r.requests
	r.requests = nil
	return seen
}

func client() *http.Client {
	return fetch.AddressPolicy{
		Allow:         []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
		InsecureHosts: []string{"127.0.0.1", "satchel.invalid"},
	}.HTTPClient(fetch.DefaultLimits())
}

func fetcher(t *testing.T, o Options) *Fetcher {
	t.Helper()
	if o.Client == nil {
		o.Client = client()
	}
	t.Cleanup(o.Client.CloseIdleConnections)
	if o.Limits == (fetch.Limits{}) {
		o.Limits = fetch.DefaultLimits()
	}
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// pull resolves and fetches, and checks that nothing intermediate stays.
func pull(t *testing.T, o Options) (fetch.Resolved, map[string]string, error) {
	t.Helper()
	f := fetcher(t, o)
	resolved, err := f.Resolve(context.Background())
	if err != nil {
		return resolved, nil, err
	}
	return fetchInto(t, f, resolved)
}

func fetchInto(t *testing.T, f *Fetcher, r fetch.Resolved) (fetch.Resolved, map[string]string, error) {
	t.Helper()
	dir := t.TempDir()
	tree, err := fetch.NewTree(dir, f.limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tree.Close() })
	resolved, err := f.Fetch(context.Background(), r, tree)
	files := map[string]string{}
	walkErr := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			if strings.HasPrefix(entry.Name(), ".scratch") {
				t.Errorf("%s stayed", entry.Name())
			}
			return err
		}
		if !entry.Type().IsRegular() {
			t.Errorf("%s is a %v", path, entry.Type())
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		files[name] = string(data)
		return err
	})
	if walkErr != nil {
		t.Fatal(walkErr)
	}
	return resolved, files, err
}

func TestReferences(t *testing.T) {
	r := newRepository(t)
	first := r.files("main", "a", "1")
	r.git(nil, "tag", "v1.0.0", first)
	second := r.files("main", "a", "2")
	r.git(nil, "tag", "-a", "-m", "annotated", "v1.1.0", second)
	third := r.files("main", "a", "3")
	r.git(nil, "tag", "2.0.0-rc.1", third)
	r.git(nil, "tag", "not-a-version", third)
	side := r.files("release/side", "a", "side")
	cases := map[string]struct {
		reason string
		o      Options
		want   fetch.Resolved
		a      string
	}{
		"Default":    {"what the server calls HEAD", Options{}, fetch.Resolved{Reference: "main", Digest: "sha1:" + third}, "3"},
		"Branch":     {"with a slash in it", Options{Branch: "release/side"}, fetch.Resolved{Reference: "release/side", Digest: "sha1:" + side}, "side"},
		"Tag":        {"a light one", Options{Tag: "v1.0.0"}, fetch.Resolved{Reference: "v1.0.0", Digest: "sha1:" + first}, "1"},
		"Annotated":  {"the commit, not the tag object", Options{Tag: "v1.1.0"}, fetch.Resolved{Reference: "v1.1.0", Digest: "sha1:" + second}, "2"},
		"Range":      {"the newest in it", Options{SemVer: ">=1.0 <2"}, fetch.Resolved{Reference: "v1.1.0", Digest: "sha1:" + second}, "2"},
		"PreRelease": {"only when asked for", Options{SemVer: ">=1.0.0-0"}, fetch.Resolved{Reference: "2.0.0-rc.1", Digest: "sha1:" + third}, "3"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.o.URL = r.url
			r.seen()
			resolved, err := fetcher(t, tc.o).Resolve(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, resolved); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
			if got := r.seen(); len(got) != 1 || got[0] != "GET /org/repo.git/info/refs" {
				t.Errorf("not one request: %v", got)
			}
			_, files, err := fetchInto(t, fetcher(t, tc.o), resolved)
			if diff := cmp.Diff(map[string]string{"a": tc.a}, files); err != nil || diff != "" {
				t.Errorf("%s: %v %s", tc.reason, err, diff)
			}
		})
	}
}

func TestF17CommitsAndMovedReferences(t *testing.T) {
	r := newRepository(t)
	first := r.files("main", "a", "1")
	f := fetcher(t, Options{URL: r.url, Branch: "main"})
	resolved, err := f.Resolve(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	r.files("main", "a", "2")
	if _, files, err := fetchInto(t, f, resolved); fetch.ReasonOf(err) != fetch.Moved || len(files) > 0 {
		t.Errorf("the server gives only away what it advertises: %v %v", files, err)
	}
	r.git(nil, "config", "uploadpack.allowAnySHA1InWant", "true")
	if got, files, err := fetchInto(t, f, resolved); err != nil || files["a"] != "1" || got != resolved {
		t.Errorf("the resolved commit, not the newest: %v %v %v", got, files, err)
	}
	r.git(nil, "config", "uploadpack.allowAnySHA1InWant", "false")
	r.git(nil, "config", "uploadpack.allowReachableSHA1InWant", "true")
	// The branch was rewritten: the old commit is not reachable.
	if _, _, err := fetchInto(t, f, resolved); fetch.ReasonOf(err) != fetch.Moved {
		t.Errorf("a rewritten branch: %v", err)
	}
	r.git(nil, "update-ref", "refs/heads/other", first)
	r.seen()
	pinned := fetcher(t, Options{URL: r.url, Commit: first})
	if resolved, err = pinned.Resolve(context.Background()); err != nil || resolved != (fetch.Resolved{Digest: "sha1:" + first, Pinned: true}) {
		t.Errorf("%+v, %v", resolved, err)
	}
	if got := r.seen(); len(got) > 0 {
		t.Errorf("a commit needs no request: %v", got)
	}
	if _, files, err := fetchInto(t, pinned, resolved); err != nil || files["a"] != "1" {
		t.Errorf("%v %v", files, err)
	}
	r.git(nil, "update-ref", "-d", "refs/heads/main")
	if _, err := f.Resolve(context.Background()); fetch.ReasonOf(err) != fetch.NotFound {
		t.Errorf("a deleted branch: %v", err)
	}
}

func TestOnlyTheNewestCommitIsTransferred(t *testing.T) {
	r := newRepository(t)
	old := r.files("main", "old", strings.Repeat("history ", 1000))
	tree := r.git(nil, "rev-parse", r.files("side", "a", "1")+"^{tree}")
	child := r.git(nil, "commit-tree", "-m", "child", "-p", old, tree)
	r.git(nil, "update-ref", "refs/heads/main", child)
	f := fetcher(t, Options{URL: r.url})
	scratch := t.TempDir()
	resolved, err := f.Resolve(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	commit, err := commitOf(resolved.Digest)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := f.download(context.Background(), commit, scratch)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = objects.Close() })
	if len(objects.objects) != 3 {
		t.Errorf("%d objects instead of commit, tree and blob", len(objects.objects))
	}
}

func TestDeltasAreRebuilt(t *testing.T) {
	r := newRepository(t)
	lines := make([]string, 400)
	for i := range lines {
		lines[i] = fmt.Sprintf("line %d of a file that git stores once and then as differences", i*i*7919)
	}
	want, files := map[string]string{}, []string{}
	for i := range 20 {
		lines[i*3] = fmt.Sprintf("changed %d", i)
		name := fmt.Sprintf("d/file%02d", i)
		want[name] = strings.Join(lines, "\n")
		files = append(files, name, want[name])
	}
	r.files("main", files...)
	r.git(nil, "repack", "-adfq", "--depth=50", "--window=50")
	_, got, err := pull(t, Options{URL: r.url})
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	f := fetcher(t, Options{URL: r.url})
	resolved, err := f.Resolve(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	commit, err := commitOf(resolved.Digest)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := f.download(context.Background(), commit, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = objects.Close() })
	if objects.written == 0 {
		t.Error("the pack had no deltas, so this tested nothing")
	}
}

func TestM16Directories(t *testing.T) {
	r := newRepository(t)
	blob := r.blob("1")
	inner := r.tree(leaf{"100644", "x", blob})
	r.commit("main", r.tree(
		leaf{"40000", "ab", inner}, leaf{"40000", "deploy", r.tree(leaf{"40000", "inner", inner}, leaf{"100755", "run", blob})},
		leaf{"120000", "link", r.blob("deploy")}, leaf{"100644", "top", blob}), "x")
	cases := map[string]struct {
		reason, directory string
		want              map[string]string
		err               fetch.Reason
	}{
		"All":      {"everything", "", map[string]string{"ab/x": "1", "deploy/inner/x": "1", "deploy/run": "1", "top": "1"}, ""},
		"Dot":      {"everything", ".", map[string]string{"ab/x": "1", "deploy/inner/x": "1", "deploy/run": "1", "top": "1"}, ""},
		"DotSlash": {"as people write it", "./deploy/", map[string]string{"inner/x": "1", "run": "1"}, ""},
		"Nested":   {"a path", "deploy/inner", map[string]string{"x": "1"}, ""},
		"Short":    {"names of any length", "ab", map[string]string{"x": "1"}, ""},
		"Missing":  {"the message names it", "none", nil, fetch.NotFound},
		"File":     {"not a folder", "top", nil, fetch.InvalidContent},
		"Link":     {"never followed", "link", nil, fetch.InvalidContent},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, files, err := pull(t, Options{URL: r.url, Directory: tc.directory})
			if fetch.ReasonOf(err) != tc.err {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, files); err == nil && diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
		})
	}
	for _, bad := range []string{"..", "a/../..", "/etc", "a//b", "../x", ".git", "a/.GIT/b", "//", "a/./b"} {
		if _, err := New(Options{URL: r.url, Directory: bad, Client: client()}); fetch.ReasonOf(err) != fetch.Refused {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestM16HostileTrees(t *testing.T) {
	r := newRepository(t)
	blob := r.blob("CANARY-git")
	inner := r.tree(leaf{"100644", "config", blob})
	names := map[string]string{
		"DotGit": ".git", "Upper": ".GIT", "Space": ".git ", "Dot": ".git.", "Stream": ".git::$INDEX_ALLOCATION",
		"Short": "git~1", "ShortUpper": "GIT~2", "HFS": ".g\u200cit", "Parent": "..", "Self": ".", "Slash": "a/b", "Up": "../x",
		"Backslash": `a\b`, "Control": "a\x01", "Absolute": "/etc",
	}
	for name, bad := range names {
		for _, mode := range []string{"100644", "40000", "120000"} {
			t.Run(name+mode, func(t *testing.T) {
				hash := blob
				if mode == "40000" {
					hash = inner
				}
				r.commit("main", r.tree(leaf{"100644", "good", blob}, leaf{mode, bad, hash}), bad)
				_, _, err := pull(t, Options{URL: r.url})
				if fetch.ReasonOf(err) != fetch.InvalidContent {
					t.Errorf("an entry named %q: %v", bad, err)
				}
			})
		}
	}
}

func TestM16LinksAndSubmodules(t *testing.T) {
	r := newRepository(t)
	blob := r.blob("1")
	r.commit("main", r.tree(
		leaf{"120000", ".gitmodules", r.blob("/etc/passwd")}, leaf{"100644", "a", blob}, leaf{"120000", "in", r.blob("a")},
		leaf{"160000", "module", strings.Repeat("a", 40)}, leaf{"120000", "out", r.blob("../../etc/passwd")},
	), "links")
	_, files, err := pull(t, Options{URL: r.url})
	if diff := cmp.Diff(map[string]string{"a": "1"}, files); err != nil || diff != "" {
		t.Errorf("links and submodules are skipped: %v %s", err, diff)
	}
	r.commit("main", r.tree(leaf{"120000", "x", r.blob("/tmp")}, leaf{"40000", "x", r.tree(leaf{"100644", "f", blob})}), "twice")
	if _, files, err := pull(t, Options{URL: r.url}); err != nil || files["x/f"] != "1" {
		t.Errorf("nothing is written through a link: %v %v", files, err)
	}
}

func TestM16Bombs(t *testing.T) {
	r := newRepository(t)
	limits := fetch.DefaultLimits()
	limits.Entries, limits.ExtractedBytes, limits.FileBytes = 100, 5000, 1000
	level := r.tree(leaf{"100644", "f", r.blob("")})
	for range 8 {
		leaves := []leaf{}
		for i := range 10 {
			leaves = append(leaves, leaf{"40000", fmt.Sprint(i), level})
		}
		level = r.tree(leaves...)
	}
	deep := r.tree(leaf{"100644", "f", r.blob("")})
	for range 80 {
		deep = r.tree(leaf{"40000", "d", deep})
	}
	many := []leaf{}
	for i := range 101 {
		many = append(many, leaf{"100644", fmt.Sprintf("f%03d", i), r.blob("")})
	}
	copies := []leaf{}
	for i := range 6 {
		copies = append(copies, leaf{"100644", fmt.Sprint(i), r.blob(strings.Repeat("x", 1000))})
	}
	cases := map[string]struct{ reason, tree string }{
		"Exponential": {"ten times ten times ten folders from ten objects", level},
		"Deep":        {"deeper than any", deep},
		"Many":        {"more files than allowed", r.tree(many...)},
		"Large":       {"one large file", r.tree(leaf{"100644", "f", r.blob(strings.Repeat("x", 1001))})},
		"Copies":      {"the same file again and again", r.tree(copies...)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r.commit("main", tc.tree, name)
			if _, _, err := pull(t, Options{URL: r.url, Limits: limits}); fetch.ReasonOf(err) != fetch.LimitExceeded {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
	r.commit("main", r.tree(many[:100]...), "at the limit")
	if _, files, err := pull(t, Options{URL: r.url, Limits: limits}); err != nil || len(files) != 100 {
		t.Errorf("input at the limit is accepted: %d %v", len(files), err)
	}
}

func TestM15Refusals(t *testing.T) {
	cases := map[string]struct {
		reason string
		o      Options
	}{
		"UploadPack":  {"an option of git", Options{URL: "--upload-pack=touch /tmp/x"}},
		"Ext":         {"runs a command", Options{URL: "ext::sh -c touch% /tmp/x"}},
		"File":        {"reads this machine", Options{URL: "file:///etc"}},
		"Local":       {"reads this machine", Options{URL: "/etc"}},
		"Relative":    {"reads this machine", Options{URL: "../repo"}},
		"Option":      {"an option of git", Options{URL: "-o"}},
		"SSH":         {"in a later release", Options{URL: "ssh://-oProxyCommand=x/y"}},
		"SCP":         {"in a later release", Options{URL: "git@example.org:org/repo.git"}},
		"Git":         {"without any protection", Options{URL: "git://example.org/org/repo.git"}},
		"Credentials": {"would be shown", Options{URL: "https://user:CANARY-password@example.org/repo.git"}},
		"Newline":     {"forges requests", Options{URL: "https://example.org/a%0ab"}},
		"RawNewline":  {"forges requests", Options{URL: "https://example.org/a\nb"}},
		"Query":       {"no repository has one", Options{URL: "https://example.org/repo.git?x=y"}},
		"DashHost":    {"no host begins so", Options{URL: "https://-oProxyCommand/x"}},
		"RefParent":   {"git check-ref-format", Options{URL: "https://example.org/r", Branch: "../../config"}},
		"RefDash":     {"an option of git", Options{URL: "https://example.org/r", Branch: "-x"}},
		"RefAt":       {"git check-ref-format", Options{URL: "https://example.org/r", Tag: "@{u}"}},
		"RefLong":     {"10 kB", Options{URL: "https://example.org/r", Branch: strings.Repeat("x", 10_000)}},
		"RefNewline":  {"forges lines of the protocol", Options{URL: "https://example.org/r", Tag: "a\nwant"}},
		"ShortCommit": {"ambiguous", Options{URL: "https://example.org/r", Commit: "abcdef1"}},
		"SHA256":      {"not supported", Options{URL: "https://example.org/r", Commit: strings.Repeat("a", 64)}},
		"Range":       {"malformed", Options{URL: "https://example.org/r", SemVer: "newest"}},
		"LongRange":   {"costly", Options{URL: "https://example.org/r", SemVer: strings.Repeat(">=0 || ", 10_000) + ">=0"}},
		"Two":         {"ambiguous", Options{URL: "https://example.org/r", Branch: "a", Tag: "b"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.o.Client = client()
			_, err := New(tc.o)
			if fetch.ReasonOf(err) != fetch.Refused || strings.Contains(err.Error(), "CANARY") {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

// TestM15NoOtherTransports keeps go-git's table of transports, with file, ssh and git in it, out of the program.
func TestM15NoOtherTransports(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Skipf("go list does not work here: %v", err)
	}
	for _, bad := range []string{
		"github.com/go-git/go-git/v5\n", "/plumbing/transport/client\n", "/plumbing/transport/file\n",
		"/plumbing/transport/ssh\n", "/plumbing/transport/git\n", "\nos/exec\n",
	} {
		if strings.Contains("\n"+string(out), bad) {
			t.Errorf("%s is linked", strings.TrimSpace(bad))
		}
	}
}

// refNames are names with and without the syntax of git-check-ref-format(1).
var refNames = map[string]bool{
	"a": true, "a/b": true, "a.b": true, "v1.0.0": true, "@": true, "a@b": true, "ü": true, "a-b_c": true, "-x": true,
	"": false, ".a": false, "a/.b": false, "a..b": false, "a.lock": false, "a.lock/b": false, "a.": false, "a/": false, "/a": false,
	"a//b": false, "a b": false, "a~1": false, "a^": false, "a:b": false, "a?": false, "a*": false, "a[": false, `a\b`: false,
	"@{u}": false, "a@{1}": false, "a\x7f": false, "a\n": false, "a\tb": false, "..": false, "a/../b": false,
}

func TestM15ReferenceNames(t *testing.T) {
	for name, want := range refNames {
		if got := wellFormed(branchPrefix + name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}

func FuzzGitRefName(f *testing.F) {
	for name := range refNames {
		f.Add(name)
	}
	git, err := exec.LookPath("git")
	if err != nil {
		f.Log("git is not installed: nothing to compare with")
	}
	f.Fuzz(func(t *testing.T, name string) {
		full := branchPrefix + name
		got := wellFormed(full)
		if got && (strings.Contains(full, "..") || strings.ContainsAny(full, "\x00\n\\ ")) {
			t.Errorf("%q was accepted", name)
		}
		if git == "" || strings.Contains(name, "\x00") || len(name) > 1000 {
			return
		}
		if want := exec.Command(git, "check-ref-format", full).Run() == nil; got != want {
			t.Errorf("%q: %v, git says %v", name, got, want)
		}
	})
}

func FuzzParseTree(f *testing.F) {
	f.Add([]byte("100644 a\x00" + strings.Repeat("h", 20)))
	f.Add([]byte("40000 a b\x00short"))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := parseTree(data)
		if err != nil {
			return
		}
		size := 0
		for _, e := range entries {
			size += len(e.name) + 22
		}
		if size > len(data) {
			t.Errorf("%d bytes of entries from %d", size, len(data))
		}
	})
}
