// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/git/modulesfile"
)

// sibling is another repository on the same server.
func (r *repository) sibling(name string) *repository {
	r.t.Helper()
	dir := filepath.Join(filepath.Dir(r.dir), name)
	s := &repository{t: r.t, dir: dir, url: strings.TrimSuffix(r.url, "repo.git") + name}
	s.init()
	return s
}

// module is a line of .gitmodules.
func module(path, url string) string {
	return fmt.Sprintf("[submodule %q]\n\tpath = %s\n\turl = %s\n", path, path, url)
}

func TestSubmodules(t *testing.T) {
	r := newRepository(t)
	lib, deep := r.sibling("lib.git"), r.sibling("deep.git")
	bottom := deep.files("main", "d", "deep")
	inner := lib.commit("main", lib.tree(
		leaf{"100644", ".gitmodules", lib.blob(module("deep", "../deep.git"))}, leaf{"160000", "deep", bottom}, leaf{"100644", "l", lib.blob("lib")}), "lib")
	lib.files("main", "l", "newer") // a submodule is the commit that is named, not the newest
	lib.git(nil, "config", "uploadpack.allowReachableSHA1InWant", "true")
	lib.git(nil, "update-ref", "refs/heads/old", inner)
	modules := r.blob(module("vendor/lib", r.url[:strings.LastIndex(r.url, "/")]+"/lib.git") + "# comment\n[other]\n\tx = y\n" + module("unused", "../none.git"))
	root := r.tree(leaf{"100644", ".gitmodules", modules}, leaf{"100644", "a", r.blob("1")},
		leaf{"40000", "vendor", r.tree(leaf{"100644", "b", r.blob("2")}, leaf{"160000", "lib", inner})})
	r.commit("main", root, "x")
	files := map[string]string{".gitmodules": r.git(nil, "cat-file", "blob", modules) + "\n", "a": "1", "vendor/b": "2"}
	_, got, err := pull(t, Options{URL: r.url})
	if diff := cmp.Diff(files, got); err != nil || diff != "" {
		t.Errorf("not asked for: %v %s", err, diff)
	}
	files["vendor/lib/l"], files["vendor/lib/deep/d"] = "lib", "deep"
	files["vendor/lib/.gitmodules"] = module("deep", "../deep.git")
	r.seen()
	_, got, err = pull(t, Options{URL: r.url, Submodules: true})
	if diff := cmp.Diff(files, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	_, got, err = pull(t, Options{URL: r.url, Submodules: true, Directory: "vendor"})
	if err != nil || got["lib/l"] != "lib" || got["lib/deep/d"] != "deep" || got["b"] != "2" {
		t.Errorf("a folder: %v %v", got, err)
	}
	r.seen()
	if _, _, err := pull(t, Options{URL: r.url, Submodules: true, Directory: "vendor/lib"}); fetch.ReasonOf(err) != fetch.InvalidContent {
		t.Errorf("a folder that is a submodule: %v", err)
	}
}

// TestSubmodulesOverSSH has the forms that people write.
func TestSubmodulesOverSSH(t *testing.T) {
	r := newRepository(t)
	lib := r.sibling("lib.git")
	commit := lib.files("main", "l", "lib")
	host := newKey(t, "ed25519")
	server := newSSHServer(t, host)
	for _, url := range []string{"../lib.git", server.url(lib.dir)} {
		r.commit("main", r.tree(leaf{"100644", ".gitmodules", r.blob(module("lib", url))}, leaf{"160000", "lib", commit}), url)
		o := server.options(t, r.dir, server.line(host.PublicKey()))
		o.Submodules = true
		if _, files, err := pull(t, o); err != nil || files["lib/l"] != "lib" {
			t.Errorf("%s: %v %v", url, files, err)
		}
	}
}

func TestM16SubmoduleURLs(t *testing.T) {
	cases := map[string]struct {
		reason, parent, text, want string
	}{
		"Sibling":      {"as git resolves it", "https://example.org/org/repo.git", "../lib.git", "https://example.org/org/lib.git"},
		"Slash":        {"a slash at the end", "https://example.org/org/repo.git/", "../lib.git/", "https://example.org/org/lib.git"},
		"Below":        {"inside", "https://example.org/org/repo", "./lib", "https://example.org/org/repo/lib"},
		"OtherOrg":     {"two up", "https://example.org/org/repo", "../../other/lib", "https://example.org/other/lib"},
		"Top":          {"up to the server", "https://example.org/org/repo", "../../lib", "https://example.org/lib"},
		"Absolute":     {"the same server", "https://example.org/org/repo", "https://example.org/x/y", "https://example.org/x/y"},
		"Port":         {"the usual port, spelled out", "https://example.org/org/repo", "https://EXAMPLE.org:443/x", "https://example.org/x"},
		"SSH":          {"the same server and user", "ssh://git@example.org/org/repo", "ssh://git@example.org:22/x/y", "ssh://git@example.org/x/y"},
		"SCP":          {"the short form of the same", "ssh://git@example.org/org/repo", "git@example.org:x/y.git", "ssh://git@example.org/x/y.git"},
		"SSHSibling":   {"as git resolves it", "ssh://git@example.org:7999/org/repo", "../lib", "ssh://git@example.org:7999/org/lib"},
		"Out":          {"above the server", "https://example.org/org/repo", "../../../lib", ""},
		"FarOut":       {"far above", "https://example.org/org/repo", strings.Repeat("../", 50) + "etc", ""},
		"Host":         {"another host", "https://example.org/org/repo", "https://example.com/lib", ""},
		"Subdomain":    {"another host", "https://example.org/org/repo", "https://git.example.org/lib", ""},
		"OtherPort":    {"another server", "https://example.org/org/repo", "https://example.org:8443/lib", ""},
		"Scheme":       {"not protected", "https://example.org/org/repo", "http://example.org/lib", ""},
		"ToSSH":        {"credentials of another kind", "https://example.org/org/repo", "ssh://git@example.org/lib", ""},
		"ToSCP":        {"credentials of another kind", "https://example.org/org/repo", "git@example.org:lib", ""},
		"User":         {"another user", "ssh://git@example.org/org/repo", "ssh://root@example.org/lib", ""},
		"SCPUser":      {"another user", "ssh://git@example.org/org/repo", "root@example.org:lib", ""},
		"SCPHost":      {"another host", "ssh://git@example.org/org/repo", "git@example.com:lib", ""},
		"SCPPort":      {"another server", "ssh://git@example.org:7999/org/repo", "git@example.org:lib", ""},
		"SCPOption":    {"an option of ssh", "ssh://git@example.org/org/repo", "-oProxyCommand=x:y", ""},
		"File":         {"this machine", "https://example.org/org/repo", "file:///etc", ""},
		"Local":        {"this machine", "https://example.org/org/repo", "/etc", ""},
		"Ext":          {"runs a command", "https://example.org/org/repo", "ext::sh -c x", ""},
		"Option":       {"an option of git", "https://example.org/org/repo", "--upload-pack=x", ""},
		"Empty":        {"nothing", "https://example.org/org/repo", "", ""},
		"Self":         {"nothing", "https://example.org/org/repo", "./", ""},
		"UpInside":     {"traversal further on", "https://example.org/org/repo", "../x/../../../y", ""},
		"UpAbsolute":   {"traversal", "https://example.org/org/repo", "https://example.org/x/../../y", ""},
		"UpEncoded":    {"traversal", "https://example.org/org/repo", "https://example.org/x/%2e%2e/y", ""},
		"DoubleSlash":  {"would be read as a host", "https://example.org/org/repo", "..//../evil.example/x", ""},
		"HostByPath":   {"would be read as a host", "https://example.org/org/repo", "../..//evil.example/x", ""},
		"Backslash":    {"some servers take it for a slash", "https://example.org/org/repo", `..\..\x`, ""},
		"BackslashIn":  {"some servers take it for a slash", "https://example.org/org/repo", `../..\x`, ""},
		"Newline":      {"forges requests", "https://example.org/org/repo", "../a\nb", ""},
		"Query":        {"reaches something else", "https://example.org/org/repo", "../a?service=x", ""},
		"Credentials":  {"they are secret, and would be shown", "https://example.org/org/repo", "https://u:CANARY@example.org/x", ""},
		"UserTricks":   {"the host stands behind the at", "https://example.org/org/repo", "https://example.org@evil.example/x", ""},
		"FragmentHost": {"not a host", "https://example.org/org/repo", "https://evil.example#@example.org/x", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			parent, err := parseRepository(tc.parent)
			if err != nil {
				t.Fatal(err)
			}
			got, err := resolveModule(parent, tc.text)
			switch {
			case tc.want == "" && (fetch.ReasonOf(err) != fetch.Refused || strings.Contains(err.Error(), "CANARY")):
				t.Errorf("%s: %v %v", tc.reason, got, err)
			case tc.want != "" && (err != nil || got.String() != tc.want):
				t.Errorf("%s: %v %v", tc.reason, got, err)
			}
		})
	}
}

func TestM16SubmodulesThatAreRefused(t *testing.T) {
	r := newRepository(t)
	lib := r.sibling("lib.git")
	commit := lib.files("main", "l", "CANARY")
	canary := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		t.Errorf("%s was asked, with %q", q.Host, q.Header.Get("Authorization"))
	}))
	t.Cleanup(canary.Close)
	elsewhere := strings.Replace(r.url, "127.0.0.1", "localhost", 1)
	one := func(content string, more ...leaf) string {
		return r.tree(append([]leaf{{"100644", ".gitmodules", r.blob(content)}, {"160000", "lib", commit}}, more...)...)
	}
	good := module("lib", "../lib.git")
	cases := map[string]struct {
		reason, tree string
		want         fetch.Reason
		text         string
	}{
		"OtherServer": {"credentials do not go there", one(module("lib", canary.URL+"/lib.git")), fetch.Refused, "another server"},
		"OtherName":   {"the same machine under another name", one(module("lib", elsewhere)), fetch.Refused, "another server"},
		"File":        {"reads this machine", one(module("lib", "file://"+lib.dir)), fetch.Refused, "not supported"},
		"Out":         {"traversal", one(module("lib", "../../../lib.git")), fetch.Refused, "leads out"},
		"Credentials": {"not shown", one(module("lib", "http://u:CANARY-pw@"+strings.TrimPrefix(canary.URL, "http://")+"/x")), fetch.Refused, "credentials"},
		"Link":        {"the file is a link", r.tree(leaf{"120000", ".gitmodules", r.blob("a")}, leaf{"100644", "a", r.blob(good)}, leaf{"160000", "lib", commit}), fetch.InvalidContent, "not a regular file"},
		"Folder":      {"the file is a folder", r.tree(leaf{"40000", ".gitmodules", r.tree(leaf{"100644", "x", r.blob(good)})}, leaf{"160000", "lib", commit}), fetch.InvalidContent, "not a regular file"},
		"NoFile":      {"no URL", r.tree(leaf{"160000", "lib", commit}), fetch.InvalidContent, "has no URL"},
		"NoEntry":     {"no URL", one(module("other", "../lib.git")), fetch.InvalidContent, "has no URL"},
		"PathUp":      {"a path that is not in the tree", one(module("../lib", "../lib.git")), fetch.InvalidContent, "has no URL"},
		"Malformed":   {"not in git's syntax", one("[submodule \"lib\"\npath = lib"), fetch.InvalidContent, "malformed"},
		"Twice":       {"ambiguous", one(good + strings.Replace(good, `"lib"`, `"two"`, 1)), fetch.InvalidContent, "twice"},
		"Huge":        {"too large", one(good + strings.Repeat("# comment\n", 10_000)), fetch.LimitExceeded, "65536 bytes"},
		"Missing":     {"no such repository", one(module("lib", "../none.git")), fetch.NotFound, "none.git"},
		"NoCommit":    {"a commit that nothing points at", r.tree(leaf{"100644", ".gitmodules", r.blob(good)}, leaf{"160000", "lib", someCommit}), fetch.NotFound, "allowReachableSHA1InWant"},
		"DotGit":      {"a hostile name", one(good, leaf{"160000", ".git", commit}), fetch.InvalidContent, ".git"},
		"Parent":      {"a hostile name", one(good, leaf{"160000", "..", commit}), fetch.InvalidContent, ".."},
		"OverFile":    {"two things of one name", one(good, leaf{"100644", "lib", r.blob("x")}), fetch.InvalidContent, "a folder has the same name"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r.commit("main", tc.tree, name)
			_, _, err := pull(t, Options{URL: r.url, Submodules: true, Login: fetch.Login{Token: "CANARY-token"}})
			if fetch.ReasonOf(err) != tc.want || !strings.Contains(err.Error(), tc.text) || strings.Contains(err.Error(), "CANARY") {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

func TestM16SubmodulesShareTheLimits(t *testing.T) {
	r := newRepository(t)
	lib := r.sibling("lib.git")
	commit := lib.files("main", "a", strings.Repeat("x", 1000), "b", "2")
	many := func(n int) string {
		leaves, content := []leaf{}, ""
		for i := range n {
			name := fmt.Sprintf("m%03d", i)
			leaves, content = append(leaves, leaf{"160000", name, commit}), content+module(name, "../lib.git")
		}
		return r.tree(append([]leaf{{"100644", ".gitmodules", r.blob(content)}}, leaves...)...)
	}
	chain := func(length int) string {
		below := commit
		for i := range length - 1 {
			s := r.sibling(fmt.Sprintf("chain%d-%d.git", length, i))
			target := "../lib.git"
			if i > 0 {
				target = fmt.Sprintf("../chain%d-%d.git", length, i-1)
			}
			below = s.commit("main", s.tree(leaf{"100644", ".gitmodules", s.blob(module("m", target))}, leaf{"160000", "m", below}), "x")
		}
		target := "../lib.git"
		if length > 1 {
			target = fmt.Sprintf("../chain%d-%d.git", length, length-2)
		}
		return r.tree(leaf{"100644", ".gitmodules", r.blob(module("m", target))}, leaf{"160000", "m", below})
	}
	cases := map[string]struct {
		reason, tree string
		change       func(*fetch.Limits)
		want         fetch.Reason
		text         string
	}{
		"AtNumber":  {"as many as there may be", many(maxSubmodules), nil, "", ""},
		"Number":    {"one more", many(maxSubmodules + 1), nil, fetch.LimitExceeded, "more than 50 submodules"},
		"AtNesting": {"as deep as it may be", chain(maxNesting), nil, "", ""},
		"Nesting":   {"one deeper", chain(maxNesting + 1), nil, fetch.LimitExceeded, "more than 3 deep"},
		// .gitmodules, four submodules, two files each.
		"AtEntries": {"together", many(4), func(l *fetch.Limits) { l.Entries = 13 }, "", ""},
		"Entries":   {"one too many in the last", many(4), func(l *fetch.Limits) { l.Entries = 12 }, fetch.LimitExceeded, ""},
		"Bytes":     {"together", many(4), func(l *fetch.Limits) { l.ExtractedBytes = 3500 }, fetch.LimitExceeded, "3500 bytes"},
		"Transfer":  {"together", many(30), func(l *fetch.Limits) { l.GitPackBytes = 5000 }, fetch.LimitExceeded, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			limits := fetch.DefaultLimits()
			if tc.change != nil {
				tc.change(&limits)
			}
			r.commit("main", tc.tree, name)
			_, _, err := pull(t, Options{URL: r.url, Submodules: true, Limits: limits})
			if fetch.ReasonOf(err) != tc.want || (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.text) {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

// FuzzGitModules compares with git itself, where it is installed: what is read here, git reads as well.
func FuzzGitModules(f *testing.F) {
	for _, content := range []string{
		module("lib", "../lib.git"), "[submodule \"a\"]\n\tpath = \"b c\"\n\turl = x # y\n\tupdate = !touch x\n", "[submodule]\npath=x\nurl=y",
		"[submodule \"a\\\"b\"]\npath = a\\\nb\nurl = 1\nurl = 2", "[include]\npath = /etc/passwd\n", "[submodule \"a\"]\npath", "\xef\xbb\xbf[submodule \"a\"]\npath=b",
	} {
		f.Add([]byte(content))
	}
	git, err := exec.LookPath("git")
	if err != nil {
		f.Log("git is not installed: nothing to compare with")
	}
	file := filepath.Join(f.TempDir(), "modules")
	f.Fuzz(func(t *testing.T, content []byte) {
		urls, err := modulesfile.Parse(content)
		if err != nil || git == "" || len(content) > 4096 || bytes.ContainsAny(content, "\x00\r") {
			return
		}
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(git, "config", "--file", file, "--no-includes", "--null", "--list").Output()
		if err != nil {
			return // stricter than we are
		}
		read := map[string]map[string]string{}
		for line := range strings.SplitSeq(string(out), "\x00") {
			full, value, found := strings.Cut(line, "\n")
			at := strings.LastIndex(full, ".")
			if name, isModule := strings.CutPrefix(full[:max(at, 0)], "submodule."); isModule {
				if read[name] == nil {
					read[name] = map[string]string{}
				}
				if !found {
					value = "true"
				}
				read[name][full[at+1:]] = value
			}
		}
		for path, url := range urls {
			// Older versions of git make spaces of tabs.
			plain := strings.NewReplacer("\t", " ", "\v", " ", "\f", " ").Replace
			same := func(module map[string]string) bool {
				return plain(module["path"]) == plain(path) && plain(module["url"]) == plain(url)
			}
			if !slices.ContainsFunc(slices.Collect(maps.Values(read)), same) {
				t.Errorf("%q has %q at %q, git reads %q", content, url, path, out)
			}
		}
	})
}
