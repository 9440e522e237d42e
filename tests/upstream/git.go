// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/fluxcd/pkg/gittestserver"
	"github.com/go-git/go-billy/v5/osfs"
	gogit "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"golang.org/x/crypto/ssh"
)

// Git is a smart-HTTP Git server with one repository with the default branch main.
type Git struct {
	server *gittestserver.GitServer
	repo   *gogit.Repository
}

// repository is the path of the only repository.
const repository = "fleet.git"

// NewGit starts a Git server on loopback. Git itself must be installed.
func NewGit() (*Git, error) {
	server, err := gittestserver.NewTempGitServer()
	if err != nil {
		return nil, fmt.Errorf("preparing the Git server: %w", err)
	}
	bare := filepath.Join(server.Root(), repository)
	repo, err := gogit.PlainInitWithOptions(bare, &gogit.PlainInitOptions{
		Bare: true, InitOptions: gogit.InitOptions{DefaultBranch: plumbing.NewBranchReferenceName("main")},
	})
	if err != nil {
		return nil, fmt.Errorf("creating the repository: %w", err)
	}
	config, err := repo.Config()
	if err != nil {
		return nil, fmt.Errorf("reading the repository's configuration: %w", err)
	}
	config.Raw.Section("uploadpack").SetOption("allowAnySHA1InWant", "true")
	if err := repo.SetConfig(config); err != nil {
		return nil, fmt.Errorf("configuring the repository: %w", err)
	}
	if err := server.StartHTTP(); err != nil {
		return nil, fmt.Errorf("starting the Git server: %w", err)
	}
	return &Git{server: server, repo: repo}, nil
}

// URL is where the repository is cloned from.
func (g *Git) URL() string { return g.server.HTTPAddress() + "/" + repository }

// Close stops the server and removes the repository.
func (g *Git) Close() error {
	g.server.StopHTTP()
	return os.RemoveAll(g.server.Root())
}

// ServeSSH serves the repository over SSH too, to any key, until stop is called. It
// returns the repository's URL there and the server's line of known_hosts.
func (g *Git) ServeSSH() (url, knownHosts string, stop func(), err error) {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return "", "", nil, err
	}
	host, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return "", "", nil, err
	}
	keys, err := os.MkdirTemp("", "keys-*")
	if err != nil {
		return "", "", nil, err
	}
	config := &ssh.ServerConfig{}
	config.AddHostKey(host)
	server := gittestserver.NewGitServer(g.server.Root()).KeyDir(keys).Auth("", "")
	server.WithSSHConfig(config)
	if err := server.ListenSSH(); err != nil {
		return "", "", nil, errors.Join(err, os.RemoveAll(keys))
	}
	ended := make(chan struct{})
	go func() { _ = server.StartSSH(); close(ended) }()
	address := strings.TrimPrefix(server.SSHAddress(), "ssh://git@")
	line := "[" + strings.Replace(address, ":", "]:", 1) + " " + string(ssh.MarshalAuthorizedKey(host.PublicKey()))
	return server.SSHAddress() + "/" + repository, line, func() {
		_ = server.StopSSH()
		<-ended
		_ = os.RemoveAll(keys)
	}, nil
}

// Commit makes a tree the content of main, and returns the commit's hash.
func (g *Git) Commit(message string, files fs.FS) (string, error) {
	return g.CommitSigned(message, files, nil)
}

// CommitSigned is Commit with a PGP signature; nil for none.
func (g *Git) CommitSigned(message string, files fs.FS, key *openpgp.Entity) (string, error) {
	dir, err := os.MkdirTemp("", "commit-*")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.CopyFS(dir, files); err != nil {
		return "", fmt.Errorf("writing the files: %w", err)
	}
	work, err := gogit.Open(g.repo.Storer, osfs.New(dir))
	if err != nil {
		return "", fmt.Errorf("opening a work tree: %w", err)
	}
	tree, err := work.Worktree()
	if err != nil {
		return "", fmt.Errorf("opening a work tree: %w", err)
	}
	if err := tree.AddWithOptions(&gogit.AddOptions{All: true}); err != nil {
		return "", fmt.Errorf("adding the files: %w", err)
	}
	author := &object.Signature{Name: "Satchel", Email: "satchel@example.org", When: time.Now()}
	hash, err := tree.Commit(message, &gogit.CommitOptions{Author: author, AllowEmptyCommits: true, SignKey: key})
	if err != nil {
		return "", fmt.Errorf("committing: %w", err)
	}
	return hash.String(), nil
}

// Tag points a tag at a commit.
func (g *Git) Tag(tag, commit string) error {
	return g.Move(plumbing.NewTagReferenceName(tag).String(), commit)
}

// Move points a reference, such as refs/heads/main, at a commit, as a forced push does.
func (g *Git) Move(reference, commit string) error {
	return g.repo.Storer.SetReference(plumbing.NewHashReference(plumbing.ReferenceName(reference), plumbing.NewHash(commit)))
}

// Delete removes a reference.
func (g *Git) Delete(reference string) error {
	return g.repo.Storer.RemoveReference(plumbing.ReferenceName(reference))
}
