// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/volume"
	"github.com/satchel-dev/satchel/internal/fetch"
)

// Put stores the files of tree and returns what to advertise; reference is the tag or branch for people, or "". The same
// content for the same owner is stored once: Put then returns what is there, with the time at which it was stored. What is
// there and damaged is replaced. A *StorageError says that the volume is the reason, a *QuotaError that the namespace has
// no room left; nothing is left behind then, and other artifacts are unaffected.
func (s *Store) Put(ctx context.Context, o artifact.Owner, reference string, tree fs.FS) (meta.Artifact, error) {
	return s.putWithinQuota(ctx, o, reference, "", tree)
}

// PutExactly is Put of files with the expected digest of their canonical tar, "sha256:<hex>". If the digest differs, the
// error has the reason fetch.DigestMismatch, and nothing is stored.
func (s *Store) PutExactly(ctx context.Context, o artifact.Owner, digest string, tree fs.FS) (meta.Artifact, error) {
	identity, err := artifact.ParseDigest(digest)
	if err != nil {
		return meta.Artifact{}, fetch.Errorf(fetch.Refused, "artifact of %s: %w", o, err)
	}
	return s.putWithinQuota(ctx, o, "", identity, tree)
}

// Find returns what to advertise of content that Put or PutExactly stored for the owner, by the digest of its canonical tar.
// The reason of the error is fetch.NotFound when it is not there, fetch.DigestMismatch when it is damaged: put it again.
func (s *Store) Find(ctx context.Context, o artifact.Owner, digest string) (meta.Artifact, error) {
	identity, err := artifact.ParseDigest(digest)
	if err == nil {
		err = o.Validate()
	}
	if err != nil {
		return meta.Artifact{}, fetch.Errorf(fetch.Refused, "artifact of %s: %w", o, err)
	}
	found, err := s.current(ctx, o.File(identity))
	if err != nil {
		return meta.Artifact{}, fetch.Describe(err, "artifact of %s", o)
	}
	return s.advertise(o.File(identity), artifact.FormatRevision("", identity), found), nil
}

// putWithinQuota is put, after which what was lost on disk no longer counts, and one more put if that made room. want is the
// identity that the content must have; "" for any.
func (s *Store) putWithinQuota(ctx context.Context, o artifact.Owner, reference, want string, tree fs.FS) (meta.Artifact, error) {
	a, err := s.put(ctx, o, reference, want, tree)
	if errors.Is(err, errQuota) && s.recount(o.Namespace) {
		a, err = s.put(ctx, o, reference, want, tree)
	}
	if errors.Is(err, errQuota) {
		err = s.usage.refuse(o)
	}
	if err != nil {
		return meta.Artifact{}, fmt.Errorf("storing the artifact of %s: %w", o, err)
	}
	return a, nil
}

func (s *Store) put(ctx context.Context, o artifact.Owner, reference, want string, tree fs.FS) (meta.Artifact, error) {
	if err := o.Validate(); err != nil {
		return meta.Artifact{}, err
	}
	unlock, err := s.owners.Lock(ctx, o.Folder())
	if err != nil {
		return meta.Artifact{}, err
	}
	defer unlock()
	root, err := volume.OpenFolder(s.dir)
	if err != nil {
		return meta.Artifact{}, err
	}
	defer root.Close() //nolint:errcheck // all that was written is synced by then
	if err := volume.MakeFolders(s.files, root, o.Folder()); err != nil {
		return meta.Artifact{}, err
	}
	archive, err := volume.NewDraft(s.files, root, o.Folder())
	if err != nil {
		return meta.Artifact{}, err
	}
	defer archive.Discard()
	packed, err := s.packer.Pack(ctx, s.withinQuota(o, archive), tree)
	if err != nil {
		return meta.Artifact{}, err
	}
	if want != "" && packed.Identity != want {
		return meta.Artifact{}, fetch.Errorf(fetch.DigestMismatch, "its content has digest %s%s where %s%s is expected",
			artifact.DigestPrefix, packed.Identity, artifact.DigestPrefix, want)
	}
	file := o.File(packed.Identity)
	if err := s.settle(ctx, root, archive, file, packed); err != nil {
		return meta.Artifact{}, err
	}
	return s.describe(ctx, file, artifact.FormatRevision(reference, packed.Identity))
}

// settle publishes the draft as file, unless a good file is there already.
func (s *Store) settle(ctx context.Context, root *os.Root, archive *volume.Draft, file string, packed artifact.Sums) (err error) {
	if _, err := s.current(ctx, file); err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	end, ok := s.usage.charge(file, packed.Size)
	if !ok {
		return errQuota
	}
	defer func() { end(err) }()
	if err := removeIrregular(root, file, file+artifact.ChecksumSuffix); err != nil {
		return err
	}
	if err := volume.WriteDurably(s.files, root, file+artifact.ChecksumSuffix, checksum{packed.Digest, path.Base(file)}.encode()); err != nil {
		return err
	}
	return archive.Publish(path.Base(file))
}

// removeIrregular clears away folders and links that took the place of a file.
func removeIrregular(root *os.Root, names ...string) error {
	for _, name := range names {
		info, err := root.Lstat(name)
		if err == nil && !info.Mode().IsRegular() {
			err = root.RemoveAll(name)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return volume.WrapError("clearing away what took the place of an artifact", err)
		}
	}
	return nil
}

// describe reads back what was stored, and says how to advertise it.
func (s *Store) describe(ctx context.Context, file, revision string) (meta.Artifact, error) {
	found, err := s.current(ctx, file)
	if err != nil {
		if fetch.ReasonOf(err) != "" {
			err = errors.New(err.Error()) // the content is fine, only the volume can be at fault: hide the reason
		}
		return meta.Artifact{}, volume.WrapError("reading back what was stored", err)
	}
	return s.advertise(file, revision, found), nil
}

// advertise says how to advertise what a check found, which Collect keeps for a while from now on.
func (s *Store) advertise(file, revision string, found record) meta.Artifact {
	s.touch(file)
	size := found.stamp.Size
	return meta.Artifact{
		Path:           file,
		URL:            s.urlOf(file),
		Revision:       revision,
		Digest:         artifact.DigestPrefix + found.digest,
		Size:           &size,
		LastUpdateTime: metav1.NewTime(found.stamp.Modified.Truncate(time.Second)),
	}
}

// touch notes that a file is about to be advertised, so that Collect counts its age from now.
func (s *Store) touch(file string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used.set(file, s.now())
}
