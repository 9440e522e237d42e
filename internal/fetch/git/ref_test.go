// SPDX-License-Identifier: Apache-2.0

package git

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/internal/fetch"
)

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
		"SSHOption":   {"an option of ssh", Options{URL: "ssh://-oProxyCommand=x/y"}},
		"SSHUser":     {"an option of ssh", Options{URL: "ssh://-oProxyCommand=x@example.org/y"}},
		"SSHUserPct":  {"an option of ssh", Options{URL: "ssh://%2doProxyCommand=x@example.org/y"}},
		"SSHHostPct":  {"an option of ssh", Options{URL: "ssh://%2doProxyCommand=x/y"}},
		"SSHPassword": {"would be shown", Options{URL: "ssh://git:CANARY-password@example.org/r"}},
		"SSHNewline":  {"forges commands", Options{URL: "ssh://git@example.org/a%0ab"}},
		"SSHUserLine": {"forges messages", Options{URL: "ssh://git%0a@example.org/a"}},
		"SSHZone":     {"about this machine", Options{URL: "ssh://git@[fe80::1%25eth0]/a"}},
		"SSHNoPath":   {"no repository", Options{URL: "ssh://git@example.org/"}},
		"SSHNoHost":   {"no server", Options{URL: "ssh:///a"}},
		"SSHPort":     {"no port", Options{URL: "ssh://git@example.org:x/a"}},
		"SSHPortHigh": {"no port", Options{URL: "ssh://git@example.org:65536/a"}},
		"SSHPortZero": {"no port", Options{URL: "ssh://git@example.org:0/a"}},
		"SSHPercent":  {"an option of ssh, once it is decoded", Options{URL: "ssh://%2d%6fProxyCommand=x@example.org/y"}},
		"SSHUserOnly": {"no server", Options{URL: "ssh://git@/a"}},
		"SSHOpaque":   {"the short form in disguise", Options{URL: "ssh:git@example.org/a"}},
		"SSHFragment": {"no repository has one", Options{URL: "ssh://git@example.org/a#x"}},
		"SSHSpace":    {"two words of a command", Options{URL: "ssh://git@example.org -oProxyCommand=x/a"}},
		"SSHHidden":   {"shows another path than it means", Options{URL: "ssh://git@example.org/a\u202eb"}},
		"SSHQuery":    {"no repository has one", Options{URL: "ssh://git@example.org/a?x"}},
		"GitSSH":      {"git's own older spelling", Options{URL: "git+ssh://git@example.org/a"}},
		"SCP":         {"no URL", Options{URL: "git@example.org:org/repo.git"}},
		"Git":         {"without any protection", Options{URL: "git://example.org/org/repo.git"}},
		"Credentials": {"would be shown", Options{URL: "https://user:CANARY-password@example.org/repo.git"}},
		"Newline":     {"forges requests", Options{URL: "https://example.org/a%0ab"}},
		"RawNewline":  {"forges requests", Options{URL: "https://example.org/a\nb"}},
		"CRLF":        {"forges requests", Options{URL: "https://example.org/a%0D%0AHost:%20x"}},
		"NUL":         {"cuts the name in C", Options{URL: "https://example.org/a%00b"}},
		"HostNewline": {"forges requests", Options{URL: "https://example.org%0a/a"}},
		"TokenOnly":   {"would be shown", Options{URL: "https://CANARY-password@example.org/repo.git"}},
		"HTTPUser":    {"would be shown", Options{URL: "http://:CANARY-password@example.org/repo.git"}},
		"PortHigh":    {"no port", Options{URL: "https://example.org:65536/a"}},
		"PortZero":    {"no port", Options{URL: "https://example.org:0/a"}},
		"Opaque":      {"no server", Options{URL: "https:example.org/a"}},
		"NoHost":      {"no server", Options{URL: "https:///a"}},
		"Backslash":   {"another server to some", Options{URL: `https://example.org\@evil.example/a`}},
		"FD":          {"a helper of git", Options{URL: "fd::17"}},
		"Transport":   {"a helper of git", Options{URL: "https::https://example.org/a"}},
		"UploadArg":   {"an option of git", Options{URL: "-uupload-pack"}},
		"Home":        {"reads this machine", Options{URL: "~/repo"}},
		"FileHost":    {"reads this machine", Options{URL: "FILE://localhost/etc"}},
		"Long":        {"too long", Options{URL: "https://example.org/" + strings.Repeat("x", 3000)}},
		"Empty":       {"nothing", Options{}},
		"Query":       {"no repository has one", Options{URL: "https://example.org/repo.git?x=y"}},
		"DashHost":    {"no host begins so", Options{URL: "https://-oProxyCommand/x"}},
		"RefParent":   {"git check-ref-format", Options{URL: "https://example.org/r", Branch: "../../config"}},
		"RefDash":     {"an option of git", Options{URL: "https://example.org/r", Branch: "-x"}},
		"RefAt":       {"git check-ref-format", Options{URL: "https://example.org/r", Tag: "@{u}"}},
		"RefConfig":   {"git check-ref-format", Options{URL: "https://example.org/r", Branch: "refs/heads/../../config"}},
		"RefOption":   {"an option of git", Options{URL: "https://example.org/r", Tag: "--upload-pack=x"}},
		"RefUpstream": {"git check-ref-format", Options{URL: "https://example.org/r", Branch: "main@{u}"}},
		"RefRange":    {"two commits", Options{URL: "https://example.org/r", Branch: "a..b"}},
		"RefGlob":     {"several references", Options{URL: "https://example.org/r", Branch: "release/*"}},
		"RefSpec":     {"writes as well", Options{URL: "https://example.org/r", Branch: "+main:main"}},
		"RefPeeled":   {"not a name", Options{URL: "https://example.org/r", Tag: "v1^{}"}},
		"RefLock":     {"git's own file", Options{URL: "https://example.org/r", Branch: "main.lock"}},
		"RefNUL":      {"forges capabilities", Options{URL: "https://example.org/r", Branch: "x\x00side-band"}},
		"RefNested":   {"an option of git, once shortened", Options{URL: "https://example.org/r", Name: "refs/tags/-x"}},
		"RefLong":     {"10 kB", Options{URL: "https://example.org/r", Branch: strings.Repeat("x", 10_000)}},
		"RefNewline":  {"forges lines of the protocol", Options{URL: "https://example.org/r", Tag: "a\nwant"}},
		"NameShort":   {"ambiguous", Options{URL: "https://example.org/r", Name: "main"}},
		"NameHead":    {"say so by giving none", Options{URL: "https://example.org/r", Name: "HEAD"}},
		"NameUp":      {"git check-ref-format", Options{URL: "https://example.org/r", Name: "refs/heads/../../config"}},
		"NameEmpty":   {"git check-ref-format", Options{URL: "https://example.org/r", Name: "refs/"}},
		"NameDash":    {"as for branches", Options{URL: "https://example.org/r", Name: "refs/heads/-x"}},
		"NameLong":    {"10 kB", Options{URL: "https://example.org/r", Name: "refs/" + strings.Repeat("x", 10_000)}},
		"NameNUL":     {"forges capabilities", Options{URL: "https://example.org/r", Name: "refs/x\x00side-band"}},
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
			if _, err := parseRepository(tc.o.URL); strings.HasPrefix(name, "SSH") && fetch.ReasonOf(err) != fetch.Refused {
				t.Errorf("%s, and not only for want of a key: %v", tc.reason, err)
			}
		})
	}
}

func TestM15ShortFormOfSSHIsExplained(t *testing.T) {
	for _, text := range []string{"git@example.org:org/repo.git", "example.org:repo", "git@[::1]:repo"} {
		if _, err := New(Options{URL: text}); fetch.ReasonOf(err) != fetch.Refused || !strings.Contains(err.Error(), "write ssh://user@host/path") {
			t.Errorf("%s: %v", text, err)
		}
	}
	for text, want := range map[string]string{
		"ssh://git@example.org/org/repo.git":       "git example.org  /org/repo.git",
		"ssh://example.org:2222/org/repo.git":      "git example.org 2222 /org/repo.git",
		"ssh://someone@[2001:db8::1]:7999/~/a b":   "someone 2001:db8::1 7999 /~/a b",
		"SSH://APKA.X@git-codecommit.example/v1/r": "APKA.X git-codecommit.example  /v1/r",
	} {
		parsed, err := parseRepository(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := strings.Join([]string{parsed.User.Username(), parsed.Hostname(), parsed.Port(), parsed.Path}, " "); got != want {
			t.Errorf("%s: got %s", text, got)
		}
	}
}

// FuzzRepositoryURL wants that what is accepted has nothing that a shell, a server or a message would misread.
func FuzzRepositoryURL(f *testing.F) {
	for _, text := range []string{
		"https://example.org/r.git", "ssh://git@example.org:22/r", "ssh://-oProxyCommand=x/y", "git@example.org:r", "ssh://%2dx@y/z",
		"ext::sh -c x", "https://u:p@x/y", "ssh://x/%0a", "ssh://[::1]:1/a", "file:///etc",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := parseRepository(text)
		if err != nil {
			return
		}
		if parsed.Scheme != "https" && parsed.Scheme != "http" && parsed.Scheme != "ssh" {
			t.Errorf("%q has the scheme %q", text, parsed.Scheme)
		}
		if strings.HasPrefix(parsed.Host, "-") || strings.HasPrefix(parsed.User.Username(), "-") || parsed.Hostname() == "" ||
			strings.ContainsAny(parsed.Path+parsed.Host, "\x00\n\r\x1b") || hasPassword(parsed) {
			t.Errorf("%q was accepted", text)
		}
	})
}

// TestM15NoOtherTransports keeps go-git's table of transports, with file, ssh and git in it, out of the program.
func TestM15NoOtherTransports(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Skipf("go list does not work here: %v", err)
	}
	for _, bad := range []string{
		"github.com/go-git/go-git/v5\n", "/plumbing/transport\n", "/plumbing/transport/client\n", "/xanzy/ssh-agent\n", "/plumbing/transport/file\n",
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
		f.Add(branchPrefix + name)
		f.Add(anyPrefix + name)
	}
	git, err := exec.LookPath("git")
	if err != nil {
		f.Log("git is not installed: nothing to compare with")
	}
	f.Fuzz(func(t *testing.T, full string) {
		got := wellFormed(full)
		if got && (strings.Contains(full, "..") || strings.ContainsAny(full, "\x00\n\\ ")) {
			t.Errorf("%q was accepted", full)
		}
		if checkName(full) == nil && !got {
			t.Errorf("%q was accepted as a name", full)
		}
		if git == "" || strings.Contains(full, "\x00") || strings.HasPrefix(full, "-") || len(full) > 1000 {
			return
		}
		if want := exec.Command(git, "check-ref-format", full).Run() == nil; got != want {
			t.Errorf("%q: %v, git says %v", full, got, want)
		}
	})
}
