// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/git/sshremote"
	"github.com/satchel-dev/satchel/internal/fetch/guard"
)

// keyPair is an SSH key for tests.
type keyPair struct {
	private crypto.Signer
	ssh.Signer
}

func newKey(t *testing.T, kind string) keyPair {
	t.Helper()
	var private crypto.Signer
	var err error
	switch kind {
	case "ed25519":
		_, private, err = ed25519.GenerateKey(rand.Reader)
	case "ecdsa":
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "rsa2048":
		private, err = rsa.GenerateKey(rand.Reader, 2048)
	case "rsa1024":
		t.Setenv("GODEBUG", "rsa1024min=0")
		private, err = rsa.GenerateKey(rand.Reader, 1024)
	default:
		t.Fatal(kind)
	}
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	return keyPair{private, signer}
}

// pem returns the private key as people have it in a file.
func (k keyPair) pem(t *testing.T, passphrase string) []byte {
	t.Helper()
	block, err := ssh.MarshalPrivateKey(k.private, "")
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(k.private, "", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(block)
}

// certificate has an authority certify a host key.
func (k keyPair) certificate(t *testing.T, authority ssh.Signer, change func(*ssh.Certificate)) ssh.Signer {
	t.Helper()
	c := &ssh.Certificate{
		Key: k.PublicKey(), CertType: ssh.HostCert, ValidPrincipals: []string{"127.0.0.1"}, ValidBefore: ssh.CertTimeInfinity,
	}
	if change != nil {
		change(c)
	}
	if err := c.SignCert(rand.Reader, authority); err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewCertSigner(c, k.Signer)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// knownLine is a line of known_hosts.
func knownLine(key ssh.PublicKey, hosts ...string) string {
	return strings.Join(hosts, ",") + " " + string(ssh.MarshalAuthorizedKey(key))
}

// sshServer runs commands in a shell, as sshd does.
type sshServer struct {
	address string
	config  *ssh.ServerConfig
	// serve handles a command.
	serve func(channel ssh.Channel, command string)
	// deaf drops the environment, as servers do that are not told to accept it.
	deaf bool
}

func newSSHServer(t *testing.T, hostKeys ...ssh.Signer) *sshServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &sshServer{address: listener.Addr().String(), serve: inShell(t.TempDir()), config: &ssh.ServerConfig{
		PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) { return nil, nil },
	}}
	for _, key := range hostKeys {
		if pair, ok := key.(keyPair); ok {
			key = pair.Signer // which can sign with SHA-2 as well
		}
		s.config.AddHostKey(key)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go s.handle(conn)
		}
	}()
	return s
}

func (s *sshServer) handle(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	_, channels, requests, err := ssh.NewServerConn(conn, s.config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for next := range channels {
		channel, requests, err := next.Accept()
		if err != nil {
			return
		}
		go s.session(channel, requests)
	}
}

func (s *sshServer) session(channel ssh.Channel, requests <-chan *ssh.Request) {
	environment := ""
	for request := range requests {
		var variable struct{ Name, Value string }
		var payload struct{ Command string }
		switch {
		case request.Type == "env" && ssh.Unmarshal(request.Payload, &variable) == nil && variable.Name == "GIT_PROTOCOL" && !s.deaf:
			environment = "GIT_PROTOCOL=" + sshremote.Quoted(variable.Value) + " "
		case request.Type == "exec" && ssh.Unmarshal(request.Payload, &payload) == nil:
			_ = request.Reply(true, nil)
			go s.serve(channel, environment+payload.Command)
			continue
		}
		if request.WantReply {
			_ = request.Reply(false, nil)
		}
	}
}

// inShell runs a command as the login shell of a user would.
func inShell(home string) func(ssh.Channel, string) {
	return func(channel ssh.Channel, text string) {
		command := exec.Command("sh", "-c", text)
		command.Dir = home
		command.Env = append(os.Environ(), "HOME="+home, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
		input, err := command.StdinPipe()
		if err != nil {
			return
		}
		command.Stdout, command.Stderr = channel, channel.Stderr()
		if err := command.Start(); err != nil {
			return
		}
		go func() { _, _ = io.Copy(input, channel); _ = input.Close() }()
		err = command.Wait()
		exit(channel, err)
	}
}

func exit(channel ssh.Channel, err error) {
	status := struct{ Status uint32 }{0}
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		status.Status = uint32(failed.ExitCode())
	}
	_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(status))
	_ = channel.Close()
}

// url is the URL of a repository in a folder.
func (s *sshServer) url(dir string) string { return "ssh://git@" + s.address + dir }

// line is what known_hosts says about the server.
func (s *sshServer) line(key ssh.PublicKey) string {
	return knownLine(key, knownhosts.Normalize(s.address))
}

func localDial() sshremote.Dial {
	return guard.AddressPolicy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}.Dialer(guard.Access{})
}

// options are those that reach the server.
func (s *sshServer) options(t *testing.T, dir string, known string) Options {
	t.Helper()
	return Options{
		URL: s.url(dir), Dial: localDial(), SSH: &sshremote.Options{Identity: newKey(t, "ed25519").pem(t, ""), KnownHosts: []byte(known)},
	}
}

// reach resolves the default branch of something that is no repository, to see whether the server was reached at all.
func reach(t *testing.T, o Options) error {
	t.Helper()
	o.Limits = fetch.DefaultLimits()
	f, err := New(o)
	if err != nil {
		return err
	}
	_, err = f.Resolve(context.Background())
	return err
}

// advertiser is a command that advertises one commit, whatever it is asked.
func advertiser(channel ssh.Channel, _ string) {
	text := advertisement("", someCommit, "refs/heads/main")
	_, _ = channel.Write(bytes.TrimPrefix([]byte(text), []byte(line("# service=git-upload-pack\n")+"0000")))
	_, _ = io.Copy(io.Discard, channel)
	exit(channel, nil)
}
