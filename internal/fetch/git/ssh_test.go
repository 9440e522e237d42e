// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxcd/pkg/gittestserver"
	"golang.org/x/crypto/ssh"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/git/sshremote"
	"github.com/satchel-dev/satchel/internal/fetch/guard"
)

func TestSSHRepositories(t *testing.T) {
	r := newRepository(t)
	first := r.files("main", "a", "1")
	r.git(nil, "tag", "-a", "-m", "annotated", "v1.0.0", first)
	second := r.files("main", "a", "2")
	host := newKey(t, "ed25519")
	server := newSSHServer(t, host)
	cases := map[string]struct {
		reason    string
		o         Options
		want      fetch.Resolved
		a         string
		key       string
		encrypted string
	}{
		"Default": {"HEAD", Options{}, fetch.Resolved{Reference: "main", Digest: "sha1:" + second}, "2", "ed25519", ""},
		"Tag":     {"the commit of an annotated tag", Options{Tag: "v1.0.0"}, fetch.Resolved{Reference: "v1.0.0", Digest: "sha1:" + first}, "1", "ecdsa", ""},
		"Range":   {"the newest version", Options{SemVer: "1.x"}, fetch.Resolved{Reference: "v1.0.0", Digest: "sha1:" + first}, "1", "rsa2048", ""},
		"Locked":  {"an encrypted key", Options{Branch: "main"}, fetch.Resolved{Reference: "main", Digest: "sha1:" + second}, "2", "ed25519", "CANARY-passphrase"},
	}
	for name, tc := range cases {
		for _, deaf := range []bool{false, true} {
			t.Run(fmt.Sprint(name, deaf), func(t *testing.T) {
				server.deaf = deaf
				tc.o.URL, tc.o.Dial = server.url(r.dir), localDial()
				tc.o.SSH = &sshremote.Options{
					Identity: newKey(t, tc.key).pem(t, tc.encrypted), Passphrase: []byte(tc.encrypted), KnownHosts: []byte(server.line(host.PublicKey())),
				}
				resolved, files, err := pull(t, tc.o)
				if err != nil || resolved != tc.want || files["a"] != tc.a {
					t.Errorf("%s: %+v %v %v", tc.reason, resolved, files, err)
				}
			})
		}
	}
}

// TestSSHWithFluxServer has the server that Flux tests with.
func TestSSHWithFluxServer(t *testing.T) {
	r := newRepository(t)
	r.files("main", "a", "1")
	key := newKey(t, "rsa2048")
	server := gittestserver.NewGitServer(filepath.Dir(filepath.Dir(r.dir))).KeyDir(t.TempDir()).Auth("", "")
	host := newKey(t, "ed25519")
	config := &ssh.ServerConfig{}
	config.AddHostKey(host)
	server.WithSSHConfig(config)
	if err := server.ListenSSH(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { _ = server.StartSSH(); close(done) }()
	t.Cleanup(func() { _ = server.StopSSH(); <-done })
	address := strings.TrimPrefix(server.SSHAddress(), "ssh://git@")
	known := "[" + strings.Replace(address, ":", "]:", 1) + " " + string(ssh.MarshalAuthorizedKey(host.PublicKey()))
	resolved, files, err := pull(t, Options{
		URL: server.SSHAddress() + "/org/repo.git", Dial: localDial(), SSH: &sshremote.Options{Identity: key.pem(t, ""), KnownHosts: []byte(known)},
	})
	if err != nil || files["a"] != "1" || resolved.Reference != "main" {
		t.Errorf("%+v %v %v", resolved, files, err)
	}
}

// TestM15PathsAreQuoted has repositories with names that a shell would interpret.
func TestM15PathsAreQuoted(t *testing.T) {
	r := newRepository(t)
	r.files("main", "a", "1")
	host := newKey(t, "ed25519")
	server := newSSHServer(t, host)
	home := t.TempDir()
	server.serve = inShell(home)
	names := []string{
		"with space", "it's", "$(touch injected)", "`touch injected`", "; touch injected", "a&&touch injected", "| touch injected #",
		"--upload-pack=touch injected", "-oProxyCommand=touch injected", "!history", `back\slash`, `"double"`, "*", "$HOME", "~", "ü",
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), name)
			if err := os.CopyFS(dir, os.DirFS(r.dir)); err != nil {
				t.Fatal(err)
			}
			o := server.options(t, (&url.URL{Path: dir}).EscapedPath(), server.line(host.PublicKey()))
			if _, files, err := pull(t, o); err != nil || files["a"] != "1" {
				t.Errorf("%v %v", files, err)
			}
		})
	}
	if err := os.CopyFS(filepath.Join(home, "own", "repo"), os.DirFS(r.dir)); err != nil {
		t.Fatal(err)
	}
	// In quotes the shell does not expand ~, but git-upload-pack does.
	if _, files, err := pull(t, server.options(t, "/~/own/repo", server.line(host.PublicKey()))); err != nil || files["a"] != "1" {
		t.Errorf("below the home folder: %v %v", files, err)
	}
	found, err := filepath.Glob(filepath.Join(home, "inj*"))
	if err != nil || len(found) > 0 {
		t.Errorf("a command was run: %v %v", found, err)
	}
}

func TestM18Identities(t *testing.T) {
	host := newKey(t, "ed25519")
	server := newSSHServer(t, host)
	server.serve = advertiser
	good := newKey(t, "ed25519")
	cases := map[string]struct {
		reason, identity, passphrase, text string
		want                               fetch.Reason
	}{
		"Good":       {"the normal case", string(good.pem(t, "")), "", "", ""},
		"Unneeded":   {"a passphrase for a key without one", string(good.pem(t, "")), "CANARY", "", ""},
		"Missing":    {"SSH needs one", " \n", "", "the identity is missing", fetch.Refused},
		"Locked":     {"a passphrase is missing", string(good.pem(t, "CANARY")), "", "there is no password", fetch.Refused},
		"WrongWord":  {"a wrong passphrase", string(good.pem(t, "CANARY")), "CANARY-2", "password is wrong", fetch.Refused},
		"Garbage":    {"no key", "CANARY", "", "no private key in PEM", fetch.Refused},
		"Public":     {"the wrong half", string(ssh.MarshalAuthorizedKey(good.PublicKey())), "", "no private key in PEM", fetch.Refused},
		"RSA1024":    {"too weak", string(newKey(t, "rsa1024").pem(t, "")), "", "1024 bits", fetch.Refused},
		"HalfAKey":   {"cut", string(good.pem(t, "")[:100]), "", "no private key in PEM", fetch.Refused},
		"RSA2048":    {"strong enough", string(newKey(t, "rsa2048").pem(t, "")), "", "", ""},
		"ECDSA":      {"another type", string(newKey(t, "ecdsa").pem(t, "")), "", "", ""},
		"Whitespace": {"as an editor leaves it", "\n" + string(good.pem(t, "")) + "\n\n", "", "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := server.options(t, "/r", server.line(host.PublicKey()))
			o.SSH.Identity, o.SSH.Passphrase = []byte(tc.identity), []byte(tc.passphrase)
			o.Branch = "main"
			err := reach(t, o)
			if fetch.ReasonOf(err) != tc.want || (err == nil) != (tc.want == "") {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if err != nil && (!strings.Contains(err.Error(), tc.text) || strings.Contains(err.Error(), "CANARY")) {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

// TestM18NoSHA1Signatures has servers that know only the first signatures of RSA keys.
func TestM18NoSHA1Signatures(t *testing.T) {
	host := newKey(t, "rsa2048")
	old, err := ssh.NewSignerWithAlgorithms(host.Signer.(ssh.AlgorithmSigner), []string{ssh.KeyAlgoRSA})
	if err != nil {
		t.Fatal(err)
	}
	server := newSSHServer(t, old)
	server.serve = advertiser
	if err := reach(t, server.options(t, "/r", server.line(host.PublicKey()))); fetch.ReasonOf(err) != fetch.Unreachable ||
		!strings.Contains(err.Error(), "no host key of the types") {
		t.Errorf("host key: %v", err)
	}
	modern := newKey(t, "ed25519")
	server = newSSHServer(t, modern)
	server.serve = advertiser
	server.config.PublicKeyAuthAlgorithms = []string{ssh.KeyAlgoRSA}
	o := server.options(t, "/r", server.line(modern.PublicKey()))
	o.SSH.Identity = newKey(t, "rsa2048").pem(t, "")
	if err := reach(t, o); fetch.ReasonOf(err) != fetch.Unauthorized {
		t.Errorf("identity: %v", err)
	}
	server.config.PublicKeyAuthAlgorithms = nil
	server.config.Ciphers = []string{ssh.InsecureCipherAES128CBC}
	if err := reach(t, o); fetch.ReasonOf(err) != fetch.Unreachable || !strings.Contains(err.Error(), "cipher") {
		t.Errorf("cipher: %v", err)
	}
}

// TestM18NothingButTheSecret offers an agent, a home folder and a proxy of the environment.
func TestM18NothingButTheSecret(t *testing.T) {
	host := newKey(t, "ed25519")
	server := newSSHServer(t, host)
	server.serve = advertiser
	home := t.TempDir()
	identity := newKey(t, "ed25519").pem(t, "")
	for name, content := range map[string]string{
		"known_hosts": server.line(host.PublicKey()), "id_ed25519": string(identity),
		"config": "Host *\n  StrictHostKeyChecking no\n  ProxyCommand touch " + home + "/ran\n",
	} {
		if err := os.MkdirAll(filepath.Join(home, ".ssh"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, ".ssh", name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var asked atomic.Int32
	agent, err := net.Listen("unix", filepath.Join(home, "agent"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = agent.Close() })
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(proxy.Close)
	go func() {
		for {
			if _, err := agent.Accept(); err != nil {
				return
			}
			asked.Add(1)
		}
	}()
	for name, value := range map[string]string{
		"HOME": home, "SSH_AUTH_SOCK": agent.Addr().String(), "SSH_KNOWN_HOSTS": filepath.Join(home, ".ssh", "known_hosts"),
		"ALL_PROXY": proxy.URL, "all_proxy": proxy.URL, "GIT_SSH_COMMAND": "touch " + home + "/ran",
	} {
		t.Setenv(name, value)
	}
	o := server.options(t, "/r", "")
	if err := reach(t, o); fetch.ReasonOf(err) != fetch.Refused || !strings.Contains(err.Error(), "never trusted at first sight") {
		t.Errorf("without known_hosts: %v", err)
	}
	o = server.options(t, "/r", server.line(host.PublicKey()))
	o.SSH.Identity = nil
	if err := reach(t, o); fetch.ReasonOf(err) != fetch.Refused {
		t.Errorf("without identity: %v", err)
	}
	server.config.PublicKeyCallback = func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) { return nil, io.EOF }
	o = server.options(t, "/r", server.line(host.PublicKey()))
	err = reach(t, o)
	if fetch.ReasonOf(err) != fetch.Unauthorized || !strings.Contains(err.Error(), "does not accept the key ssh-ed25519 SHA256:") {
		t.Errorf("a key that the server does not know: %v", err)
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("agent or proxy were asked %d times", n)
	}
	if _, err := os.Stat(filepath.Join(home, "ran")); err == nil {
		t.Error("a command was run")
	}
}

func TestF14SSHServersThatMisbehave(t *testing.T) {
	host := newKey(t, "ed25519")
	cases := map[string]struct {
		reason string
		serve  func(ssh.Channel, string)
		want   fetch.Reason
		text   string
	}{
		"NoRepository": {"what the server says is shown", func(c ssh.Channel, _ string) {
			_, _ = io.WriteString(c.Stderr(), "ERROR: Repository not found.\n\x1b[2J")
			_, _ = c.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{1}))
			_ = c.Close()
		}, fetch.NotFound, "ERROR: Repository not found. \\x1b[2J"},
		"Cut": {"it dies in the middle", func(c ssh.Channel, _ string) {
			_, _ = io.WriteString(c, line(someCommit+" refs/heads/x\x00\n"))
			_ = c.Close()
		}, fetch.Unreachable, ""},
		"Short": {"it ends in the middle and calls that a success", func(c ssh.Channel, _ string) {
			_, _ = io.WriteString(c, line(someCommit+" refs/heads/x\x00\n"))
			exit(c, nil)
		}, fetch.InvalidContent, ""},
		"Refusal": {"a line of the protocol", func(c ssh.Channel, _ string) {
			_, _ = io.WriteString(c, line("ERR access denied or repository not exported\n"))
			exit(c, nil)
		}, fetch.NotFound, "access denied or repository not exported"},
		"Endless": {"references without end", func(c ssh.Channel, _ string) {
			_, _ = io.WriteString(c, line(someCommit+" refs/heads/x\x00\n"))
			for {
				if _, err := io.WriteString(c, strings.Repeat(line(someCommit+" refs/heads/y\n"), 500)); err != nil {
					return
				}
			}
		}, fetch.LimitExceeded, ""},
		"Silent": {"nothing at all comes", func(ssh.Channel, string) {}, fetch.Timeout, ""},
		"Complains": {"endless output beside the answer", func(c ssh.Channel, _ string) {
			for {
				if _, err := io.WriteString(c.Stderr(), strings.Repeat("progress ", 1000)); err != nil {
					return
				}
			}
		}, fetch.Timeout, ""},
		"HalfClosed": {"it says that nothing comes, and stays", func(c ssh.Channel, _ string) { _ = c.CloseWrite() }, fetch.Timeout, ""},
	}
	before := runtime.NumGoroutine()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := newSSHServer(t, host)
			server.serve = tc.serve
			o := server.options(t, "/r", server.line(host.PublicKey()))
			o.Limits, o.Branch = fetch.DefaultLimits(), "x"
			f, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
			defer cancel()
			if tc.want != fetch.Timeout {
				ctx = context.Background()
			}
			began := time.Now()
			_, err = f.Resolve(ctx)
			if fetch.ReasonOf(err) != tc.want || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("%s: %v", tc.reason, err)
			}
			if took := time.Since(began); took > 6*time.Second {
				t.Errorf("%s: took %v", tc.reason, took)
			}
		})
	}
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before+2; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Errorf("%d goroutines where there were %d", runtime.NumGoroutine(), before)
			break
		}
	}
}

// TestF14SSHBlackHole has a listener that never answers, and one that is no SSH server.
func TestF14SSHBlackHole(t *testing.T) {
	host := newKey(t, "ed25519")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	s := &sshServer{address: listener.Addr().String()}
	o := s.options(t, "/r", s.line(host.PublicKey()))
	o.Limits = fetch.DefaultLimits()
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := f.Resolve(ctx); fetch.ReasonOf(err) != fetch.Timeout {
		t.Errorf("black hole: %v", err)
	}
	page := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(page.Close)
	s.address = strings.TrimPrefix(page.URL, "http://")
	if err := reach(t, s.options(t, "/r", s.line(host.PublicKey()))); fetch.ReasonOf(err) != fetch.Unreachable {
		t.Errorf("a web server: %v", err)
	}
	s.address = "127.0.0.1:1"
	if err := reach(t, s.options(t, "/r", s.line(host.PublicKey()))); fetch.ReasonOf(err) != fetch.Unreachable {
		t.Errorf("connection refused: %v", err)
	}
	denied := s.options(t, "/r", s.line(host.PublicKey()))
	denied.Dial = guard.AddressPolicy{}.Dialer(guard.Access{})
	if err := reach(t, denied); fetch.ReasonOf(err) != fetch.Refused || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("a denied address: %v", err)
	}
}

// TestM18SSHNeedsItsOwnCredentials mixes up the two protocols.
func TestM18SSHNeedsItsOwnCredentials(t *testing.T) {
	key := newKey(t, "ed25519")
	full := &sshremote.Options{Identity: key.pem(t, ""), KnownHosts: []byte(knownLine(key.PublicKey(), "example.org"))}
	cases := map[string]struct {
		reason string
		o      Options
	}{
		"NoSSH":   {"no Secret", Options{}},
		"Login":   {"a password would have to be sent to the server", Options{SSH: full, Login: fetch.Login{Username: "u", Password: "CANARY"}}},
		"Unknown": {"another host is known", Options{SSH: &sshremote.Options{Identity: full.Identity, KnownHosts: []byte(knownLine(key.PublicKey(), "example.com"))}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.o.URL, tc.o.Dial = "ssh://git@example.org/r", localDial()
			if _, err := New(tc.o); fetch.ReasonOf(err) != fetch.Refused || strings.Contains(err.Error(), "CANARY") {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
	if _, err := New(Options{URL: "ssh://git@example.org/r", SSH: full, Dial: localDial()}); err != nil {
		t.Errorf("all is there: %v", err)
	}
}
