// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// progressInterval is how often the count is updated.
const progressInterval = 200 * time.Millisecond

// progress counts the bytes of a download on one line of a terminal; elsewhere it writes nothing.
type progress struct {
	out   io.Writer
	what  string
	bytes atomic.Int64
	stop  chan struct{}
	ended chan struct{}
}

// newProgress begins to write; done ends it.
func newProgress(out io.Writer, what string) *progress {
	p := &progress{out: out, what: what, stop: make(chan struct{}), ended: make(chan struct{})}
	if !isTerminal(out) {
		close(p.ended)
		return p
	}
	go p.write()
	return p
}

func (p *progress) write() {
	defer close(p.ended)
	ticker := time.NewTicker(progressInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			fmt.Fprintf(p.out, "\r\x1b[K%s: %s", p.what, bytesText(p.bytes.Load()))
		case <-p.stop:
			fmt.Fprint(p.out, "\r\x1b[K")
			return
		}
	}
}

// done ends the line.
func (p *progress) done() {
	close(p.stop)
	<-p.ended
}

// count returns a transport that counts the answers.
func (p *progress) count(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err == nil {
			response.Body = &countedBody{ReadCloser: response.Body, bytes: &p.bytes}
		}
		return response, err
	})
}

// roundTripper is a function that is a transport.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

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

// bytesText is a number of bytes for people.
func bytesText(n int64) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}
