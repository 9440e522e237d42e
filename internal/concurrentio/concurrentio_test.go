// SPDX-License-Identifier: Apache-2.0

package concurrentio

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
)

var errBroken = errors.New("broken")

// sizes are lengths of streams around those at which something changes.
var sizes = []int{0, 1, chunkBytes - 1, chunkBytes, chunkBytes + 1, 2 * chunkBytes, chunks*chunkBytes + 7, 3*chunks*chunkBytes + 1}

func random(size int) []byte {
	content := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(content)
	return content
}

// pieces writes content in pieces of many sizes.
func pieces(t *testing.T, w io.Writer, content []byte) {
	t.Helper()
	for size := 1; len(content) > 0; size = size*3 + 1 {
		n := min(size, len(content))
		if written, err := w.Write(content[:n]); written != n || err != nil {
			t.Fatalf("%d of %d bytes: %v", written, n, err)
		}
		content = content[n:]
	}
}

func TestReaderGivesTheSameBytesAndError(t *testing.T) {
	for _, size := range sizes {
		for name, reader := range map[string]func(io.Reader) io.Reader{
			"whole": func(r io.Reader) io.Reader { return r }, "half": iotest.HalfReader, "data with its error": iotest.DataErrReader,
		} {
			for want, end := range map[error]error{nil: io.EOF, errBroken: errBroken} {
				content := random(size)
				r := NewReader(reader(io.MultiReader(bytes.NewReader(content), iotest.ErrReader(end))))
				got, err := io.ReadAll(r)
				if !bytes.Equal(got, content) || !errors.Is(err, want) {
					t.Errorf("%d bytes, %s: %d bytes came, and %v", size, name, len(got), err)
				}
				if _, again := r.Read(make([]byte, 1)); size > chunkBytes && !errors.Is(again, end) {
					t.Errorf("%d bytes, %s: then %v", size, name, again)
				}
				if err := errors.Join(r.Close(), r.Close()); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// endless counts its reads.
type endless struct{ reads atomic.Int64 }

func (e *endless) Read(p []byte) (int, error) {
	e.reads.Add(1)
	return len(p), nil
}

// TestReaderIsBounded: what is read ahead does not grow while the caller reads nothing, and nothing is read after Close.
func TestReaderIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := &endless{}
		r := NewReader(from)
		if _, err := io.CopyN(io.Discard, r, 2*chunkBytes); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // until all chunks are filled: a reader without bound would never wait
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		reads := from.reads.Load()
		if reads > 100 {
			t.Errorf("it read %d times", reads)
		}
		if n, err := r.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.ErrClosedPipe) || from.reads.Load() != reads {
			t.Errorf("after it was closed, it read %d bytes: %v", n, err)
		}
	})
}

// slow takes a while for each read, and knows whether one is under way.
type slow struct{ reading atomic.Int64 }

func (s *slow) Read(p []byte) (int, error) {
	s.reading.Add(1)
	defer s.reading.Add(-1)
	for range 20 {
		runtime.Gosched()
	}
	return len(p), nil
}

// TestCloseWaitsForTheReadUnderWay, so that what is read from can be closed and used by others.
func TestCloseWaitsForTheReadUnderWay(t *testing.T) {
	for range 300 {
		from := &slow{}
		r := NewReader(from)
		if _, err := io.CopyN(io.Discard, r, chunkBytes+1); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil || from.reading.Load() != 0 {
			t.Fatalf("%d reads are under way: %v", from.reading.Load(), err)
		}
	}
}

func TestShortStreamsNeedNoGoroutine(t *testing.T) {
	r := NewReader(strings.NewReader(strings.Repeat("x", chunkBytes-1)))
	if _, err := io.Copy(io.Discard, r); err != nil || r.filled != nil {
		t.Errorf("reading began a goroutine: %v", err)
	}
	w := NewWriter(io.Discard)
	pieces(t, w, make([]byte, chunkBytes))
	if err := w.Close(); err != nil || w.filled != nil {
		t.Errorf("writing began a goroutine: %v", err)
	}
}

// panicking panics once some bytes have passed.
type panicking struct{ left int }

func (p *panicking) Read(b []byte) (int, error)  { return p.pass(b) }
func (p *panicking) Write(b []byte) (int, error) { return p.pass(b) }

func (p *panicking) pass(b []byte) (int, error) {
	if p.left -= len(b); p.left < 0 {
		panic("cause") //nolint:forbidigo // of a library
	}
	return len(b), nil
}

func TestPanicsAreErrors(t *testing.T) {
	const want = "internal error in github.com/satchel-dev/satchel/internal/concurrentio.(*panicking).pass (concurrentio_test.go:"
	r := NewReader(&panicking{left: 3 * chunkBytes})
	if _, err := io.Copy(io.Discard, r); err == nil || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), ": cause") {
		t.Errorf("reading ended with %v", err)
	}
	w := NewWriter(&panicking{left: 3 * chunkBytes})
	_, err := w.Write(make([]byte, 20*chunkBytes))
	if err := errors.Join(err, w.Close()); err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), ": cause") {
		t.Errorf("writing ended with %v", err)
	}
	outside := func() error {
		list := []int{0}
		_ = list[len(want)]
		return nil
	}
	if err := guarded(outside); err == nil || !strings.Contains(err.Error(), "TestPanicsAreErrors.func1 (concurrentio_test.go:") || !strings.Contains(err.Error(), "index out of range") {
		t.Errorf("an index out of range is %v", err)
	}
}

func TestWriterPassesOnTheSameBytes(t *testing.T) {
	for _, size := range sizes {
		content, got := random(size), &bytes.Buffer{}
		w := NewWriter(got)
		pieces(t, w, content)
		if err := errors.Join(w.Close(), w.Close()); err != nil || !bytes.Equal(got.Bytes(), content) {
			t.Errorf("%d bytes: %d bytes came, and %v", size, got.Len(), err)
		}
		if _, err := w.Write(content); size > 0 && !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%d bytes: after it was closed: %v", size, err)
		}
	}
}

// limited fails once more bytes than allowed were written.
type limited struct{ left int }

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, errBroken
	}
	return len(p), nil
}

// TestWriterReportsAFailure at the latest when it is closed, and an endless caller learns of it.
func TestWriterReportsAFailure(t *testing.T) {
	for _, left := range []int{0, chunkBytes, 5 * chunkBytes, chunkBytes / 2, 2*chunkBytes - 1} {
		w := NewWriter(&limited{left})
		_, err := w.Write(make([]byte, left/chunkBytes*chunkBytes+chunkBytes+1))
		if err := errors.Join(err, w.Close()); !errors.Is(err, errBroken) {
			t.Errorf("after %d bytes it failed with %v", left, err)
		}
	}
	w := NewWriter(&limited{})
	if _, err := io.Copy(w, &endless{}); !errors.Is(err, errBroken) {
		t.Errorf("it failed with %v", err)
	}
	w.Abandon()
}

// TestAbandonedWriterWritesNothingAfterwards: what it writes to can be closed then.
func TestAbandonedWriterWritesNothingAfterwards(t *testing.T) {
	got := &bytes.Buffer{}
	w := NewWriter(got)
	pieces(t, w, random(2*chunkBytes+chunkBytes/2))
	w.Abandon()
	if length := got.Len(); length > 2*chunkBytes {
		t.Errorf("%d bytes came", length)
	}
	if _, err := w.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("it writes on: %v", err)
	}
}
