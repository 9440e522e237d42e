// SPDX-License-Identifier: Apache-2.0

// Package pattern compiles regular expressions that users wrote, within a budget. A counted repetition multiplies what it
// repeats: an expression of 1,000 characters compiles to a million instructions and 120 MB, before anything is matched. So the
// size of the compiled program is estimated on the parsed expression, which stays small, and what is too large is never
// compiled. Matching takes at most time in proportion to the size of the program and the length of the text; callers that
// match many or long texts charge that to the budget as well.
package pattern

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"sync/atomic"
)

// Limits on one pattern.
const (
	// MaxLength bounds the bytes of a pattern.
	MaxLength = 1024
	// MaxSize bounds the instructions of the program that a pattern compiles to: twice what the longest pattern without
	// counted repetitions has. Compiling that many takes about a millisecond and half a megabyte.
	MaxSize = 2048
)

// Limits on all patterns of one object.
const (
	maxTotal = 16 * MaxSize
	maxSteps = 100_000_000
)

// Error says why a pattern is not used.
type Error struct {
	// Pattern is shortened and quoted.
	Pattern string
	// Problem follows the pattern in a sentence, with what to do.
	Problem string
}

// Error names the pattern and its problem.
func (e *Error) Error() string { return e.Pattern + " " + e.Problem }

func refuse(expr, format string, args ...any) error {
	return &Error{Pattern: quote(expr), Problem: fmt.Sprintf(format, args...)}
}

// quote bounds what a message shows of a pattern.
func quote(expr string) string {
	const most = 64
	if len(expr) <= most {
		return strconv.Quote(expr)
	}
	return strconv.Quote(strings.ToValidUTF8(expr[:most], "")) + "…"
}

// Budget bounds what all patterns of one object cost together: the instructions that they compile to, and the steps that
// matching takes. It may be used by several goroutines.
type Budget struct {
	size, steps atomic.Int64
}

// NewBudget returns the budget of one object.
func NewBudget() *Budget {
	b := &Budget{}
	b.size.Store(maxTotal)
	b.steps.Store(maxSteps)
	return b
}

// Pattern is a regular expression that was compiled within a budget.
type Pattern struct {
	text       string
	expression *regexp.Regexp // nil for a text without any operator, which has to be equal as a whole
	size       int64
}

// Compile compiles an expression in RE2 syntax that matches any part of a text, as regexp.Compile does.
func Compile(expr string, budget *Budget) (*Pattern, error) {
	return compile(expr, expr, budget)
}

// CompileWhole compiles an expression that has to match the whole of a text.
func CompileWhole(expr string, budget *Budget) (*Pattern, error) {
	if len(expr) <= MaxLength && regexp.QuoteMeta(expr) == expr {
		return &Pattern{text: expr}, nil
	}
	return compile(expr, `\A(?:`+expr+`)\z`, budget)
}

// compile judges what the user wrote by itself, so that nothing in it ends the group that is put around it.
func compile(expr, anchored string, budget *Budget) (*Pattern, error) {
	size, err := Size(expr)
	if err != nil {
		return nil, err
	}
	if budget.size.Add(-size) < 0 {
		return nil, refuse(expr, "counts as %d instructions, and all patterns of this object together as more than %d: "+
			"use fewer patterns, or lower counts in {n}", size, int64(maxTotal))
	}
	compiled, err := regexp.Compile(anchored)
	if err != nil {
		return nil, malformed(expr, err)
	}
	return &Pattern{text: expr, expression: compiled, size: size}, nil
}

// parse parses an expression, which takes little whatever it repeats, and tells as how many instructions the parsing counts.
func parse(expr string) (parsed *syntax.Regexp, cost int64, err error) {
	if len(expr) > MaxLength {
		return nil, 0, refuse(expr, "has %d bytes, more than %d: shorten it", len(expr), MaxLength)
	}
	if cost = parseCost(expr); cost > MaxSize {
		return nil, 0, tooLarge(expr, cost)
	}
	if parsed, err = syntax.Parse(expr, syntax.Perl); err != nil {
		return nil, 0, malformed(expr, err)
	}
	return parsed, cost, nil
}

func tooLarge(expr string, size int64) error {
	return refuse(expr, "counts as %d instructions, more than %d: repeat less, such as with * or + in place of a counted {n}, "+
		"and use fewer classes of Unicode", size, MaxSize)
}

func malformed(expr string, err error) error {
	return refuse(expr, "is no regular expression: %s", problem(err))
}

// problem leaves out the part of the expression that the library quotes at full length.
func problem(err error) string {
	var invalid *syntax.Error
	if !errors.As(err, &invalid) {
		return "it cannot be parsed"
	}
	return invalid.Code.String() + " at " + quote(invalid.Expr)
}

// Size estimates as how many instructions an expression counts, without compiling it. It fails where Compile would.
func Size(expr string) (int64, error) {
	parsed, size, err := parse(expr)
	if err != nil {
		return 0, err
	}
	if size += programSize(parsed); size > MaxSize {
		return 0, tooLarge(expr, size)
	}
	return size, nil
}

// String returns the expression as the user wrote it.
func (p *Pattern) String() string { return p.text }

// MatchString tells whether a text matches. Use it for few and short texts, and Budget.Match for others.
func (p *Pattern) MatchString(text string) bool {
	if p.expression == nil {
		return p.text == text
	}
	return p.expression.MatchString(text)
}

// Match tells whether a text matches, and charges the work to the budget. It fails when nothing is left.
func (b *Budget) Match(p *Pattern, text string) (bool, error) {
	if p.expression == nil {
		return p.text == text, nil
	}
	if b.steps.Add(-p.size*int64(len(text)+1)) < 0 {
		return false, refuse(p.text, "is matched too often for its size: use fewer or simpler patterns, or lower counts in {n}")
	}
	return p.expression.MatchString(text), nil
}
