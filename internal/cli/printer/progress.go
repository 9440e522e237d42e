// SPDX-License-Identifier: Apache-2.0

package printer

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// progressInterval is how often the count is updated.
const progressInterval = 200 * time.Millisecond

// Progress counts the bytes of a download on one line of a terminal; elsewhere it writes nothing.
type Progress struct {
	out   io.Writer
	what  string
	Bytes atomic.Int64
	stop  chan struct{}
	ended chan struct{}
}

// NewProgress begins to write; done ends it.
func NewProgress(out io.Writer, what string) *Progress {
	p := &Progress{out: out, what: what, stop: make(chan struct{}), ended: make(chan struct{})}
	if !IsTerminal(out) {
		close(p.ended)
		return p
	}
	go p.write()
	return p
}

func (p *Progress) write() {
	defer close(p.ended)
	ticker := time.NewTicker(progressInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			fmt.Fprintf(p.out, "\r\x1b[K%s: %s", p.what, BytesText(p.Bytes.Load()))
		case <-p.stop:
			fmt.Fprint(p.out, "\r\x1b[K")
			return
		}
	}
}

// Done ends the line.
func (p *Progress) Done() {
	close(p.stop)
	<-p.ended
}

// Count returns a transport that counts the answers.
func (p *Progress) Count(next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err == nil {
			response.Body = &countedBody{ReadCloser: response.Body, bytes: &p.Bytes}
		}
		return response, err
	})
}

// RoundTripper is a function that is a transport.
type RoundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f RoundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// countedBody counts what is read.
type countedBody struct {
	io.ReadCloser
	bytes *atomic.Int64
}

// Read implements io.Reader.
func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.bytes.Add(int64(n))
	return n, err
}

// BytesText is a number of bytes for people.
func BytesText(n int64) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}
