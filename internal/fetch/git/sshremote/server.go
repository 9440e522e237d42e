// SPDX-License-Identifier: Apache-2.0

package sshremote

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/url"

	"golang.org/x/crypto/ssh"

	"github.com/satchel-dev/satchel/internal/endpoint"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/git/sshkey"
)

// Options is what an ssh URL needs. Nothing else is used: no agent, no file, no environment.
type Options struct {
	// Identity is a private key in PEM, Passphrase what it is encrypted with, "" when it is not.
	Identity, Passphrase []byte
	// KnownHosts are the keys of servers, in OpenSSH's format.
	KnownHosts []byte
}

// Dial connects to an address.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Server is how a server is reached over SSH, and as which user.
type Server struct {
	dial     Dial
	address  string
	user     string
	identity ssh.Signer
	known    *knownHosts
}

// NewServer checks what SSH needs before anything is connected to.
func NewServer(u *url.URL, o Options, dial Dial) (*Server, error) {
	server, err := endpoint.OfURL(u)
	if err != nil {
		return nil, fetch.Errorf(fetch.Refused, "the URL has no valid host or port: %w", err)
	}
	g := &Server{dial: dial, address: server.String(), user: u.User.Username()}
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
