// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Rules of this package, as Problem.Rule. Converters add their own, those of registry+v1 by the numbers of its rule book.
const (
	RuleSyntax    = "syntax"    // the text is not YAML or JSON
	RuleLimit     = "limit"     // more than a limit allows
	RuleFile      = "file"      // the file is missing or not a file
	RuleRead      = "read"      // the file could not be read this time
	RuleIdentity  = "identity"  // an object does not say what it is
	RuleDuplicate = "duplicate" // two objects are the same one
	RuleValue     = "value"     // a value has the wrong type
)

// Problem is one reason why a bundle is refused. No field ever holds a value of a manifest, so that a Secret cannot
// leak through it; names, kinds, field paths and line numbers are what it may quote.
type Problem struct {
	// File is the path inside the bundle; empty when the problem is the bundle's or the options'.
	File string
	// Document counts the documents of File from 1; 0 means the file as a whole.
	Document int
	// Object is "Kind name", as far as known.
	Object string
	// Rule is the stable id of the rule that was broken.
	Rule string
	// Message says what is wrong, Remedy what to do about it. Neither ends in a full stop.
	Message, Remedy string
}

// String renders the problem as one line for people.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.place())
	b.WriteString(p.Message)
	if p.Remedy != "" {
		b.WriteString("; " + p.Remedy)
	}
	if p.Rule != "" {
		b.WriteString(" [" + p.Rule + "]")
	}
	return b.String()
}

func (p Problem) place() string {
	place := p.File
	if p.Document > 0 {
		place += " (document " + strconv.Itoa(p.Document) + ")"
	}
	if place != "" {
		place += ": "
	}
	if p.Object != "" {
		place += p.Object + ": "
	}
	return place
}

// Error is the list of all problems of a bundle: sorted, without repetitions, never empty.
type Error struct{ Problems []Problem }

// Error lists the problems, one a line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Permanent says whether the same bundle will be refused again: whatever is wrong lies in the bundle or the options, not in
// reading it.
func (e *Error) Permanent() bool {
	return !slices.ContainsFunc(e.Problems, func(p Problem) bool { return p.Rule == RuleRead })
}

// mostListed bounds the error of a bundle that was made to have millions of problems.
const mostListed = 1000

// AsError returns nil without problems, else an *Error with them sorted and without repetitions. What goes beyond a thousand
// is only counted.
func AsError(problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	sorted := slices.Clone(problems)
	slices.SortFunc(sorted, compareProblems)
	sorted = slices.Compact(sorted)
	if more := len(sorted) - mostListed; more > 0 {
		sorted = append(sorted[:mostListed:mostListed], Problem{Rule: RuleLimit, Message: "there are " + strconv.Itoa(more) + " more problems"})
	}
	return &Error{Problems: sorted}
}

func compareProblems(a, b Problem) int {
	return cmp.Or(
		cmp.Compare(a.File, b.File),
		cmp.Compare(a.Document, b.Document),
		cmp.Compare(a.Object, b.Object),
		cmp.Compare(a.Rule, b.Rule),
		cmp.Compare(a.Message, b.Message),
		cmp.Compare(a.Remedy, b.Remedy),
	)
}
