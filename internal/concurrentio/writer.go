// SPDX-License-Identifier: Apache-2.0

package concurrentio

import "io"

// Writer passes what is written to another writer in a goroutine of its own, as soon as that is more than one chunk. A write
// may return before its bytes are passed on, and an error of an earlier one. It is used by one goroutine.
type Writer struct {
	to      io.Writer
	current []byte      // what is not handed to the goroutine yet
	filled  chan []byte // nil until the goroutine was started
	free    chan []byte // back from the goroutine
	ended   chan struct{}
	broken  chan struct{} // closed when writing has failed
	err     error         // why; read after broken was closed, or the goroutine has ended
	closed  bool
}

// NewWriter returns a writer to to. The caller closes it in every case, and must not use to before.
func NewWriter(to io.Writer) *Writer { return &Writer{to: to} }

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (int, error) {
	if w.closed {
		return 0, io.ErrClosedPipe
	}
	written := 0
	for written < len(p) {
		if len(w.current) == chunkBytes {
			if err := w.handOver(); err != nil {
				return written, err
			}
		}
		// A short stream needs no whole chunk.
		n := min(len(p)-written, chunkBytes-len(w.current))
		w.current = append(w.current, p[written:written+n]...)
		written += n
	}
	return written, nil
}

// handOver gives the full chunk to the goroutine, and takes an empty one.
func (w *Writer) handOver() error {
	if w.filled == nil {
		w.start()
	}
	select {
	case <-w.broken:
		return w.err
	case w.filled <- w.current:
	}
	w.current = (<-w.free)[:0]
	return nil
}

func (w *Writer) start() {
	w.filled, w.free = make(chan []byte, chunks), make(chan []byte, chunks)
	w.ended, w.broken = make(chan struct{}), make(chan struct{})
	for range chunks - 1 {
		w.free <- make([]byte, 0, chunkBytes)
	}
	go w.behind()
}

// behind passes chunks on until the writer is closed. After a failure it drops them.
func (w *Writer) behind() {
	defer close(w.ended)
	for next := range w.filled {
		if w.err == nil {
			if err := w.pass(next); err != nil {
				w.err = err
				close(w.broken)
			}
		}
		w.free <- next // it has room for all of them
	}
}

func (w *Writer) pass(bytes []byte) error {
	return guarded(func() error {
		_, err := w.to.Write(bytes)
		return err
	})
}

// Close passes on what is left, waits until all is written, and returns the first error. It closes nothing else. Again it does
// nothing.
func (w *Writer) Close() error {
	if w.closed {
		return nil
	}
	w.closed = true
	if w.filled != nil {
		close(w.filled)
		<-w.ended
	}
	if w.err != nil || len(w.current) == 0 {
		return w.err
	}
	w.err = w.pass(w.current)
	return w.err
}

// Abandon ends a stream that is not wanted any more: it drops the bytes that the goroutine does not have yet, and waits until the others
// are written. Nothing is written afterwards.
func (w *Writer) Abandon() {
	w.current = nil
	_ = w.Close() // the stream has failed for another reason
}
