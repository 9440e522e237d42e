// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"golang.org/x/time/rate"
)

// F7: while everything fails, the log has a bounded number of lines of each message, and
// the number of omitted ones.
func TestF7ErrorsInTheLogAreBounded(t *testing.T) {
	var lines []string
	plain := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
	log := newErrorLog(plain)
	for i := range 500 {
		log.WithValues("object", i).WithName("controller").Error(errors.New("refused"), "Reconciler error")
		log.Info("reconcile failed")
	}
	log.Error(errors.New("refused"), "another message")
	if got := strings.Count(fmt.Sprint(lines), "Reconciler error"); got < errorBurst || got > errorBurst+5 {
		t.Errorf("%d lines of one message, want %d", got, errorBurst)
	}
	if text := fmt.Sprint(lines); strings.Count(text, "reconcile failed") != 500 || strings.Count(text, "another message") != 1 {
		t.Error("lines of other messages were left out")
	}

	sink, _ := log.GetSink().(errorLog)
	share := sink.share.of["Reconciler error"]
	omitted := share.omitted
	share.limiter = rate.NewLimiter(errorRate, 1) // a second later
	log.Error(errors.New("refused"), "Reconciler error")
	if last := lines[len(lines)-1]; omitted < 480 || !strings.Contains(last, fmt.Sprintf(`"omitted"=%d`, omitted)) {
		t.Errorf("%d lines were left out, and the next one says: %s", omitted, last)
	}
}

// The memory for distinct messages is bounded.
func TestF7MessagesInTheLogAreBounded(t *testing.T) {
	log := newErrorLog(funcr.New(func(string, string) {}, funcr.Options{}))
	for i := range 10 * mostErrors {
		log.Error(nil, fmt.Sprint("message ", i))
	}
	if sink, _ := log.GetSink().(errorLog); len(sink.share.of) > mostErrors+1 {
		t.Errorf("%d messages are remembered", len(sink.share.of))
	}
}
