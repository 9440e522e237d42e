// SPDX-License-Identifier: Apache-2.0

package child

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"

	"github.com/satchel-dev/satchel/internal/worker/protocol"
)

// processors is how many threads of a worker run Go code at once. The garbage collector
// would use as many as there are, and make the process's CPU time depend on the machine.
const processors = 2

// serve is the main of a worker process. It returns the exit code when the parent closes
// the socket.
func serve(handlers map[string]Handler) int {
	c := child{socket: protocol.SocketFD, handlers: handlers}
	if err := c.setup(); err != nil {
		_, _ = fmt.Fprintf(os.Stderr, "worker process: %v\n", err)
		return protocol.ExitSetup
	}
	if err := c.serve(); err != nil && !errors.Is(err, io.EOF) {
		_, _ = fmt.Fprintf(os.Stderr, "worker process: %v\n", err)
		return protocol.ExitSetup
	}
	return 0
}

// child is the worker's side of the protocol.
type child struct {
	socket   socket
	handlers map[string]Handler
	limits   protocol.Limits
}

// setup reads the limits, which the parent sends and which contain no input, confines
// the process and reports that it is ready.
func (c *child) setup() error {
	h, _, err := c.socket.readHeader()
	if err != nil {
		return fmt.Errorf("reading from the parent (only Satchel itself starts this process): %w", err)
	}
	if h.Kind != protocol.MessageHello || h.Length != protocol.LimitsSize {
		return protocol.ErrInvalid
	}
	var encoded [protocol.LimitsSize]byte
	if _, err := io.ReadFull(c.socket, encoded[:]); err != nil {
		return err
	}
	c.limits = protocol.ParseLimits(encoded)
	runtime.GOMAXPROCS(processors)
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(int64(c.limits.Memory / 16 * 13)) //nolint:gosec // Options.validate bounds it
	debug.SetTraceback("none")
	time.Local = time.UTC // so that the time zone file is not read later
	if err := confine(c.limits); err != nil {
		return err
	}
	return c.send(protocol.Header{Kind: protocol.MessageReady}, nil)
}

// serve does jobs until the parent closes the socket.
func (c *child) serve() error {
	for {
		h, file, err := c.socket.readHeader()
		if err != nil {
			return err
		}
		if h.Kind != protocol.MessageJob || h.Files > 0 && file == nil {
			return protocol.ErrInvalid
		}
		kind := make([]byte, h.Name)
		if _, err := io.ReadFull(c.socket, kind); err != nil {
			return err
		}
		data := make([]byte, h.Length)
		if _, err := io.ReadFull(c.socket, data); err != nil {
			return err
		}
		raiseOwnCPULimit(c.limits)
		result, err := c.do(string(kind), Input{Data: data, File: file, Send: func(part []byte) error {
			return c.send(protocol.Header{Kind: protocol.MessageChunk, Job: h.Job}, part)
		}})
		if file != nil {
			_ = file.Close()
		}
		if err := c.reply(h.Job, result, err); err != nil {
			return err
		}
	}
}

// do calls the handler. A panic ends the process, since its state is unknown then.
func (c *child) do(kind string, input Input) ([]byte, error) {
	handler, found := c.handlers[kind]
	if !found {
		return nil, fmt.Errorf("no handler for jobs of the kind %q", kind)
	}
	return handler(input)
}

func (c *child) reply(job uint32, result []byte, err error) error {
	switch {
	case err != nil:
		text := err.Error()
		return c.send(protocol.Header{Kind: protocol.MessageError, Job: job}, []byte(text[:min(len(text), protocol.MaxErrorText)]))
	case uint64(len(result)) > c.limits.Output:
		return c.send(protocol.Header{Kind: protocol.MessageLarge, Job: job}, nil)
	default:
		return c.send(protocol.Header{Kind: protocol.MessageResult, Job: job}, result)
	}
}

func (c *child) send(h protocol.Header, data []byte) error {
	h.Length = uint64(len(data))
	if _, err := c.socket.Write(h.Bytes()); err != nil {
		return err
	}
	_, err := c.socket.Write(data)
	return err
}

// socket is a blocking descriptor, used without Go's poller.
type socket int

// Read implements io.Reader.
func (s socket) Read(p []byte) (int, error) {
	for {
		n, err := unix.Read(int(s), p)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, err
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

// Write implements io.Writer.
func (s socket) Write(p []byte) (int, error) {
	written := 0
	for written < len(p) {
		n, err := unix.Write(int(s), p[written:])
		if err != nil && !errors.Is(err, unix.EINTR) {
			return written, err
		}
		written += max(n, 0)
	}
	return written, nil
}

// readHeader reads a header and the file that comes with it.
func (s socket) readHeader() (protocol.Header, *os.File, error) {
	var encoded [protocol.HeaderSize]byte
	var file *os.File
	for read := 0; read < protocol.HeaderSize; {
		oob := make([]byte, unix.CmsgSpace(4))
		n, oobn, _, _, err := unix.Recvmsg(int(s), encoded[read:], oob, receiveFlags)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return protocol.Header{}, nil, err
		}
		if n == 0 {
			return protocol.Header{}, nil, io.EOF
		}
		read += n
		if received := receivedFile(oob[:oobn]); received != nil {
			file = received
		}
	}
	h, err := protocol.ParseHeader(encoded)
	return h, file, err
}

// receivedFile returns the file in the control data of a message, or nil.
func receivedFile(oob []byte) *os.File {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(messages) == 0 {
		return nil
	}
	descriptors, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(descriptors) == 0 {
		return nil
	}
	return os.NewFile(uintptr(descriptors[0]), "input")
}
