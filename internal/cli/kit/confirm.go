// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/satchel-dev/satchel/internal/cli/printer"
)

// CanAsk tells whether the input is a terminal.
func (a *App) CanAsk() bool {
	in, isFile := a.Streams.In.(*os.File)
	return isFile && term.IsTerminal(int(in.Fd())) && printer.IsTerminal(a.Streams.ErrOut)
}

// Confirm asks a question, and accepts one answer as yes; after another one it says what did not happen. Ctrl-C ends it.
func (a *App) Confirm(ctx context.Context, question, wanted, otherwise string) error {
	fmt.Fprint(a.Streams.ErrOut, question)
	answers := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(a.Streams.In).ReadString('\n') // an end of the input is no answer
		answers <- strings.TrimSpace(line)
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(a.Streams.ErrOut)
		return context.Cause(ctx)
	case answer := <-answers:
		if answer == wanted {
			return nil
		}
	}
	fmt.Fprintln(a.Streams.Out, otherwise)
	return ErrNo
}
