// SPDX-License-Identifier: Apache-2.0

package git

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

// packet says what a pkt-line is.
type packet int

const (
	textPacket      packet = -1
	flushPacket     packet = 0 // the end of a message
	delimiterPacket packet = 1 // the end of a section, in version 2
)

// packets reads pkt-lines.
type packets struct {
	reader *bufio.Reader
	buffer []byte
}

func newPackets(r io.Reader) *packets {
	return &packets{reader: bufio.NewReaderSize(r, maxPacket), buffer: make([]byte, maxPacket)}
}

// next returns one pkt-line; its bytes are valid until the next call. At the end of the stream the error is io.EOF; what the
// server says instead of an answer is an error as well.
func (p *packets) next() (packet, []byte, error) {
	head := p.buffer[:lengthDigits]
	if _, err := io.ReadFull(p.reader, head); err != nil {
		if errors.Is(err, io.EOF) {
			return 0, nil, io.EOF
		}
		return 0, nil, cut(err)
	}
	length, err := strconv.ParseUint(string(head), 16, 16)
	switch {
	case err != nil || length > maxPacket || length > uint64(delimiterPacket) && length < lengthDigits:
		return 0, nil, notGit("it has the line length %s", fetch.Quote(string(head)))
	case length < lengthDigits:
		return packet(length), nil, nil
	}
	text := p.buffer[:length-lengthDigits]
	if _, err := io.ReadFull(p.reader, text); err != nil {
		return 0, nil, cut(err)
	}
	if said, isError := bytes.CutPrefix(text, []byte("ERR ")); isError {
		return 0, nil, &refusal{string(bytes.TrimSpace(said))}
	}
	return textPacket, text, nil
}

// text returns the next pkt-line without its line feed; anything else than a text ends the message.
func (p *packets) text() ([]byte, bool, error) {
	kind, line, err := p.next()
	if errors.Is(err, io.EOF) {
		return nil, false, cut(io.ErrUnexpectedEOF)
	}
	return bytes.TrimSuffix(line, []byte("\n")), kind == textPacket, err
}

// refusal is what a server says instead of an answer.
type refusal struct{ said string }

func (r *refusal) Error() string { return "the server says " + fetch.Quote(r.said) }

// notGit is the error for an answer that makes no sense.
func notGit(format string, args ...any) error {
	return fetch.Errorf(fetch.InvalidContent, "the server's answer is not that of a Git server: %s", fmt.Sprintf(format, args...))
}

// cut gives the end of a stream in the middle of an answer its reason; failures of the network have theirs.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		if fetch.ReasonOf(err) == "" {
			return notGit("it ends too early")
		}
	}
	return err
}

// appendPacket appends a pkt-line.
func appendPacket(to []byte, format string, args ...any) []byte {
	text := fmt.Sprintf(format, args...)
	return fmt.Appendf(to, "%04x%s", len(text)+lengthDigits, text)
}

// appendMark appends a pkt-line without text.
func appendMark(to []byte, mark packet) []byte { return fmt.Appendf(to, "%04x", int(mark)) }
