// SPDX-License-Identifier: Apache-2.0

package sshremote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/git/protocol"
	"github.com/satchel-dev/satchel/internal/fetch/git/sshkey"
	"github.com/satchel-dev/satchel/internal/fetch/guard"
)

const (
	// greetTimeout bounds all that comes before the list of references.
	greetTimeout = 30 * time.Second
	// maxComplaint bounds what is kept of what a server writes beside its answer.
	maxComplaint = 1 << 10
)

// Session is a repository behind SSH: one connection that runs git-upload-pack.
type Session struct {
	*Server
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

// NewSession returns a repository to which nothing was sent yet.
func NewSession(g *Server, path string) *Session {
	if strings.HasPrefix(path, "/~") {
		path = path[1:] // below a home directory, as in git itself
	}
	return &Session{Server: g, command: protocol.Service + " " + Quoted(path)}
}

// Quoted makes a text one word of a POSIX shell, in which nothing is expanded. Git quotes "!" as well, for csh.
func Quoted(text string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(text) + "'"
}

// List implements remote. The newer version is offered always; a server that does not know it, or takes no environment, says
// nothing to that.
func (s *Session) List(ctx context.Context, _ bool) (io.ReadCloser, error) {
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
	s.paced = guard.Paced(s.ctx, s.cancel, io.NopCloser(s))
	return io.NopCloser(s.paced), nil
}

// greet agrees with the server on keys, and logs in.
func (s *Session) greet() error {
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
func (s *Session) run() error {
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
	offer := struct{ Name, Value string }{"GIT_PROTOCOL", protocol.VersionTwo}
	if _, err := session.SendRequest("env", false, ssh.Marshal(offer)); err != nil {
		return err
	}
	return session.Start(s.command)
}

// explain gives the failure of a connection its reason.
func (s *Session) explain(err error) error {
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
		return fetch.Errorf(fetch.NotFound, "the server does not run %s", protocol.Service)
	}
	return fetch.NetworkError(err)
}

// notAccepted tells whether the login failed, for which the library has no type.
func notAccepted(err error) bool {
	return strings.Contains(err.Error(), "unable to authenticate") ||
		strings.Contains(err.Error(), "no common public key signature algorithm")
}

// Read implements io.Reader on what the program writes. Its end is an error when the program failed.
func (s *Session) Read(p []byte) (int, error) {
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
	return n, fetch.Errorf(reason, "%s failed on the server: %s", protocol.Service, fetch.Quote(s.said.String()))
}

// Ask implements remote.
func (s *Session) Ask(_ context.Context, request []byte, _ bool) (io.ReadCloser, error) {
	if _, err := s.input.Write(request); err != nil {
		return nil, s.explain(err)
	}
	return io.NopCloser(s.paced), nil
}

// Close implements remote. A program that still waits for a request is told that none comes.
func (s *Session) Close() error {
	if s.paced != nil && s.conn.SetDeadline(time.Now().Add(time.Second)) == nil {
		_, _ = s.input.Write(protocol.AppendMark(nil, protocol.Flush))
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
