// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
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
	headerSize = 16
	magic      = 'S'
	maxKind    = 64
)

// Types of messages.
const (
	messageHello  = 'h' // to the worker: limits
	messageReady  = 'r' // from the worker: it is confined
	messageJob    = 'j' // to the worker
	messageResult = 'd' // from the worker
	messageError  = 'e' // from the worker: the handler's error
	messageLarge  = 'o' // from the worker: the result exceeds the limit of output
)

// maxErrorText bounds the message of a handler's error, in bytes.
const maxErrorText = 4096

// errGarbage means that the other side does not speak the protocol.
var errGarbage = errors.New("the worker process sent an invalid message")

// header is the start of a message.
type header struct {
	kind   byte
	name   uint8 // length of the job's kind
	files  uint8
	job    uint32
	length uint64
}

func (h header) bytes() []byte {
	encoded := make([]byte, headerSize)
	encoded[0], encoded[1], encoded[2], encoded[3] = magic, h.kind, h.name, h.files
	binary.BigEndian.PutUint32(encoded[4:], h.job)
	binary.BigEndian.PutUint64(encoded[8:], h.length)
	return encoded
}

// parseHeader parses a header and checks it, except what depends on earlier messages.
func parseHeader(encoded [headerSize]byte) (header, error) {
	h := header{
		kind: encoded[1], name: encoded[2], files: encoded[3],
		job: binary.BigEndian.Uint32(encoded[4:]), length: binary.BigEndian.Uint64(encoded[8:]),
	}
	if encoded[0] != magic || h.name > maxKind || h.files > 1 || h.kind != messageJob && (h.name > 0 || h.files > 0) {
		return header{}, errGarbage
	}
	return h, nil
}

// answer is what a worker sends back.
type answer struct {
	kind byte
	data []byte
}

// readAnswer reads the answer to a job. It trusts nothing: at most limit bytes are
// allocated, whatever the worker claims.
func readAnswer(r io.Reader, job uint32, limit int64) (answer, error) {
	var encoded [headerSize]byte
	if _, err := io.ReadFull(r, encoded[:]); err != nil {
		return answer{}, fmt.Errorf("reading the answer of a worker process: %w", err)
	}
	h, err := parseHeader(encoded)
	if err != nil {
		return answer{}, err
	}
	most := uint64(0)
	switch h.kind {
	case messageResult:
		most = uint64(max(limit, 0))
	case messageError:
		most = maxErrorText
	case messageReady, messageLarge:
	default:
		return answer{}, errGarbage
	}
	if h.job != job || h.length > most {
		return answer{}, errGarbage
	}
	data := make([]byte, h.length)
	if _, err := io.ReadFull(r, data); err != nil {
		return answer{}, fmt.Errorf("reading the answer of a worker process: %w", err)
	}
	return answer{kind: h.kind, data: data}, nil
}

// limits are sent to a worker first: bytes of memory and of output, seconds of CPU time for each
// job.
type limits struct{ memory, output, cpu uint64 }

const limitsSize = 24

func (l limits) bytes() []byte {
	encoded := make([]byte, limitsSize)
	binary.BigEndian.PutUint64(encoded, l.memory)
	binary.BigEndian.PutUint64(encoded[8:], l.output)
	binary.BigEndian.PutUint64(encoded[16:], l.cpu)
	return encoded
}

func parseLimits(encoded [limitsSize]byte) limits {
	return limits{
		memory: binary.BigEndian.Uint64(encoded[0:]),
		output: binary.BigEndian.Uint64(encoded[8:]),
		cpu:    binary.BigEndian.Uint64(encoded[16:]),
	}
}
