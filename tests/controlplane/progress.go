// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// progressEvery is the longest silence while something long is going on.
const progressEvery = 10 * time.Second

// report writes a line every progressEvery with what is going on and for how long, the first one after
// that time, until the returned function is called. A nil writer is silent.
func report(w io.Writer, what func() string) (stop func()) {
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
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	for {
		select {
		case <-quit:
			return
		case <-ticker.C:
			sayf(w, "%s (%s so far)", what(), time.Since(started).Round(time.Second))
		}
	}
}

// sayf writes one progress line; a nil writer is silent.
func sayf(w io.Writer, format string, args ...any) {
	if w != nil {
		_, _ = fmt.Fprintf(w, "controlplane: "+format+"\n", args...)
	}
}
