// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"sync"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
)

// While the API server is unavailable, every watch and every reconcile logs an error. Of
// each message errorBurst lines are written at once, and then one a second. No
// information about objects is lost: it is in their conditions.
const (
	errorBurst  = 10
	errorRate   = rate.Limit(1)
	mostErrors  = 256 // distinct messages that are counted
	omittedKey  = "omitted"
	otherErrors = ""
)

// errorLog is a sink that limits the rate of error lines.
type errorLog struct {
	logr.LogSink
	share *errorShares
}

// newErrorLog limits the rate of error lines of a logger.
func newErrorLog(log logr.Logger) logr.Logger {
	return log.WithSink(errorLog{LogSink: log.GetSink(), share: &errorShares{of: map[string]*errorShare{}}})
}

// Error implements logr.LogSink. The first line after omitted ones says how many were omitted.
func (l errorLog) Error(err error, message string, values ...any) {
	omitted, ok := l.share.take(message)
	if !ok {
		return
	}
	if omitted > 0 {
		values = append(values[:len(values):len(values)], omittedKey, omitted)
	}
	l.LogSink.Error(err, message, values...)
}

// WithValues implements logr.LogSink.
func (l errorLog) WithValues(values ...any) logr.LogSink {
	return errorLog{LogSink: l.LogSink.WithValues(values...), share: l.share}
}

// WithName implements logr.LogSink.
func (l errorLog) WithName(name string) logr.LogSink {
	return errorLog{LogSink: l.LogSink.WithName(name), share: l.share}
}

// errorShares counts by message.
type errorShares struct {
	mu sync.Mutex
	of map[string]*errorShare
}

type errorShare struct {
	limiter *rate.Limiter
	omitted int
}

// take tells whether a line with this message may be written, and how many were omitted since the last
// one.
func (s *errorShares) take(message string) (omitted int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of[message] == nil && len(s.of) >= mostErrors {
		message = otherErrors
	}
	share := s.of[message]
	if share == nil {
		share = &errorShare{limiter: rate.NewLimiter(errorRate, errorBurst)}
		s.of[message] = share
	}
	if !share.limiter.Allow() {
		share.omitted++
		return 0, false
	}
	omitted, share.omitted = share.omitted, 0
	return omitted, true
}
