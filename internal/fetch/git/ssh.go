// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/git/sshkey"
)

const (
	// greetTimeout bounds all that comes before the list of references.
	greetTimeout = 30 * time.Second
	// maxComplaint bounds what is kept of what a server writes beside its answer.
	maxComplaint = 1 << 10
)

// SSH is what an ssh URL needs. Nothing else is used: no agent, no file, no environment.
type SSH struct {
	// Identity is a private key in PEM, Passphrase what it is encrypted with, "" when it is not.
	Identity, Passphrase []byte
	// KnownHosts are the keys of servers, in OpenSSH's format.
	KnownHosts []byte
}

// Dial connects to an address.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// gate is how a server is reached over SSH, and as which user.
type gate struct {
	dial     Dial
	address  string
	user     string
	identity ssh.Signer
	known    *knownHosts
}

// newGate checks what SSH needs before anything is connected to.
func newGate(u *url.URL, o SSH, dial Dial) (*gate, error) {
	port := u.Port()
	if port == "" {
		port = defaultSSHPort
	}
	g := &gate{dial: dial, address: net.JoinHostPort(u.Hostname(), port), user: u.User.Username()}
	var err error
	if g.identity, err = parseIdentity(o.Identity, o.Passphrase); err != nil {
		return nil, err
	}
	if g.known, err = parseKnownHosts(o.KnownHosts); err != nil {
		return nil, err
	}
	lines := g.known.of(g.address)
	if len(lines) == 0 {
		return nil, fetch.Errorf(fetch.Refused, "known_hosts has no key of %s, and a server's key is never trusted at first sight: "+
			"add what ssh-keyscan prints for it, after comparing it with what its owner publishes", hostNames(g.address)[0])
	}
	if len(g.known.algorithms(g.address)) == 0 {
		return nil, fetch.Errorf(fetch.Refused, "known_hosts, the only key of %s: %w", hostNames(g.address)[0], sshkey.Check(lines[0].key))
	}
	return g, nil
}

// parseIdentity reads a private key. The error never shows any of it.
func parseIdentity(text, passphrase []byte) (ssh.Signer, error) {
	signer, err := parsePrivate(text, passphrase)
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		return nil, fetch.Errorf(fetch.Refused, "the identity is missing: SSH needs a private key")
	case errors.As(err, new(*ssh.PassphraseMissingError)):
		return nil, fetch.Errorf(fetch.Refused, "the identity is encrypted, and there is no password for it")
	case err != nil:
		return nil, fetch.Errorf(fetch.Refused, "the identity is no private key in PEM, or its password is wrong")
	}
	if err := sshkey.Check(signer.PublicKey()); err != nil {
		return nil, fetch.Errorf(fetch.Refused, "the identity: %w", err)
	}
	algorithms, ok := signer.(ssh.AlgorithmSigner)
	if !ok {
		return nil, fetch.Errorf(fetch.Refused, "the identity is of a type that is not supported")
	}
	// Without this an RSA key would sign with SHA-1 where the server does not say what it accepts.
	return ssh.NewSignerWithAlgorithms(algorithms, sshkey.Algorithms(signer.PublicKey().Type()))
}

func parsePrivate(text, passphrase []byte) (ssh.Signer, error) {
	signer, err := ssh.ParsePrivateKey(text)
	if errors.As(err, new(*ssh.PassphraseMissingError)) && len(passphrase) > 0 {
		return ssh.ParsePrivateKeyWithPassphrase(text, passphrase)
	}
	return signer, err
}

// shell is a repository behind SSH: one connection that runs git-upload-pack.
type shell struct {
	*gate
	command string

	ctx     context.Context
	cancel  context.CancelCauseFunc
	conn    net.Conn
	client  *ssh.Client
	session *ssh.Session
	input   io.Writer
	output  io.Reader
	paced   io.ReadCloser
	said    complaint
	started bool // something of an answer came
}

// newShell returns a repository to which nothing was sent yet.
func newShell(g *gate, path string) *shell {
	if strings.HasPrefix(path, "/~") {
		path = path[1:] // below a home directory, as in git itself
	}
	return &shell{gate: g, command: service + " " + quoted(path)}
}

// quoted makes a text one word of a POSIX shell, in which nothing is expanded. Git quotes "!" as well, for csh.
func quoted(text string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(text) + "'"
}

// list implements remote. The newer version is offered always; a server that does not know it, or takes no environment, says
// nothing to that.
func (s *shell) list(ctx context.Context, _ bool) (io.ReadCloser, error) {
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	conn, err := s.dial(s.ctx, "tcp", s.address)
	if err != nil {
		return nil, s.explain(err)
	}
	s.conn = conn
	context.AfterFunc(s.ctx, func() { _ = conn.Close() })
	err = conn.SetDeadline(time.Now().Add(greetTimeout))
	if err == nil {
		err = s.greet()
	}
	if err == nil {
		err = s.run()
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil {
		return nil, s.explain(err)
	}
	s.paced = fetch.Paced(s.ctx, s.cancel, io.NopCloser(s))
	return io.NopCloser(s.paced), nil
}

// greet agrees with the server on keys, and logs in.
func (s *shell) greet() error {
	all := ssh.SupportedAlgorithms()
	conn, channels, requests, err := ssh.NewClientConn(s.conn, s.address, &ssh.ClientConfig{
		Config:            ssh.Config{KeyExchanges: all.KeyExchanges, Ciphers: all.Ciphers, MACs: all.MACs},
		User:              s.user,
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(s.identity)},
		HostKeyAlgorithms: s.known.algorithms(s.address),
		HostKeyCallback:   s.known.check,
		ClientVersion:     "SSH-2.0-satchel",
	})
	if err == nil {
		s.client = ssh.NewClient(conn, channels, requests)
	}
	return err
}

// run starts the program.
func (s *shell) run() error {
	session, err := s.client.NewSession()
	if err != nil {
		return err
	}
	s.session = session
	if s.input, err = session.StdinPipe(); err != nil {
		return err
	}
	if s.output, err = session.StdoutPipe(); err != nil {
		return err
	}
	session.Stderr = &s.said
	offer := struct{ Name, Value string }{"GIT_PROTOCOL", versionTwo}
	if _, err := session.SendRequest("env", false, ssh.Marshal(offer)); err != nil {
		return err
	}
	return session.Start(s.command)
}

// explain gives the failure of a connection its reason.
func (s *shell) explain(err error) error {
	var (
		ours  *fetch.Error
		agree *ssh.AlgorithmNegotiationError
	)
	switch {
	case errors.As(err, &ours):
		return ours
	case s.ctx.Err() != nil:
		return fetch.NetworkError(context.Cause(s.ctx))
	case errors.As(err, &agree) && agree.What == "host key":
		return fetch.Errorf(fetch.Unreachable, "the server has no host key of the types that known_hosts lists for it")
	case errors.As(err, &agree):
		return fetch.Errorf(fetch.Unreachable, "the server supports no %s that is safe", agree.What)
	case notAccepted(err):
		return fetch.Errorf(fetch.Unauthorized, "the server does not accept the key %s for the user %s",
			sshkey.Show(s.identity.PublicKey()), fetch.Quote(s.user))
	case s.session != nil:
		return fetch.Errorf(fetch.NotFound, "the server does not run %s", service)
	}
	return fetch.NetworkError(err)
}

// notAccepted tells whether the login failed, for which the library has no type.
func notAccepted(err error) bool {
	return strings.Contains(err.Error(), "unable to authenticate") ||
		strings.Contains(err.Error(), "no common public key signature algorithm")
}

// Read implements io.Reader on what the program writes. Its end is an error when the program failed.
func (s *shell) Read(p []byte) (int, error) {
	n, err := s.output.Read(p)
	s.started = s.started || n > 0
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	failed := s.session.Wait()
	switch {
	case s.ctx.Err() != nil:
		return n, fetch.NetworkError(context.Cause(s.ctx))
	case failed == nil:
		return n, io.EOF
	}
	reason := fetch.Unreachable
	if !s.started {
		reason = fetch.NotFound
	}
	return n, fetch.Errorf(reason, "%s failed on the server: %s", service, fetch.Quote(s.said.String()))
}

// ask implements remote.
func (s *shell) ask(_ context.Context, request []byte, _ bool) (io.ReadCloser, error) {
	if _, err := s.input.Write(request); err != nil {
		return nil, s.explain(err)
	}
	return io.NopCloser(s.paced), nil
}

// Close implements remote. A program that still waits for a request is told that none comes.
func (s *shell) Close() error {
	if s.paced != nil && s.conn.SetDeadline(time.Now().Add(time.Second)) == nil {
		_, _ = s.input.Write(appendMark(nil, flushPacket))
	}
	if s.cancel != nil {
		s.cancel(nil)
	}
	if s.client != nil {
		_ = s.client.Close() // it is closed already when the context ended
		_ = s.client.Wait()
	}
	return nil
}

// complaint keeps the beginning of what a program writes beside its answer.
type complaint struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

// Write implements io.Writer.
func (c *complaint) Write(p []byte) (int, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.text.Write(p[:min(len(p), maxComplaint-c.text.Len())])
	return len(p), nil
}

// String returns it in one line.
func (c *complaint) String() string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return strings.Join(strings.Fields(c.text.String()), " ")
}
