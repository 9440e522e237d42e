// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/git/protocol"
)

const (
	// refBytes is what one advertised reference, with the commit of its tag, may take on the wire, on average. With the
	// default limit of references that is 20 MB.
	refBytes = 200
	// refsOverhead is for what a server says beside its references: what it is capable of.
	refsOverhead = 64 << 10
	// patience is how long a list of references may get before only a part of it is asked for.
	patience = 256 << 10
)

// remote is the program git-upload-pack of one repository, however it is reached.
type remote interface {
	// list starts the program and returns what it says first. It is offered the newer version of the protocol, or not.
	List(ctx context.Context, newer bool) (io.ReadCloser, error)
	// ask sends a request and returns the answer.
	Ask(ctx context.Context, request []byte, newer bool) (io.ReadCloser, error)
	io.Closer
}

// server is a repository that answered.
type server struct {
	remote remote
	limits fetch.Limits
	newer  bool // it speaks version 2 of the protocol, in which it lists references when it is asked to
	able   capabilities
	refs   *references
}

// references asks a server for those of its references that are needed.
//
// In the older version of the protocol it lists them all at once, and one request is enough, but costs 6 MB where there are
// 100,000; in the newer one it takes two requests, and it lists what is asked for. So the newer one is for lists that
// turn out to be long, and for SSH, where both go over one connection.
func (f *Fetcher) references(ctx context.Context, selected func() selection) (*references, error) {
	s := selected()
	c, err := f.connect(ctx, s, f.gate != nil)
	if errors.Is(err, errLong) {
		s = selected()
		c, err = f.connect(ctx, s, true)
	}
	if err != nil {
		return nil, err
	}
	if c.newer {
		err = c.listReferences(ctx, s)
	}
	return c.refs, errors.Join(said(err, fetch.NotFound), fetch.CloseBody(c.remote, err))
}

// connect starts a conversation. In the older version of the protocol the references that are needed are known then.
func (f *Fetcher) connect(ctx context.Context, s selection, newer bool) (*server, error) {
	r, err := f.remote(ctx)
	if err != nil {
		return nil, err
	}
	c := &server{remote: r, limits: f.limits, refs: newReferences()}
	if err := c.begin(ctx, s, newer); err != nil {
		return nil, errors.Join(said(err, fetch.NotFound), c.remote.Close())
	}
	return c, nil
}

func (c *server) begin(ctx context.Context, s selection, newer bool) error {
	body, err := c.remote.List(ctx, newer)
	if err != nil {
		return err
	}
	counted := c.counted(body)
	lines := protocol.NewReader(counted)
	first, err := firstLine(lines)
	switch {
	case err != nil:
	case string(first) == newerVersion:
		c.newer = true
		c.able, err = readCapabilities(lines)
	default:
		long := func() bool { return !newer && counted.came > patience }
		c.able, err = (&listing{selection: s, most: c.limits.GitRefs, found: c.refs, long: long}).read(first, lines)
	}
	return errors.Join(err, fetch.CloseBody(body, err))
}

// counted bounds what a list of references may take.
func (c *server) counted(body io.Reader) *metered {
	return &metered{Reader: body, limit: int64(c.limits.GitRefs)*refBytes + refsOverhead}
}

// save writes the pack of one commit to a file, and returns which object it was had by.
func (f *Fetcher) save(ctx context.Context, t target, file *written) (asked plumbing.Hash, err error) {
	selected := selectCommit(t.commit)
	if t.tag != "" {
		selected = selectName(t.tag)
	}
	c, err := f.connect(ctx, selected, true)
	if err != nil {
		return asked, err
	}
	defer func() { err = errors.Join(err, fetch.CloseBody(c.remote, err)) }()
	asked, sure, err := c.lookUp(ctx, t)
	if err != nil {
		return asked, said(err, fetch.NotFound)
	}
	err = c.fetch(ctx, asked, file)
	if !sure && errors.As(err, new(*protocol.RefusalError)) {
		return asked, moved(t.commit)
	}
	return asked, said(err, fetch.Unreachable)
}

// lookUp returns what to ask for to get a target, and whether the server must have it: it gives away what it lists; what it
// does not, only when it says so or, in the newer version of the protocol, when it has it.
func (c *server) lookUp(ctx context.Context, t target) (want plumbing.Hash, sure bool, err error) {
	if t.tag != "" {
		if c.newer {
			err = c.listReferences(ctx, selectName(t.tag))
		}
		if err == nil {
			want, err = t.of(c.refs)
		}
		return want, true, err
	}
	if c.newer {
		return t.commit, false, nil
	}
	want, sure = c.refs.leading(t.commit)
	if !sure && !c.able.has("allow-reachable-sha1-in-want") && !c.able.has("allow-any-sha1-in-want") {
		err = moved(t.commit)
	}
	return want, sure, err
}

// fetch writes the pack of one object, and of what it leads to, to a file.
func (c *server) fetch(ctx context.Context, want plumbing.Hash, file *written) error {
	request, find := c.request(want), c.findPack
	if c.newer {
		request, find = c.newerRequest(want), findNewerPack
	}
	body, err := c.remote.Ask(ctx, request, c.newer)
	if err != nil {
		return err
	}
	counted := &metered{Reader: body, limit: file.limit}
	pack, err := find(protocol.NewReader(counted))
	if err == nil {
		_, err = io.Copy(file.to, pack)
	}
	file.came = counted.came
	return errors.Join(err, fetch.CloseBody(body, err))
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
	if errors.As(err, new(*protocol.RefusalError)) {
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
		line.WriteString(" agent=" + protocol.Agent)
	}
	request := protocol.AppendPacket(nil, "%s\n", line.String())
	if c.able.has("shallow") {
		request = protocol.AppendPacket(request, "deepen 1\n")
	}
	return protocol.AppendPacket(protocol.AppendMark(request, protocol.Flush), "done\n")
}

// multiplexed returns how the pack shares the answer with what the server says beside it.
func (c *server) multiplexed() string {
	if c.able.has("side-band-64k") {
		return "side-band-64k"
	}
	return "side-band"
}

// findPack returns the pack in the answer to a request.
func (c *server) findPack(lines *protocol.Reader) (io.Reader, error) {
	for more := c.able.has("shallow"); more; { // where the history is cut
		var err error
		if _, more, err = lines.Text(); err != nil {
			return nil, err
		}
	}
	if c.able.has(c.multiplexed()) {
		return &protocol.Channel{Lines: lines}, nil
	}
	line, _, err := lines.Text()
	if err == nil && !protocol.Acknowledges(line) {
		err = protocol.NotGit("it has the line %s", fetch.Quote(string(line)))
	}
	return lines.Reader, err
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
