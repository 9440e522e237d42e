// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"bytes"
	"errors"
	"io"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// Channels that share an answer, by the first byte of each line (gitprotocol-pack(5)).
const (
	packChannel     = 1
	progressChannel = 2
	failureChannel  = 3
)

// Channel is the pack in an answer, without what the server says beside it.
type Channel struct {
	Lines *Reader
	rest  []byte // of the present line
}

// Read implements io.Reader.
func (c *Channel) Read(p []byte) (int, error) {
	for len(c.rest) == 0 {
		kind, line, err := c.Lines.Next()
		switch {
		case errors.Is(err, io.EOF):
			return 0, Cut(io.ErrUnexpectedEOF)
		case err != nil:
			return 0, err
		case kind == Flush:
			return 0, io.EOF
		}
		if c.rest, err = piece(line); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// piece returns what a line adds to the pack.
func piece(line []byte) ([]byte, error) {
	switch {
	case len(line) == 0 || Acknowledges(line):
		return nil, nil
	case line[0] == packChannel:
		return line[1:], nil
	case line[0] == progressChannel:
		return nil, nil
	case line[0] == failureChannel:
		return nil, fetch.Errorf(fetch.Unreachable, "the server failed: %s", fetch.Quote(string(bytes.TrimSpace(line[1:]))))
	}
	return nil, NotGit("it has the line %s", fetch.Quote(string(line)))
}

// Acknowledges tells whether a line says which commits both sides have. We have none, but some servers say so twice.
func Acknowledges(line []byte) bool {
	return bytes.HasPrefix(line, []byte("NAK")) || bytes.HasPrefix(line, []byte("ACK "))
}
