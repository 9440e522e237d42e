// SPDX-License-Identifier: Apache-2.0

// Package progress says what a control plane is waiting for, and how far its build is.
package progress

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// every is the longest silence while something long is going on.
const every = 10 * time.Second

// Report writes a line every every with what is going on and for how long, the first one after
// that time, until the returned function is called. A nil writer is silent.
func Report(w io.Writer, what func() string) (stop func()) {
	if w == nil {
		return func() {}
	}
	var (
		once  sync.Once
		quit  = make(chan struct{})
		ended = make(chan struct{})
	)
	go func() {
		defer close(ended)
		reportUntil(quit, w, what)
	}()
	return func() {
		once.Do(func() { close(quit) })
		<-ended
	}
}

func reportUntil(quit <-chan struct{}, w io.Writer, what func() string) {
	started := time.Now()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-quit:
			return
		case <-ticker.C:
			Sayf(w, "%s (%s so far)", what(), time.Since(started).Round(time.Second))
		}
	}
}

// Sayf writes one progress line; a nil writer is silent.
func Sayf(w io.Writer, format string, args ...any) {
	if w != nil {
		_, _ = fmt.Fprintf(w, "controlplane: "+format+"\n", args...)
	}
}
