// SPDX-License-Identifier: Apache-2.0

package upload

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

// Pace bounds how slowly content may come. Only the time counts in which the server waits for it.
type Pace struct {
	// Idle is how long nothing may come.
	Idle time.Duration
	// Period is after which waiting it is looked whether Least bytes a second came.
	Period time.Duration
	// Least is how many bytes a second have to come.
	Least int64
	// Longest bounds an upload as a whole.
	Longest time.Duration
}

// DefaultPace is the documented one.
var DefaultPace = Pace{Idle: 15 * time.Second, Period: 30 * time.Second, Least: 4 << 10, Longest: 30 * time.Minute}

var (
	errLongest = errors.New("the upload took too long")
	errSlow    = errors.New("the upload came too slowly")
)

// pacedBody returns a body that is read at this pace.
func (p Pace) pacedBody(body io.Reader, control *http.ResponseController) *paced {
	return &paced{Pace: p, body: body, control: control, end: time.Now().Add(p.Longest)}
}

// paced is the body of a request. An error of reading is remembered, for decoders on top of it report a damaged archive.
type paced struct {
	Pace

	body    io.Reader
	control *http.ResponseController
	end     time.Time
	total   int64
	came    int64         // in the present period
	waited  time.Duration // in the present period
	failed  error
}

// Read implements io.Reader.
func (p *paced) Read(b []byte) (int, error) {
	if p.failed != nil {
		return 0, p.failed
	}
	began := time.Now()
	until := began.Add(p.Idle)
	if p.end.Before(until) {
		until = p.end
	}
	if err := p.control.SetReadDeadline(until); err != nil {
		return 0, err
	}
	n, err := p.body.Read(b)
	p.total, p.came, p.waited = p.total+int64(n), p.came+int64(n), p.waited+time.Since(began)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		p.failed = err
	case p.waited >= p.Period && float64(p.came) < float64(p.Least)*p.waited.Seconds():
		err, p.failed = errSlow, errSlow
	case p.waited >= p.Period:
		p.came, p.waited = 0, 0
	}
	return n, err
}

// explain says why an upload failed: the content that did not come, or what was made of it.
func (p *paced) explain(ctx context.Context, err error) error {
	switch {
	case errors.Is(context.Cause(ctx), errLongest), p.failed != nil && !time.Now().Before(p.end):
		return Errorf(TooSlow, "the upload was not finished within %v: nothing was stored; use a faster connection, or a registry", p.Longest)
	case errors.Is(p.failed, errSlow), errors.Is(p.failed, os.ErrDeadlineExceeded):
		return Errorf(TooSlow, "the upload came too slowly, and was stopped after %d bytes: nothing was stored; run it again", p.total)
	case p.failed != nil:
		return Errorf(CutOff, "the upload was cut off after %d bytes: nothing was stored; run it again", p.total)
	}
	return err
}

// slots bounds how many uploads are taken in at once. One namespace never holds more than half of them, whatever it is
// allowed: an upload may take half an hour, and others have to get in meanwhile.
type slots struct {
	perNamespace, most int

	mu    sync.Mutex
	all   int
	taken map[string]int // by namespace
}

func newSlots(perNamespace, most int) *slots {
	return &slots{perNamespace: min(perNamespace, max(1, most/2)), most: most, taken: map[string]int{}}
}

// take takes a slot, which done gives back.
func (s *slots) take(namespace string) (done func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all >= s.most || s.taken[namespace] >= s.perNamespace {
		return nil, false
	}
	s.all++
	s.taken[namespace]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all--
		if s.taken[namespace]--; s.taken[namespace] == 0 {
			delete(s.taken, namespace)
		}
	}, true
}
