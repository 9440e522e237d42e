// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// longestLine bounds a line, in bytes: what is longer is cut.
const longestLine = 64 << 10

// lineWriter writes lines of several logs, whole ones only.
type lineWriter struct {
	mutex  sync.Mutex
	out    io.Writer
	style  style
	prefix bool
	err    error // of writing
}

// write writes a line of a container, made safe to show.
func (w *lineWriter) write(s logSource, line string) error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	text := printable(strings.TrimRight(line, "\r"))
	if w.prefix {
		text = w.style.paint(faint, inline("["+s.pod+"/"+s.name+"]")) + " " + text
	}
	if w.err == nil {
		_, w.err = fmt.Fprintln(w.out, text)
	}
	return w.err
}

// failure is what kept lines from being written.
func (w *lineWriter) failure() error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.err
}

// read reads the log of a container to its end. What cannot be read is noted. Where lines are sifted, the last of those
// that are wanted are written.
// It tells whether there was a log.
func (r *logReader) read(ctx context.Context, s logSource, o *corev1.PodLogOptions) bool {
	stream, err := r.pods.Pods(s.namespace).GetLogs(s.pod, o).Stream(ctx)
	if err != nil {
		r.unreadableLog(ctx, s, err)
		return false
	}
	defer stream.Close() //nolint:errcheck // it was read: closing loses nothing
	kept := &lastLines{limit: int(r.options.tail)}
	err = eachLine(stream, func(line string) error {
		switch {
		case r.wanted == nil:
			return r.write(s, line)
		case !r.wanted(line):
			return nil
		case o.Follow || r.options.tail < 0:
			return r.write(s, line)
		}
		kept.add(line)
		return nil
	})
	for _, line := range kept.lines {
		err = errors.Join(err, r.write(s, line))
	}
	if err != nil && ctx.Err() == nil && r.failure() == nil {
		r.omitted.add("the rest of the log of %s/%s: %v", s.pod, s.name, err)
	}
	return true
}

// unreadableLog notes why a log cannot be read. If a container has no log, or no previous one, the API server's message says
// so.
func (r *logReader) unreadableLog(ctx context.Context, s logSource, err error) {
	var answer apierrors.APIStatus
	switch {
	case ctx.Err() != nil:
	case apierrors.IsForbidden(err):
		logs := podResource
		logs.Resource = "pods/log"
		r.unreadable("get", logs, s.namespace, err)
	case apierrors.IsNotFound(err) && !r.options.previous:
		r.omitted.add("the log of %s/%s: the Pod is gone", s.pod, s.name)
	case errors.As(err, &answer):
		r.omitted.add("the log of %s/%s: %s", s.pod, s.name, answer.Status().Message)
	default:
		r.omitted.add("the log of %s/%s: %v", s.pod, s.name, err)
	}
}

// lastLines keeps the last lines.
type lastLines struct {
	limit int
	lines []string
}

func (l *lastLines) add(line string) {
	l.lines = append(l.lines, line)
	if len(l.lines) > l.limit {
		l.lines = l.lines[1:]
	}
}

// eachLine passes the lines of a stream on, cut where they are very long, until it ends or a line is refused.
func eachLine(stream io.Reader, do func(line string) error) error {
	reader := bufio.NewReaderSize(stream, longestLine)
	for {
		text, isPrefix, err := reader.ReadLine()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		line := string(text)
		if isPrefix {
			line += " … (cut)"
		}
		for isPrefix && err == nil {
			_, isPrefix, err = reader.ReadLine()
		}
		if err := do(line); err != nil {
			return err
		}
	}
}

// Bounds of following: how often it is looked for new Pods, and how many containers are followed at once.
const (
	podsPause    = 5 * time.Second
	mostFollowed = 200
)

// follower follows logs.
type follower struct {
	*logReader

	running map[string]bool
	ended   chan logSource
	before  map[string]time.Time // when a log was read to its end
}

// followLogs follows containers, and those that appear or start again, until ctx ends.
func (a *app) followLogs(ctx context.Context, r *logReader, find func(context.Context) ([]logSource, error), found []logSource) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	f := &follower{logReader: r, running: map[string]bool{}, ended: make(chan logSource), before: map[string]time.Time{}}
	var omitted []string
	for took := time.Duration(0); ; {
		f.begin(ctx, found)
		if err := f.wait(ctx, max(podsPause, pauseFactor*took), a.now); err != nil {
			return err
		}
		now := r.omitted.list()
		a.noteOmitted(added(omitted, now))
		omitted = now
		began := time.Now()
		if next, err := find(ctx); err == nil {
			found = next
		}
		took = time.Since(began)
	}
}

// begin follows what is not followed yet. A log that ended is read on when its container runs nevertheless.
func (f *follower) begin(ctx context.Context, found []logSource) {
	for _, s := range found {
		at, known := f.before[s.key()]
		if f.running[s.key()] || known && !s.running {
			continue
		}
		if len(f.running) >= mostFollowed {
			f.omitted.add("the logs of further containers: %d are followed; choose with -c", mostFollowed)
			return
		}
		f.running[s.key()] = true
		s.since = at
		go func() {
			s.opened = f.read(ctx, s, f.request(s))
			select {
			case f.ended <- s:
			case <-ctx.Done():
			}
		}()
	}
}

// wait records which logs end until it is time to look again.
func (f *follower) wait(ctx context.Context, pause time.Duration, now func() time.Time) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case s := <-f.ended:
			delete(f.running, s.key())
			if s.opened {
				f.before[s.key()] = now()
			}
			if err := f.failure(); err != nil {
				return err
			}
		case <-timer.C:
			return nil
		}
	}
}
