// SPDX-License-Identifier: Apache-2.0

package see

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

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
)

// LongestLine bounds a line, in bytes: what is longer is cut.
const LongestLine = 64 << 10

// LineWriter writes lines of several logs, whole ones only.
type LineWriter struct {
	mutex  sync.Mutex
	Out    io.Writer
	style  printer.Style
	Prefix bool
	err    error // of writing
}

// Write writes a line of a container, made safe to show.
func (w *LineWriter) Write(s LogSource, line string) error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	text := view.Printable(strings.TrimRight(line, "\r"))
	if w.Prefix {
		text = w.style.Paint(printer.Faint, view.Inline("["+s.Pod+"/"+s.Name+"]")) + " " + text
	}
	if w.err == nil {
		_, w.err = fmt.Fprintln(w.Out, text)
	}
	return w.err
}

// failure is what kept lines from being written.
func (w *LineWriter) failure() error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.err
}

// read reads the log of a container to its end. What cannot be read is noted. Where lines are sifted, the last of those
// that are wanted are written.
// It tells whether there was a log.
func (r *logReader) read(ctx context.Context, s LogSource, o *corev1.PodLogOptions) bool {
	stream, err := r.pods.Pods(s.namespace).GetLogs(s.Pod, o).Stream(ctx)
	if err != nil {
		r.unreadableLog(ctx, s, err)
		return false
	}
	defer stream.Close() //nolint:errcheck // it was read: closing loses nothing
	kept := &LastLines{Limit: int(r.options.tail)}
	err = EachLine(stream, func(line string) error {
		switch {
		case r.wanted == nil:
			return r.Write(s, line)
		case !r.wanted(line):
			return nil
		case o.Follow || r.options.tail < 0:
			return r.Write(s, line)
		}
		kept.Add(line)
		return nil
	})
	for _, line := range kept.Lines {
		err = errors.Join(err, r.Write(s, line))
	}
	if err != nil && ctx.Err() == nil && r.failure() == nil {
		r.Omitted.Add("the rest of the log of %s/%s: %v", s.Pod, s.Name, err)
	}
	return true
}

// unreadableLog notes why a log cannot be read. If a container has no log, or no previous one, the API server's message says
// so.
func (r *logReader) unreadableLog(ctx context.Context, s LogSource, err error) {
	var answer apierrors.APIStatus
	switch {
	case ctx.Err() != nil:
	case apierrors.IsForbidden(err):
		logs := podResource
		logs.Resource = "pods/log"
		r.Unreadable("get", logs, s.namespace, err)
	case apierrors.IsNotFound(err) && !r.options.previous:
		r.Omitted.Add("the log of %s/%s: the Pod is gone", s.Pod, s.Name)
	case errors.As(err, &answer):
		r.Omitted.Add("the log of %s/%s: %s", s.Pod, s.Name, answer.Status().Message)
	default:
		r.Omitted.Add("the log of %s/%s: %v", s.Pod, s.Name, err)
	}
}

// LastLines keeps the last lines.
type LastLines struct {
	Limit int
	Lines []string
}

// Add appends a line, and forgets the oldest one beyond the limit.
func (l *LastLines) Add(line string) {
	l.Lines = append(l.Lines, line)
	if len(l.Lines) > l.Limit {
		l.Lines = l.Lines[1:]
	}
}

// EachLine passes the lines of a stream on, cut where they are very long, until it ends or a line is refused.
func EachLine(stream io.Reader, do func(line string) error) error {
	reader := bufio.NewReaderSize(stream, LongestLine)
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
	ended   chan LogSource
	before  map[string]time.Time // when a log was read to its end
}

// followLogs follows containers, and those that appear or start again, until ctx ends.
func followLogs(ctx context.Context, a *kit.App, r *logReader, find func(context.Context) ([]LogSource, error), found []LogSource) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	f := &follower{logReader: r, running: map[string]bool{}, ended: make(chan LogSource), before: map[string]time.Time{}}
	var omitted []string
	for took := time.Duration(0); ; {
		f.begin(ctx, found)
		if err := f.wait(ctx, max(podsPause, kit.PauseFactor*took), a.Now); err != nil {
			return err
		}
		now := r.Omitted.List()
		a.NoteOmitted(kit.Added(omitted, now))
		omitted = now
		began := time.Now()
		if next, err := find(ctx); err == nil {
			found = next
		}
		took = time.Since(began)
	}
}

// begin follows what is not followed yet. A log that ended is read on when its container runs nevertheless.
func (f *follower) begin(ctx context.Context, found []LogSource) {
	for _, s := range found {
		at, known := f.before[s.key()]
		if f.running[s.key()] || known && !s.Running {
			continue
		}
		if len(f.running) >= mostFollowed {
			f.Omitted.Add("the logs of further containers: %d are followed; choose with -c", mostFollowed)
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
