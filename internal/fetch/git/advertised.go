// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"

	"github.com/satchel-dev/satchel/internal/fetch"
)

const (
	// refBytes is what one advertised reference, with the commit of its tag, may take on the wire, on average. With the
	// default limit of references that is 20 MB.
	refBytes = 200
	// refsOverhead is for what a server says beside its references: what it is capable of.
	refsOverhead = 64 << 10
	// peeledSuffix marks the line that tells the commit of the tag in the line before it.
	peeledSuffix = "^{}"
)

// needed tells whether the session has a use for a reference, by its full name, without peeledSuffix, and its hash.
type needed func(full string, hash []byte) bool

// needCommit is for asking for a commit, which needs a reference that leads to it.
func needCommit(commit plumbing.Hash) needed {
	text := []byte(commit.String())
	return func(_ string, hash []byte) bool { return bytes.EqualFold(hash, text) }
}

// references is a server's list of references without those that nobody needs, so that they are not held. It counts them
// while they come.
type references struct {
	io.Closer
	lines   *pktline.Scanner
	need    needed
	traffic *traffic

	out      bytes.Buffer
	begun    bool // the first reference, whose line carries the capabilities, is through
	count    int
	most     int
	previous []byte // the last line that was left out
}

func newReferences(body io.ReadCloser, need needed, most int, t *traffic) *references {
	return &references{Closer: body, lines: pktline.NewScanner(body), need: need, most: most, traffic: t}
}

// Read implements io.Reader.
func (r *references) Read(p []byte) (int, error) {
	for r.out.Len() == 0 {
		if !r.lines.Scan() {
			if err := r.lines.Err(); err != nil {
				return 0, err
			}
			return 0, io.EOF
		}
		if err := r.line(r.lines.Bytes()); err != nil {
			return 0, r.traffic.fail(err)
		}
	}
	return r.out.Read(p)
}

// line passes one line on, or leaves it out.
func (r *references) line(line []byte) error {
	hash, name, isReference := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
	if len(line) == 0 || line[0] == '#' || !isReference {
		return r.pass(line) // a mark of the protocol, or nothing that go-git would take
	}
	name, _, _ = bytes.Cut(name, []byte{0})
	full, isPeeled := bytes.CutSuffix(name, []byte(peeledSuffix))
	if !isPeeled && string(full) != "HEAD" {
		r.count++
	}
	if r.count > r.most {
		return fetch.Errorf(fetch.LimitExceeded, "the repository has more than %d references", r.most)
	}
	if !r.begun {
		r.begun = true
		return r.pass(line)
	}
	if !r.need(string(full), hash) {
		r.previous = append(r.previous[:0], line...)
		return nil
	}
	if isPeeled && bytes.HasSuffix(bytes.TrimSuffix(r.previous, []byte("\n")), append([]byte(" "), full...)) {
		if err := r.pass(r.previous); err != nil { // the tag itself
			return err
		}
	}
	return r.pass(line)
}

func (r *references) pass(line []byte) error {
	encoder := pktline.NewEncoder(&r.out)
	if len(line) == 0 {
		return encoder.Flush()
	}
	return encoder.Encode(line)
}
