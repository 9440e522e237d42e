// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/view"
)

// WithoutPath is an error of the file system without its path, which the message names already.
func WithoutPath(err error) error {
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// MostListed bounds each list that people are shown.
const MostListed = 100

// Given are the arguments of a command that wants another number of them.
func Given(args []string) string {
	if len(args) == 0 {
		return "none"
	}
	return strconv.Itoa(len(args)) + ": " + strings.Join(args, " ")
}

// Note writes warnings to standard error.
func (a *App) Note(lines []string) {
	s := printer.StyleFor(a.Streams.ErrOut)
	for _, line := range lines {
		fmt.Fprintf(a.Streams.ErrOut, "%s %s\n", s.Paint(printer.Yellow, "Warning:"), view.Inline(line))
	}
}

// mostBelowHint bounds the problems that are listed of a folder that was probably not meant.
const mostBelowHint = 5

// Refused lists the problems of a bundle under one sentence; hinted says that another folder was probably meant.
func Refused(err error, hinted bool) error {
	var problems *convert.Error
	if !errors.As(err, &problems) {
		return err
	}
	limit := MostListed
	if hinted {
		limit = mostBelowHint
	}
	lines := []string{"the bundle is refused, " + view.Plural(len(problems.Problems), "problem") + ":"}
	for _, p := range problems.Problems[:min(len(problems.Problems), limit)] {
		p.Remedy = FlagsFor(p.Remedy)
		lines = append(lines, "  - "+view.Inline(p.String()))
	}
	if more := len(problems.Problems) - limit; more > 0 {
		lines = append(lines, fmt.Sprintf("  - and %d more; validate -o json lists all", more))
	}
	return errors.New(strings.Join(lines, "\n"))
}
