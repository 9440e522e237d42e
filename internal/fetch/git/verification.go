// SPDX-License-Identifier: Apache-2.0

package git

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/git/pack"
	"github.com/satchel-dev/satchel/internal/fetch/verify/gitsig"
)

// Mode says what must be signed.
type Mode string

// The modes, as in Flux.
const (
	VerifyHEAD       Mode = "HEAD"       // the commit
	VerifyTag        Mode = "Tag"        // the tag that leads to it
	VerifyTagAndHEAD Mode = "TagAndHEAD" // both
)

// Verification is what must be signed, and by whom.
type Verification struct {
	Mode Mode
	Keys gitsig.Keys
	// Observe is told how long it took to verify, and how that ended; may be nil.
	Observe func(took time.Duration, err error)
}

// checkVerification refuses what could never be verified.
func checkVerification(v *Verification, w wanted) error {
	switch {
	case v == nil:
		return nil
	case v.Mode != VerifyHEAD && v.Mode != VerifyTag && v.Mode != VerifyTagAndHEAD:
		return fetch.Errorf(fetch.Refused, "the mode of verification %s is not known: use HEAD, Tag or TagAndHEAD", fetch.Quote(string(v.Mode)))
	case v.Mode != VerifyHEAD && w.tag == "" && w.semver.Empty() && !strings.HasPrefix(w.name, tagPrefix):
		return fetch.Errorf(fetch.Refused, "a tag can be verified only where one is taken: give ref.tag, ref.version or ref.name "+
			"with refs/tags/, or verify with the mode HEAD")
	}
	return nil
}

// target is a commit to fetch. When tag is set, a full name, the commit must be had by it, and the tag is fetched as well.
type target struct {
	commit plumbing.Hash
	tag    string
}

// target returns what to fetch for something that was resolved.
func (f *Fetcher) target(r fetch.Resolved) (target, error) {
	commit, err := commitOf(r.Digest)
	if err != nil || f.verify == nil || f.verify.Mode == VerifyHEAD {
		return target{commit: commit}, err
	}
	tag := tagPrefix + f.want.tag
	switch {
	case !f.want.semver.Empty():
		tag = tagPrefix + r.Reference
	case f.want.name != "":
		tag = f.want.name
	}
	return target{commit, tag}, checkReference(tag)
}

// of returns which tag object leads to the commit.
func (t target) of(refs *references) (plumbing.Hash, error) {
	object, found := refs.named[t.tag]
	commit, _ := refs.commit(t.tag)
	switch {
	case !found || commit != t.commit:
		return plumbing.ZeroHash, moved(t.commit)
	case object == commit:
		return plumbing.ZeroHash, fetch.Errorf(fetch.Unverified, "the tag %s is not verified: it is not signed, "+
			"and no object of its own that could be", fetch.Quote(shortName(t.tag)))
	}
	return object, nil
}

// signature is what is kept of an accepted signature: the objects that were signed, with their signatures in them.
type signature struct {
	Commit []byte `json:"commit,omitempty"`
	// Tag is the object of the tag TagName.
	Tag     []byte `json:"tag,omitempty"`
	TagName string `json:"tagName,omitempty"`
}

// maxKept bounds what is kept of a signature. One that takes more is accepted and not kept.
const maxKept = 384 << 10

// signers verifies what must be signed, over the bytes that the server sent, and returns the signer and the signature.
func (v *Verification) signers(p *pack.File, t target, tag plumbing.Hash) (who, kept string, err error) {
	if v.Observe != nil {
		began := time.Now()
		defer func() { v.Observe(time.Since(began), err) }()
	}
	s := signature{}
	if v.Mode != VerifyHEAD {
		s.TagName = strings.TrimPrefix(t.tag, tagPrefix)
		if s.Tag, err = p.Get(tag, plumbing.TagObject); err != nil {
			return "", "", err
		}
	}
	if v.Mode != VerifyTag {
		if s.Commit, err = p.Get(t.commit, plumbing.CommitObject); err != nil {
			return "", "", err
		}
	}
	if who, err = v.judge(s, t.commit); err != nil {
		return "", "", err
	}
	encoded, err := json.Marshal(s)
	if len(encoded) > maxKept {
		encoded = nil
	}
	return who, string(encoded), err
}

// judge verifies the objects that must be signed.
func (v *Verification) judge(s signature, commit plumbing.Hash) (string, error) {
	var by []string
	if v.Mode != VerifyHEAD {
		who, err := v.Keys.Tag(s.Tag, s.TagName, commit.String(), time.Now())
		if err != nil {
			return "", err
		}
		by = append(by, "tag: "+who)
	}
	if v.Mode != VerifyTag {
		who, err := v.Keys.Commit(s.Commit, time.Now())
		if err != nil {
			return "", err
		}
		by = append(by, "commit: "+who)
	}
	return strings.Join(by, "; "), nil
}

// VerifyKept tells who signed the commit with a digest, by what was kept when it was fetched (fetch.Resolved.Signature),
// without asking the server.
func (v *Verification) VerifyKept(digest, kept string) (by string, err error) {
	var s signature
	if err := json.Unmarshal([]byte(kept), &s); err != nil {
		return "", fetch.Errorf(fetch.Unverified, "the signature that was kept cannot be read")
	}
	commit, err := commitOf(digest)
	if err != nil {
		return "", err
	}
	if v.Mode != VerifyTag && plumbing.ComputeHash(plumbing.CommitObject, s.Commit) != commit {
		return "", fetch.Errorf(fetch.Unverified, "the signature that was kept is of another commit")
	}
	return v.judge(s, commit)
}
