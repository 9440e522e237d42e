// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/satchel-dev/satchel/internal/fetch"
)

const (
	// maxPacket is the longest pkt-line with its length (gitprotocol-common(5)).
	maxPacket = 65520
	// lengthDigits is how many hexadecimal digits a pkt-line begins with.
	lengthDigits = 4
)

// Packet says what a pkt-line is.
type Packet int

// The packets: one with text, and those that are only a length.
const (
	Text      Packet = -1
	Flush     Packet = 0 // the end of a message
	Delimiter Packet = 1 // the end of a section, in version 2
)

// Reader reads pkt-lines.
type Reader struct {
	Reader *bufio.Reader
	buffer []byte
}

// NewReader reads pkt-lines from a stream.
func NewReader(r io.Reader) *Reader {
	return &Reader{Reader: bufio.NewReaderSize(r, maxPacket), buffer: make([]byte, maxPacket)}
}

// Next returns one pkt-line; its bytes are valid until the next call. At the end of the stream the error is io.EOF; what the
// server says instead of an answer is an error as well.
func (p *Reader) Next() (Packet, []byte, error) {
	head := p.buffer[:lengthDigits]
	if _, err := io.ReadFull(p.Reader, head); err != nil {
		if errors.Is(err, io.EOF) {
			return 0, nil, io.EOF
		}
		return 0, nil, Cut(err)
	}
	length, err := strconv.ParseUint(string(head), 16, 16)
	switch {
	case err != nil || length > maxPacket || length > uint64(Delimiter) && length < lengthDigits:
		return 0, nil, NotGit("it has the line length %s", fetch.Quote(string(head)))
	case length < lengthDigits:
		return Packet(length), nil, nil
	}
	text := p.buffer[:length-lengthDigits]
	if _, err := io.ReadFull(p.Reader, text); err != nil {
		return 0, nil, Cut(err)
	}
	if said, isError := bytes.CutPrefix(text, []byte("ERR ")); isError {
		return 0, nil, &RefusalError{string(bytes.TrimSpace(said))}
	}
	return Text, text, nil
}

// Text returns the next pkt-line without its line feed; anything else than a text ends the message.
func (p *Reader) Text() ([]byte, bool, error) {
	kind, line, err := p.Next()
	if errors.Is(err, io.EOF) {
		return nil, false, Cut(io.ErrUnexpectedEOF)
	}
	return bytes.TrimSuffix(line, []byte("\n")), kind == Text, err
}

// RefusalError is what a server says instead of an answer.
type RefusalError struct{ said string }

// Error quotes the server.
func (r *RefusalError) Error() string { return "the server says " + fetch.Quote(r.said) }

// NotGit is the error for an answer that makes no sense.
func NotGit(format string, args ...any) error {
	return fetch.Errorf(fetch.InvalidContent, "the server's answer is not that of a Git server: %s", fmt.Sprintf(format, args...))
}

// Cut gives the end of a stream in the middle of an answer its reason; failures of the network have theirs.
func Cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		if fetch.ReasonOf(err) == "" {
			return NotGit("it ends too early")
		}
	}
	return err
}

// AppendPacket appends a pkt-line.
func AppendPacket(to []byte, format string, args ...any) []byte {
	text := fmt.Sprintf(format, args...)
	return fmt.Appendf(to, "%04x%s", len(text)+lengthDigits, text)
}

// AppendMark appends a pkt-line without text.
func AppendMark(to []byte, mark Packet) []byte { return fmt.Appendf(to, "%04x", int(mark)) }
