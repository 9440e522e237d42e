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

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/guard"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // the test server logs each request
	os.Exit(m.Run())
}

// repository is a bare repository behind a real Git server.
type repository struct {
	t   testing.TB
	dir string
	url string

	mutex    sync.Mutex
	requests []string
}

func newRepository(t testing.TB) *repository {
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
	r.init()
	return r
}

func (r *repository) init() {
	r.t.Helper()
	if out, err := exec.Command("git", "init", "-q", "--bare", "-b", "main", r.dir).CombinedOutput(); err != nil {
		r.t.Fatalf("%v: %s", err, out)
	}
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
	return guard.AddressPolicy{
		Allow:         []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
		InsecureHosts: []string{"127.0.0.1", "localhost", "satchel.invalid"},
	}.HTTPClient(fetch.DefaultLimits())
}

func fetcher(t testing.TB, o Options) *Fetcher {
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
