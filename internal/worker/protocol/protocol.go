// SPDX-License-Identifier: Apache-2.0

// Package protocol is what a pool and its worker processes say to each other over their socket: messages, limits, exit codes
// and the numbers of file descriptors. It starts and confines nothing.
package protocol

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Argument is the argument with which a Pool starts its own binary.
const Argument = "satchel-worker-process"

// Exit codes of a worker process. Go's runtime exits with 2.
const (
	ExitSetup = 3 // the process could not be confined
	ExitCPU   = 4 // the CPU time is used up, on systems where the signal does not end the process
)

// File descriptors that a worker process starts with, after stdin, stdout and stderr.
const (
	SocketFD = 3
	LifeFD   = 4 // on systems without a signal for the parent's end
)

// A message is a header of 16 bytes and the payload:
//
//	0  the constant 'S'
//	1  type
//	2  length of the kind; only jobs have one
//	3  number of file descriptors that come with the header, 0 or 1
//	4  number of the job, big endian; an answer repeats it
//	8  length of the data, 8 bytes, big endian
//	16 kind, then data
const (
	HeaderSize = 16
	magic      = 'S'
	MaxKind    = 64
)

// Types of messages.
const (
	MessageHello  = 'h' // to the worker: limits
	MessageReady  = 'r' // from the worker: it is confined
	MessageJob    = 'j' // to the worker
	MessageResult = 'd' // from the worker
	MessageError  = 'e' // from the worker: the handler's error
	MessageLarge  = 'o' // from the worker: the result exceeds the limit of output
	MessageChunk  = 'c' // from the worker: a part of the stream, before the result
)

// MaxChunk bounds one part of the stream of a job, in bytes.
const MaxChunk = 256 << 10

// MaxErrorText bounds the message of a handler's error, in bytes.
const MaxErrorText = 4096

// ErrInvalid means that the other side does not speak the protocol.
var ErrInvalid = errors.New("the worker process sent an invalid message")

// Header is the start of a message.
type Header struct {
	Kind   byte
	Name   uint8 // length of the job's kind
	Files  uint8
	Job    uint32
	Length uint64
}

// Bytes encodes the header.
func (h Header) Bytes() []byte {
	encoded := make([]byte, HeaderSize)
	encoded[0], encoded[1], encoded[2], encoded[3] = magic, h.Kind, h.Name, h.Files
	binary.BigEndian.PutUint32(encoded[4:], h.Job)
	binary.BigEndian.PutUint64(encoded[8:], h.Length)
	return encoded
}

// ParseHeader parses a header and checks it, except what depends on earlier messages.
func ParseHeader(encoded [HeaderSize]byte) (Header, error) {
	h := Header{
		Kind: encoded[1], Name: encoded[2], Files: encoded[3],
		Job: binary.BigEndian.Uint32(encoded[4:]), Length: binary.BigEndian.Uint64(encoded[8:]),
	}
	if encoded[0] != magic || h.Name > MaxKind || h.Files > 1 || h.Kind != MessageJob && (h.Name > 0 || h.Files > 0) {
		return Header{}, ErrInvalid
	}
	return h, nil
}

// Answer is what a worker sends back.
type Answer struct {
	Kind byte
	Data []byte
}

// ReadAnswer reads the answer to a job. It trusts nothing: at most limit bytes are
// allocated, whatever the worker claims.
func ReadAnswer(r io.Reader, job uint32, limit int64) (Answer, error) {
	var encoded [HeaderSize]byte
	if _, err := io.ReadFull(r, encoded[:]); err != nil {
		return Answer{}, fmt.Errorf("reading the answer of a worker process: %w", err)
	}
	h, err := ParseHeader(encoded)
	if err != nil {
		return Answer{}, err
	}
	most := uint64(0)
	switch h.Kind {
	case MessageResult:
		most = uint64(max(limit, 0))
	case MessageError:
		most = MaxErrorText
	case MessageChunk:
		most = MaxChunk
	case MessageReady, MessageLarge:
	default:
		return Answer{}, ErrInvalid
	}
	if h.Job != job || h.Length > most {
		return Answer{}, ErrInvalid
	}
	data := make([]byte, h.Length)
	if _, err := io.ReadFull(r, data); err != nil {
		return Answer{}, fmt.Errorf("reading the answer of a worker process: %w", err)
	}
	return Answer{Kind: h.Kind, Data: data}, nil
}

// Limits are sent to a worker first: bytes of memory and of output, seconds of CPU time for each
// job.
type Limits struct{ Memory, Output, CPU uint64 }

// LimitsSize is the size of encoded Limits.
const LimitsSize = 24

// Bytes encodes the limits.
func (l Limits) Bytes() []byte {
	encoded := make([]byte, LimitsSize)
	binary.BigEndian.PutUint64(encoded, l.Memory)
	binary.BigEndian.PutUint64(encoded[8:], l.Output)
	binary.BigEndian.PutUint64(encoded[16:], l.CPU)
	return encoded
}

// ParseLimits decodes limits.
func ParseLimits(encoded [LimitsSize]byte) Limits {
	return Limits{
		Memory: binary.BigEndian.Uint64(encoded[0:]),
		Output: binary.BigEndian.Uint64(encoded[8:]),
		CPU:    binary.BigEndian.Uint64(encoded[16:]),
	}
}
