// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/satchel-dev/satchel/internal/fetch"
)

const (
	// refBytes is what one advertised reference, with the commit of its tag, may take on the wire, on average. With the
	// default limit of references that is 20 MB.
	refBytes = 200
	// refsOverhead is for what a server says beside its references: what it is capable of.
	refsOverhead = 64 << 10
	// agent is what servers are told about who asks; some serve Git only to names like this.
	agent = "git/2.40.0-satchel"
)

// remote is the program git-upload-pack of one repository, however it is reached.
type remote interface {
	// list starts the program and returns what it says first: its references.
	list(ctx context.Context) (io.ReadCloser, error)
	// ask sends a request and returns the answer.
	ask(ctx context.Context, request []byte) (io.ReadCloser, error)
	io.Closer
}

// server is a repository that answered with its references.
type server struct {
	remote remote
	limits fetch.Limits
	able   capabilities
	refs   *references
}

// connect asks a server for its references, of which it keeps those that are needed.
func (f *Fetcher) connect(ctx context.Context, s selection) (*server, error) {
	r, err := f.remote(ctx)
	if err != nil {
		return nil, err
	}
	c := &server{remote: r, limits: f.limits, refs: newReferences()}
	if err := c.list(ctx, s); err != nil {
		return nil, errors.Join(said(err, fetch.NotFound), c.remote.Close())
	}
	return c, nil
}

func (c *server) list(ctx context.Context, s selection) error {
	body, err := c.remote.list(ctx)
	if err != nil {
		return err
	}
	lines := newPackets(&metered{Reader: body, limit: int64(c.limits.GitRefs)*refBytes + refsOverhead})
	first, err := firstLine(lines)
	if err == nil {
		c.able, err = (&listing{selection: s, most: c.limits.GitRefs, found: c.refs}).read(first, lines)
	}
	return errors.Join(err, closed(body, err))
}

// closed closes a body. How it ends does not matter after a failure.
func closed(body io.Closer, failed error) error {
	err := body.Close()
	if failed != nil {
		return nil
	}
	return fetch.NetworkError(err)
}

// save writes the pack of one commit to a file, and returns which object it was had by.
func (f *Fetcher) save(ctx context.Context, t target, file *written) (asked plumbing.Hash, err error) {
	selected := selectCommit(t.commit)
	if t.tag != "" {
		selected = selectName(t.tag)
	}
	c, err := f.connect(ctx, selected)
	if err != nil {
		return asked, err
	}
	defer func() { err = errors.Join(err, closed(c.remote, err)) }()
	want, advertised := c.refs.leading(t.commit)
	if t.tag != "" {
		if want, err = t.of(c.refs); err != nil {
			return asked, err
		}
	}
	if !advertised && !c.able.has("allow-reachable-sha1-in-want") && !c.able.has("allow-any-sha1-in-want") {
		return asked, moved(t.commit)
	}
	err = c.fetch(ctx, want, file)
	if !advertised && errors.As(err, new(*refusal)) {
		return asked, moved(t.commit)
	}
	return want, said(err, fetch.Unreachable)
}

// fetch writes the pack of one object, and of what it leads to, to a file.
func (c *server) fetch(ctx context.Context, want plumbing.Hash, file *written) error {
	body, err := c.remote.ask(ctx, c.request(want))
	if err != nil {
		return err
	}
	counted := &metered{Reader: body, limit: file.limit}
	err = c.copyPack(file.to, counted)
	file.came = counted.came
	return errors.Join(err, closed(body, err))
}

// written is a file for what a server sends, as much as limit.
type written struct {
	to          io.Writer
	limit, came int64
}

func moved(commit plumbing.Hash) error {
	return fetch.Errorf(fetch.Moved, "the server no longer gives the commit %s away: "+
		"the reference has moved, resolve it again", commit)
}

// said gives what a server says instead of an answer a reason.
func said(err error, reason fetch.Reason) error {
	if errors.As(err, new(*refusal)) {
		return fetch.Errorf(reason, "%w", err)
	}
	return err
}

// request asks for one object and what it leads to, without history.
func (c *server) request(want plumbing.Hash) []byte {
	var line bytes.Buffer
	line.WriteString("want " + want.String())
	for _, name := range []string{c.multiplexed(), "ofs-delta", "no-progress", "shallow"} {
		if c.able.has(name) {
			line.WriteString(" " + name)
		}
	}
	if c.able.has("agent") {
		line.WriteString(" agent=" + agent)
	}
	request := appendPacket(nil, "%s\n", line.String())
	if c.able.has("shallow") {
		request = appendPacket(request, "deepen 1\n")
	}
	return appendPacket(appendMark(request, flushPacket), "done\n")
}

// multiplexed returns how the pack shares the answer with what the server says beside it.
func (c *server) multiplexed() string {
	if c.able.has("side-band-64k") {
		return "side-band-64k"
	}
	return "side-band"
}

// copyPack writes the pack in the answer to a request to a file.
func (c *server) copyPack(file io.Writer, answer io.Reader) error {
	lines := newPackets(answer)
	for more := c.able.has("shallow"); more; { // where the history is cut
		var err error
		if _, more, err = lines.text(); err != nil {
			return err
		}
	}
	if c.able.has(c.multiplexed()) {
		_, err := io.Copy(file, &channel{lines: lines})
		return err
	}
	line, _, err := lines.text()
	if err == nil && !acknowledges(line) {
		err = notGit("it has the line %s", fetch.Quote(string(line)))
	}
	if err == nil {
		_, err = io.Copy(file, lines.reader)
	}
	return err
}

// metered fails the read that goes beyond what may come.
type metered struct {
	io.Reader
	limit int64
	came  int64
}

// Read implements io.Reader.
func (m *metered) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	if m.came += int64(n); m.came > m.limit {
		return 0, fetch.Errorf(fetch.LimitExceeded, "the server sends more than %d bytes", m.limit)
	}
	return n, err
}
