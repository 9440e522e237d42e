// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/volume"
	"github.com/satchel-dev/satchel/internal/fetch"
)

const (
	// trustFor is how long the result of reading a file holds while nothing about the file changes.
	trustFor = time.Hour
	// clockSlack is how long a file must have been unchanged before it is read for the result to hold at all.
	clockSlack = 2 * time.Second
	// readAttempts is how often a file is read that is being replaced at the same time.
	readAttempts = 3
	// maxChecksumBytes bounds a .sha256 file; a sound one has 138 bytes.
	maxChecksumBytes = 512
)

// checksum is the content of a .sha256 file.
type checksum struct{ digest, name string }

func (c checksum) encode() []byte { return []byte(c.digest + "  " + c.name + "\n") }

func parseChecksum(content string) (c checksum, ok bool) {
	line, ended := strings.CutSuffix(content, "\n")
	digest, name, separated := strings.Cut(line, "  ")
	return checksum{digest, name}, ended && separated && artifact.IsHexDigest(digest)
}

// record is what reading a file found: its digest, or why it must not be used.
type record struct {
	stamp   volume.Stamp
	digest  string
	checked time.Time // when the reading began
	err     error
}

// Verify makes sure that the store still has the artifact with the advertised bytes. It is cheap while nothing about the
// file changed since it was read last. The reason of the error is fetch.NotFound when it is gone, fetch.DigestMismatch when
// its bytes are damaged or others than advertised, fetch.Refused when it is none of this owner's: put it again. A
// *StorageError says that this could not be found out.
func (s *Store) Verify(ctx context.Context, o artifact.Owner, a meta.Artifact) error {
	file, err := fileOf(o, a)
	if err != nil {
		return fetch.Errorf(fetch.Refused, "artifact of %s: %w", o, err)
	}
	found, err := s.current(ctx, file)
	if err != nil {
		if fetch.ReasonOf(err) != "" {
			s.damaged.Add(1)
		}
		return fetch.Describe(err, "artifact of %s", o)
	}
	if artifact.DigestPrefix+found.digest != a.Digest || (a.Size != nil && *a.Size != found.stamp.Size) {
		return fetch.Errorf(fetch.DigestMismatch, "artifact of %s: stored are %d bytes with digest %s%s, advertised is %.80s",
			o, found.stamp.Size, artifact.DigestPrefix, found.digest, a.Digest)
	}
	return nil
}

// fileOf returns where the artifact must be if it is the owner's.
func fileOf(o artifact.Owner, a meta.Artifact) (string, error) {
	if err := o.Validate(); err != nil {
		return "", err
	}
	identity, err := artifact.ParseIdentity(a.Revision)
	if err != nil {
		return "", err
	}
	file := o.File(identity)
	if a.Path != file {
		return "", fmt.Errorf("its path is %.300q where %q belongs", a.Path, file)
	}
	return file, nil
}

// current returns the record of a file as it is now.
func (s *Store) current(ctx context.Context, file string) (record, error) {
	opened, found, err := s.openChecked(ctx, file)
	if err != nil {
		return record{}, err
	}
	return found, opened.Close()
}

// openChecked opens a file after it checked that its bytes have the recorded digest. The caller closes it.
func (s *Store) openChecked(ctx context.Context, file string) (*os.File, record, error) {
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return nil, record{}, unusable(err)
	}
	defer root.Close() //nolint:errcheck // only read from
	opened, info, err := volume.OpenRegular(root, file)
	if err != nil {
		return nil, record{}, unusable(err)
	}
	found, err := s.recordOf(ctx, file, volume.StampOf(info))
	if err == nil {
		err = found.err
	}
	if err != nil {
		return nil, record{}, errors.Join(err, opened.Close())
	}
	return opened, found, nil
}

// OpenFile opens the file of an artifact, as Owner.File names it, after it checked that its bytes have the recorded digest,
// which it returns as sha256:<hex>. The reason of the error is that of Verify. The caller closes it.
func (s *Store) OpenFile(ctx context.Context, file string) (opened *os.File, digest string, err error) {
	opened, found, err := s.openChecked(ctx, file)
	if err != nil {
		return nil, "", err
	}
	return opened, artifact.DigestPrefix + found.digest, nil
}

// recordOf returns the record for a file in the state that the stamp identifies, and reads the file where there is none.
func (s *Store) recordOf(ctx context.Context, file string, at volume.Stamp) (record, error) {
	if known, ok := s.known(file, at); ok {
		return known, nil
	}
	for range readAttempts {
		found, err := s.readShared(ctx, file)
		if err != nil || found.stamp == at {
			return found, err
		}
	}
	return record{}, damaged("%w", volume.ErrReplaced)
}

// readShared reads a file once for all who ask at the same time. A result may be of a reading that began before the
// question.
func (s *Store) readShared(ctx context.Context, file string) (record, error) {
	answer := s.reads.DoChan(file, func() (any, error) { return s.read(file) })
	select {
	case result := <-answer:
		found, _ := result.Val.(record)
		return found, result.Err
	case <-ctx.Done():
		return record{}, context.Cause(ctx)
	}
}

// known returns an earlier record that still holds.
func (s *Store) known(file string, at volume.Stamp) (record, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.records.get(file)
	settled := r.checked.Sub(r.stamp.Changed) > clockSlack
	return r, ok && r.stamp == at && settled && s.now().Sub(r.checked) < trustFor
}

// read reads a file and records what it found.
func (s *Store) read(file string) (record, error) {
	s.reading <- struct{}{}
	defer func() { <-s.reading }()
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return record{}, unusable(err)
	}
	defer root.Close() //nolint:errcheck // only read from
	began := s.now()
	recorded, err := readChecksum(root, file)
	if err != nil {
		return record{}, err
	}
	digest, at, err := volume.DigestFile(root, file)
	if err != nil {
		return record{}, unusable(err)
	}
	found := record{stamp: at, digest: digest, checked: began}
	if digest != recorded {
		found.err = damaged("its digest is %s%s where %s%s was stored", artifact.DigestPrefix, digest, artifact.DigestPrefix, recorded)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records.set(file, found)
	return found, nil
}

// readChecksum returns the digest that was recorded for a file.
func readChecksum(root *os.Root, file string) (string, error) {
	opened, _, err := volume.OpenRegular(root, file+artifact.ChecksumSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return "", damaged("its recorded digest is gone")
	}
	if err != nil {
		return "", unusable(err)
	}
	defer opened.Close() //nolint:errcheck // only read from
	content, err := io.ReadAll(io.LimitReader(opened, maxChecksumBytes))
	if err != nil {
		return "", unusable(err)
	}
	c, ok := parseChecksum(string(content))
	if !ok || c.name != path.Base(file) {
		return "", damaged("its recorded digest is damaged")
	}
	return c.digest, nil
}

// damaged is the error for a file with other bytes than the stored ones.
func damaged(format string, args ...any) error {
	return fetch.Errorf(fetch.DigestMismatch, "the stored file is damaged: "+format, args...)
}

// unusable gives a reason to the errors of openRegular and reading.
func unusable(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fetch.Errorf(fetch.NotFound, "the stored file is gone")
	case errors.Is(err, volume.ErrNotRegular), errors.Is(err, volume.ErrNotFolder), errors.Is(err, volume.ErrReplaced):
		return damaged("%w", volume.WithoutPath(err))
	}
	return volume.WrapError("reading", err)
}
