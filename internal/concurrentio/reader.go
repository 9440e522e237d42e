// SPDX-License-Identifier: Apache-2.0

package concurrentio

import "io"

// Reader reads from another reader in a goroutine of its own, ahead of its caller, as soon as the stream is longer than one
// chunk. It is used by one goroutine.
type Reader struct {
	from    io.Reader
	direct  int         // bytes that were read without a goroutine
	filled  chan chunk  // nil until the goroutine was started
	free    chan []byte // back to the goroutine
	stop    chan struct{}
	ended   chan struct{} // closed when the goroutine has ended
	current chunk         // that is being read
	rest    []byte        // of its bytes
	err     error         // ends the stream
}

// chunk are bytes, and the error that came after them.
type chunk struct {
	bytes []byte
	err   error
}

// NewReader returns a reader of the bytes and the error of from. The caller closes it, and must not use from before.
func NewReader(from io.Reader) *Reader { return &Reader{from: from} }

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	if r.filled == nil && r.direct < chunkBytes {
		n, err := r.from.Read(p)
		r.direct += n
		return n, err
	}
	if r.err != nil {
		return 0, r.err
	}
	if r.filled == nil {
		r.start()
	}
	for len(r.rest) == 0 {
		if r.current.err != nil {
			r.err = r.current.err
			return 0, r.err
		}
		r.next()
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// next takes the next chunk, and gives the one before back.
func (r *Reader) next() {
	if r.current.bytes != nil {
		r.free <- r.current.bytes // it has room for all of them
	}
	r.current = <-r.filled
	r.rest = r.current.bytes
}

func (r *Reader) start() {
	r.filled, r.free = make(chan chunk, chunks), make(chan []byte, chunks)
	r.stop, r.ended = make(chan struct{}), make(chan struct{})
	for range chunks {
		r.free <- make([]byte, chunkBytes)
	}
	go r.ahead()
}

// ahead fills chunks until the stream ends, or the reader is closed.
func (r *Reader) ahead() {
	defer close(r.ended)
	for {
		var next chunk
		select {
		case <-r.stop:
			return
		case buffer := <-r.free:
			next = r.fill(buffer[:chunkBytes])
		}
		r.filled <- next // it has room for all of them
		if next.err != nil {
			return
		}
	}
}

// fill reads until the buffer is full, the stream has ended, or the reader is closed.
func (r *Reader) fill(buffer []byte) chunk {
	n := 0
	err := guarded(func() (err error) {
		for n < len(buffer) && err == nil && !r.closed() {
			var read int
			read, err = r.from.Read(buffer[n:])
			n += read
		}
		return err
	})
	return chunk{buffer[:n], err}
}

func (r *Reader) closed() bool {
	select {
	case <-r.stop:
		return true
	default:
		return false
	}
}

// Close ends reading ahead, and waits for the read that is under way: what it reads from can be used and closed after that.
// It closes nothing else.
func (r *Reader) Close() error {
	if r.filled == nil || r.closed() {
		return nil
	}
	close(r.stop)
	<-r.ended
	r.err = io.ErrClosedPipe
	r.rest, r.current = nil, chunk{err: r.err}
	return nil
}
