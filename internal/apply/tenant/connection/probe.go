// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

const (
	// NamespaceProbes is how many servers that failed may be probed at once for one namespace, so that
	// servers that do not answer hold no more of its workers, however many there are.
	NamespaceProbes = 2
	// probeTimeout is how long a probe waits for the connection and the beginning of an answer.
	probeTimeout = 5 * time.Second
)

// errProbeOver ends a probe that got no answer in time.
var errProbeOver = fmt.Errorf("no answer within %s: %w", probeTimeout, context.DeadlineExceeded)

// probe is the one request that tries a failed server again. All its methods do nothing for a request that is none, a nil probe.
type probe struct {
	of     *Breaker
	left   sync.Once
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

// limited returns the request with the time limit of a probe.
func (p *probe) limited(request *http.Request) *http.Request {
	if p == nil {
		return request
	}
	ctx, cancel := context.WithCancelCause(request.Context())
	p.cancel = cancel
	p.timer = time.AfterFunc(probeTimeout, func() { cancel(errProbeOver) })
	return request.WithContext(ctx)
}

// answered ends the time limit: an answer has begun, or there is none.
func (p *probe) answered() {
	if p != nil {
		p.timer.Stop()
	}
}

// cause is why a request failed: a transport may report the end of the time limit as a cancelled request.
func (p *probe) cause(err error) error {
	if p != nil && errors.Is(err, context.Canceled) {
		return errProbeOver
	}
	return err
}

// leave releases the place of the probe: another request may be one.
func (p *probe) leave() {
	if p == nil {
		return
	}
	p.left.Do(func() {
		p.of.mu.Lock()
		p.of.trying = false
		p.of.mu.Unlock()
		if p.of.Probes != nil {
			p.of.Probes.Release(1)
		}
	})
}

// end is leave once the answer was read.
func (p *probe) end() {
	if p == nil {
		return
	}
	p.leave()
	p.cancel(nil)
}
