// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
	"github.com/satchel-dev/satchel/internal/view/rollouts"
)

// redrawInterval is how often ages are brought up to date on a terminal.
const redrawInterval = time.Second

// follow shows a rollout until it is complete, or stands still if that was asked for.
func follow(ctx context.Context, a *kit.App, o statusOptions, t kit.Target) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	ctx, cancel := withTimeout(ctx, o.timeout)
	defer cancel()
	watching, stop := context.WithCancel(ctx)
	defer stop()
	seen := make(chan *v1alpha1.BundleRollout)
	ended := make(chan error, 1)
	go func() {
		ended <- c.Watch(watching, t, func(found view.Object) bool {
			if found, isRollout := found.(*v1alpha1.BundleRollout); isRollout {
				select {
				case seen <- found:
				case <-watching.Done():
				}
			}
			return false
		})
	}()
	return show(a, o, seen, ended)
}

func withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, timeout, kit.ErrTooLong)
}

// show draws what is seen until the end.
func show(a *kit.App, o statusOptions, seen <-chan *v1alpha1.BundleRollout, ended <-chan error) error {
	screen := newScreen(a)
	var last *v1alpha1.BundleRollout
	ticker := time.NewTicker(redrawInterval)
	defer ticker.Stop()
	for {
		select {
		case err := <-ended:
			if errors.Is(err, kit.ErrTooLong) && last != nil {
				fmt.Fprintf(a.Streams.Out, "Not complete within %s.\n", view.Short(o.timeout))
				return kit.ErrNo
			}
			return err
		case last = <-seen:
		case <-ticker.C:
			if last == nil || !screen.isTerminal {
				continue
			}
		}
		s := rollouts.New(last, a.Now())
		screen.draw(s)
		if s.Outcome == rollouts.Complete || o.wait && s.Outcome == rollouts.Standing {
			return answer(s)
		}
	}
}

// screen draws a status in place, or writes a line for each change where the output is no terminal.
type screen struct {
	app        *kit.App
	isTerminal bool
	drawn      int      // lines that are on the terminal
	said       []string // lines elsewhere
}

func newScreen(a *kit.App) *screen {
	return &screen{app: a, isTerminal: printer.IsTerminal(a.Streams.Out) && os.Getenv("TERM") != "dumb"}
}

func (s *screen) draw(status rollouts.Status) {
	if !s.isTerminal {
		s.say(status)
		return
	}
	text := PrintStatus(status, printer.StyleFor(s.app.Streams.Out), s.app.Now(), s.app.Name)
	width, height := sizeOf(s.app.Streams.Out)
	frame, lines := fit(text, width, height)
	if s.drawn > 0 {
		fmt.Fprintf(s.app.Streams.Out, "\x1b[%dA\r\x1b[J", s.drawn)
	}
	fmt.Fprint(s.app.Streams.Out, frame)
	s.drawn = lines
}

// say writes the lines that were not there before.
func (s *screen) say(status rollouts.Status) {
	lines := changeLines(status)
	now := s.app.Now().Format("15:04:05")
	for _, line := range kit.Added(s.said, lines) {
		fmt.Fprintf(s.app.Streams.Out, "%s  %s\n", now, line)
	}
	s.said = lines
}

// changeLines are the parts of a status of which each change is told, without times that go on.
func changeLines(status rollouts.Status) []string {
	lines := []string{status.State}
	for i := range status.Waves {
		w := &status.Waves[i]
		if w.State == v1alpha1.WavePending {
			continue
		}
		line := fmt.Sprintf("wave %s: %s, %d/%d updated", view.Inline(w.Name), strings.ToLower(string(w.State)), w.Updated, w.Total)
		for _, count := range []struct {
			of   int32
			word string
		}{{w.Updating, "updating"}, {w.Failed, "failed"}, {w.Unreachable, "unreachable"}} {
			if count.of > 0 {
				line += fmt.Sprintf(", %d %s", count.of, count.word)
			}
		}
		if w.WaitsFor != "" && w.WaitsFor != v1alpha1.ReasonUpdating {
			line += ", " + view.Inline(w.WaitsFor)
		}
		lines = append(lines, line)
		for k := range w.Problems {
			p := &w.Problems[k]
			lines = append(lines, fmt.Sprintf("cluster %s: %s: %s", view.Inline(p.Cluster), view.Inline(p.Reason), view.OneLine(p.Message, kit.StatusWidth)))
		}
	}
	if status.Outcome == rollouts.Standing && status.Message != "" {
		lines = append(lines, view.Inline(status.Reason)+": "+view.OneLine(status.Message, 0))
	}
	return lines
}

// fit cuts a text to a terminal, so that each of its lines takes one line there, and counts them. Colours are no characters.
func fit(text string, width, height int) (frame string, lines int) {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if height > 2 && len(all) >= height {
		left := len(all) - (height - 2)
		all = append(all[:height-2:height-2], fmt.Sprintf("… %d more lines; rollout status without -w prints all", left))
	}
	var out strings.Builder
	for _, line := range all {
		out.WriteString(cut(line, width) + "\n")
	}
	return out.String(), len(all)
}

// cut shortens a line to a width, and ends its colours.
func cut(line string, width int) string {
	if width <= 0 {
		return line
	}
	shown, inColor := 0, false
	for i, r := range line {
		switch {
		case r == '\x1b':
			inColor = true
		case inColor:
			inColor = r != 'm'
		case shown == width:
			return line[:i] + "\x1b[0m"
		default:
			shown++
		}
	}
	return line
}

// sizeOf is the size of a terminal; zeros where it is not known.
func sizeOf(w io.Writer) (width, height int) {
	file, isFile := w.(*os.File)
	if !isFile {
		return 0, 0
	}
	width, height, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0, 0
	}
	return width, height
}
