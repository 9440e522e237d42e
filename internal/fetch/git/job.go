// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/git/pack"
)

// job is the fetch of one repository with its submodules, which share its limits.
type job struct {
	listed  int   // entries of folders that were read
	packed  int64 // bytes that were transferred
	modules int

	verifiedBy string
	signature  string
}

// run writes the files of a commit, or of one folder of it, and then those of its submodules. Of each repository the pack
// is gone before the next one comes.
func (j *job) run(ctx context.Context, f *Fetcher, t target, tree *fetch.Tree, nesting int) error {
	found, err := j.one(ctx, f, t, tree)
	if err != nil {
		return err
	}
	if j.modules += len(found); j.modules > maxSubmodules {
		return fetch.Errorf(fetch.LimitExceeded, "the repository has more than %d submodules", maxSubmodules)
	}
	if len(found) > 0 && nesting == maxNesting {
		return fetch.Errorf(fetch.LimitExceeded, "the repository has submodules in submodules more than %d deep", maxNesting)
	}
	for _, module := range found {
		if err := j.submodule(ctx, f, module, tree, nesting+1); err != nil {
			return fetch.Describe(err, "submodule %s", fetch.Quote(module.place))
		}
	}
	return nil
}

// submodule fetches one submodule into its place.
func (j *job) submodule(ctx context.Context, parent *Fetcher, module submodule, tree *fetch.Tree, nesting int) error {
	place, err := resolveModule(parent.url, module.url)
	if err != nil {
		return fetch.Describe(err, "its URL in %s", modulesFile)
	}
	own := *parent
	own.url = place
	own.directory = ""
	own.verify = nil // the parent's tree, which was verified, says which commit
	sub, err := tree.Sub(module.place)
	if err != nil {
		return err
	}
	err = j.run(ctx, &own, target{commit: module.commit}, sub, nesting)
	if fetch.ReasonOf(err) == fetch.Moved {
		err = fetch.Errorf(fetch.NotFound, "the server gives the commit %s away only when a branch or tag points at it: "+
			"have it allow uploadpack.allowReachableSHA1InWant", module.commit)
	}
	return fetch.Describe(err, "%s", fetch.DisplayURL(place))
}

// one fetches one repository, and returns the submodules that it has.
func (j *job) one(ctx context.Context, f *Fetcher, t target, tree *fetch.Tree) (found []submodule, err error) {
	scratch, remove, err := tree.Scratch()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	objects, tag, err := j.download(ctx, f, t, scratch)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, objects.Close()) }()
	if f.verify != nil {
		if j.verifiedBy, j.signature, err = f.verify.signers(objects, t, tag); err != nil {
			return nil, err
		}
	}
	return j.checkout(ctx, f, objects, t.commit, tree)
}

// download fetches the pack of one commit without history and indexes it. With the tag that leads to it, it returns which
// object that is.
func (j *job) download(ctx context.Context, f *Fetcher, t target, scratch string) (*pack.File, plumbing.Hash, error) {
	file, err := os.OpenFile(filepath.Join(scratch, "pack"), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, plumbing.ZeroHash, err
	}
	limits := f.limits
	limits.GitPackBytes -= j.packed
	counted := &written{to: file, limit: limits.GitPackBytes}
	asked, err := f.save(ctx, t, counted)
	if err != nil {
		return nil, plumbing.ZeroHash, errors.Join(err, file.Close())
	}
	j.packed += counted.came
	opened, err := pack.Open(ctx, file, scratch, limits)
	return opened, asked, err
}

// checkout writes what the fetcher wants of a commit.
func (j *job) checkout(ctx context.Context, f *Fetcher, objects *pack.File, commit plumbing.Hash, tree *fetch.Tree) ([]submodule, error) {
	root, err := rootOf(objects, commit)
	if err != nil {
		return nil, err
	}
	folder, err := enter(objects, root, f.directory)
	if err != nil {
		return nil, err
	}
	w := &walker{ctx: ctx, pack: objects, tree: tree, listed: &j.listed, most: f.limits.Entries}
	if !f.submodules {
		return nil, w.write(folder)
	}
	w.modules = &modules{pack: objects, root: root, directory: f.directory}
	err = w.write(folder)
	return w.modules.found, err
}
