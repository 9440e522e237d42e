// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/satchel-dev/satchel/internal/view"
	"github.com/satchel-dev/satchel/tests/fleet"
)

// demo is a run of the demo.
type demo struct {
	bin, dir string
	began    time.Time
	out      io.Writer
	world    *fleet.World
}

func (d *demo) chapter(format string, args ...any) {
	fmt.Fprintf(d.out, "\n== %s\n\n", fmt.Sprintf(format, args...))
}

// say tells one thing, with the time since the beginning.
func (d *demo) say(format string, args ...any) {
	fmt.Fprintf(d.out, "%6.1fs  %s\n", time.Since(d.began).Seconds(), fmt.Sprintf(format, args...))
}

// text shows lines as they are.
func (d *demo) text(text string) {
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		fmt.Fprintln(d.out, strings.TrimRight("         "+line, " "))
	}
}

// satchel shows what a command prints. It may answer no, as rollout status does before the end.
func (d *demo) satchel(ctx context.Context, args ...string) error {
	command := exec.CommandContext(ctx, filepath.Join(d.bin, "satchel"), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+d.world.ControlPlane.KubeconfigPath())
	out, err := command.CombinedOutput()
	shown := make([]string, 0, len(args))
	for _, arg := range args {
		shown = append(shown, view.ShellWord(arg))
	}
	d.say("$ satchel %s", strings.Join(shown, " "))
	d.text(string(out))
	var answered *exec.ExitError
	if err != nil && (!errors.As(err, &answered) || answered.ExitCode() != 1) {
		return fmt.Errorf("running satchel %s: %w", strings.Join(args, " "), err)
	}
	return nil
}
