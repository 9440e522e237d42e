// SPDX-License-Identifier: Apache-2.0

package gitsig

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// tools are git, gpg and ssh-keygen, with a repository and a key ring of their own.
type tools struct {
	t    testing.TB
	home string // short, for gpg has a socket in it
	repo string
}

func newTools(t testing.TB, programs ...string) *tools {
	t.Helper()
	for _, program := range append(programs, "git") {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed, which makes the signatures of this test", program)
		}
	}
	home, err := os.MkdirTemp("", "sig")
	if err != nil {
		t.Fatal(err)
	}
	tl := &tools{t: t, home: home, repo: filepath.Join(home, "repo")}
	t.Cleanup(func() {
		if _, err := exec.LookPath("gpgconf"); err == nil {
			_ = tl.command("gpgconf", "--kill", "all").Run() // its agent would stay
		}
		_ = os.RemoveAll(home)
	})
	tl.run(nil, "git", "init", "-q", "-b", "main", tl.repo)
	return tl
}

func (tl *tools) command(name string, args ...string) *exec.Cmd {
	command := exec.Command(name, args...)
	if command.Dir = tl.home; name == "git" && args[0] != "init" {
		command.Dir = tl.repo
	}
	command.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + tl.home, "GNUPGHOME=" + tl.home, "TZ=UTC", "LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org",
	}
	return command
}

// try runs a command and returns its output.
func (tl *tools) try(input []byte, name string, args ...string) (string, error) {
	command := tl.command(name, args...)
	command.Stdin = bytes.NewReader(input)
	var failure bytes.Buffer
	command.Stderr = &failure
	out, err := command.Output()
	if err != nil {
		err = errors.Join(err, errors.New(failure.String()))
	}
	return string(out), err
}

func (tl *tools) run(input []byte, name string, args ...string) string {
	tl.t.Helper()
	out, err := tl.try(input, name, args...)
	if err != nil {
		tl.t.Fatalf("%s %v: %v", name, args, err)
	}
	return out
}

// gpg runs gpg without questions.
func (tl *tools) gpg(input string, args ...string) string {
	tl.t.Helper()
	return tl.run([]byte(input), "gpg", append([]string{
		"--batch", "--quiet", "--yes", "--no-tty", "--pinentry-mode", "loopback", "--passphrase", "", "--allow-weak-key-signatures"}, args...)...)
}

// pgpKey makes a key and returns how it is called; algorithm and expiry as gpg has them.
func (tl *tools) pgpKey(mail, algorithm, expiry string) string {
	tl.t.Helper()
	tl.gpg("", "--quick-gen-key", "Some Body <"+mail+">", algorithm, "sign", expiry)
	return mail
}

func (tl *tools) export(mail string) []byte {
	tl.t.Helper()
	return []byte(tl.gpg("", "--armor", "--export", mail))
}

// sshKey makes a key and returns its file.
func (tl *tools) sshKey(name string, args ...string) string {
	tl.t.Helper()
	file := filepath.Join(tl.home, name)
	tl.run(nil, "ssh-keygen", append([]string{"-q", "-N", "", "-C", name + "@example.org", "-f", file}, args...)...)
	return file
}

func (tl *tools) read(file string) string {
	tl.t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		tl.t.Fatal(err)
	}
	return string(data)
}

func (tl *tools) write(name, content string) string {
	tl.t.Helper()
	file := filepath.Join(tl.home, name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		tl.t.Fatal(err)
	}
	return file
}

// signedBy are the settings of git for a kind of key.
func signedBy(format, key string) []string {
	return []string{"-c", "gpg.format=" + format, "-c", "user.signingKey=" + key}
}

// commit makes a commit, signed when there are settings, and returns its name.
func (tl *tools) commit(settings ...string) string {
	tl.t.Helper()
	args := append(settings, "commit", "-q", "--allow-empty", "-m", "message\n\nwith a body")
	if len(settings) > 0 {
		args = append(args, "-S")
	}
	tl.run(nil, "git", args...)
	return strings.TrimSpace(tl.run(nil, "git", "rev-parse", "HEAD"))
}

// tag makes a tag of a commit, signed when there are settings, and returns its name.
func (tl *tools) tag(name, target string, settings ...string) string {
	tl.t.Helper()
	kind := "-a"
	if len(settings) > 0 {
		kind = "-s"
	}
	tl.run(nil, "git", append(settings, "tag", "-f", kind, "-m", "release", name, target)...)
	return strings.TrimSpace(tl.run(nil, "git", "rev-parse", "refs/tags/"+name))
}

// raw returns the bytes of an object.
func (tl *tools) raw(kind, name string) []byte {
	tl.t.Helper()
	return []byte(tl.run(nil, "git", "cat-file", kind, name))
}

// store writes an object as it stands and returns its name.
func (tl *tools) store(kind string, raw []byte) string {
	tl.t.Helper()
	return strings.TrimSpace(tl.run(raw, "git", "hash-object", "-t", kind, "-w", "--literally", "--stdin"))
}

// now is when tests verify.
func now() time.Time { return time.Now().Add(time.Minute) }
