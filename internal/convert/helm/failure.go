// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"text/template"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// Bounds of what messages hold.
const (
	longestName    = 200
	longestMessage = 1000
)

// shorten keeps a text from spoiling a message.
func shorten(text string) string { return cut(text, longestName) }

func cut(text string, longest int) string {
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return text
}

// oneLine joins the lines of a text.
func oneLine(text string) string { return strings.Join(strings.Fields(printable(text)), " ") }

// failure is why a template could not be run.
type failure struct {
	file    string // the template that was run, or parsed
	err     error
	parsing bool
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// place is where a template was when it failed.
type place struct {
	file, line, at string
	function       string // that failed there, if one did
}

var (
	// executing begins the messages of text/template.
	executing = regexp.MustCompile(`(?s)^template: (.*?):(\d+):\d+: executing ".*?" at <(.*?)>: (.*)$`)
	// parsing begins those of its parser.
	unparsed = regexp.MustCompile(`(?s)^template: (.*?):(\d+): (.*)$`)
	// calling begins those of functions that fail.
	calling = regexp.MustCompile(`^error calling ([A-Za-z0-9_]+): `)
	// counters are what this package puts into templates.
	counters = regexp.MustCompile(` \| _[a-z]+`)
)

// problem says why a chart cannot be rendered: where, in the names of the bundle, and without values.
func (r *renderer) problem(err error) manifest.Problem {
	p := manifest.Problem{Rule: RuleHelm, Remedy: "correct the template, or the values"}
	var f *failure
	if errors.As(err, &f) {
		p.File = r.file(f.file)
		if f.parsing {
			p.Message, p.Remedy = r.parseFailure(f.err), "correct the template"
			return p
		}
	}
	where, cause := locate(err)
	var refused *refusal
	if errors.As(err, &refused) && refused.site != "" {
		where = []place{siteOf(refused.site)}
	}
	message, remedy := r.why(where, cause)
	if remedy != "" {
		p.Remedy = remedy
	}
	if s, ok := isStopped(err); ok {
		message, p.Rule, p.Remedy = s.message, manifest.RuleLimit, s.remedy
	}
	p.Message = cut(r.called(&p, where)+message, longestMessage)
	return p
}

// parseFailure is why a file is no template. What it quotes is the template's own text.
func (r *renderer) parseFailure(err error) string {
	match := unparsed.FindStringSubmatch(err.Error())
	if match == nil {
		return "this is no template"
	}
	return fmt.Sprintf("line %s: this is no template: %s", match[2], cut(oneLine(match[3]), longestName))
}

// locate follows an error to where it began: through the templates that call one another, to what was wrong there.
func locate(err error) ([]place, error) {
	var all []place
	for {
		var inner template.ExecError
		if !errors.As(err, &inner) {
			return all, err
		}
		next := errors.Unwrap(inner.Err)
		own := inner.Err.Error()
		if next != nil { // the rest is said again further in
			own = strings.TrimSuffix(own, next.Error())
		}
		match := executing.FindStringSubmatch(own)
		if match == nil {
			return all, inner.Err
		}
		here := place{file: match[1], line: match[2], at: counters.ReplaceAllString(match[3], "")}
		if name := calling.FindStringSubmatch(match[4]); name != nil {
			here.function = name[1]
		}
		all = append(all, here)
		if next == nil {
			return all, errors.New(match[4])
		}
		err = next
	}
}

// siteOf splits file:line:column.
func siteOf(site string) place {
	match := sites.FindStringSubmatch(site)
	if match == nil {
		return place{file: site}
	}
	return place{file: match[1], line: match[2]}
}

var sites = regexp.MustCompile(`(?s)^(.*):(\d+):\d+$`)

// called puts the place into a problem, and returns how the message begins.
func (r *renderer) called(p *manifest.Problem, where []place) string {
	for i := len(where) - 1; i >= 0; i-- {
		if where[i].file == tplName {
			continue // a text that is run has no file of its own
		}
		by := ""
		p.File = r.file(where[i].file)
		if first := where[0]; first.file != where[i].file && first.file != tplName {
			by = fmt.Sprintf(" (called by %s, line %s)", r.file(first.file), first.line)
		}
		return "line " + where[i].line + by + ": "
	}
	return ""
}

// why says what was wrong, and what to do where that is known.
func (r *renderer) why(where []place, cause error) (message, remedy string) {
	var refused *refusal
	var complained *complaint
	var text *misparsed
	switch {
	case errors.As(cause, &refused):
		return refused.Error(), remedies[refused.why]
	case errors.As(cause, &complained):
		return "the chart says: " + cut(oneLine(complained.text), longestMessage/2), "give the values that it asks for"
	case errors.As(cause, &text):
		return "a text that is run as a template by tpl is none", "correct the value, or the template"
	}
	return besides(where, plainly(cause.Error())), ""
}

// besides adds the function that failed, and the part of the template.
func besides(where []place, message string) string {
	if len(where) == 0 {
		return message
	}
	last := where[len(where)-1]
	if last.function != "" {
		message = "the function " + last.function + " fails: " + message
	}
	if last.file != tplName && !strings.HasPrefix(last.at, "_") {
		message += " at " + cut(oneLine(last.at), longestName)
	}
	return message
}

// remedies for refused functions.
var remedies = map[string]string{
	isRandom: "give the value that it would make up in spec.helm.values, or in a Secret that spec.helm.valuesFrom names",
	isClock:  "give the time in spec.helm.values",
}

// printsValue begins messages of text/template that print a value.
var printsValue = regexp.MustCompile(`(?s)(range can't iterate over|if/with can't use|can't use) .*`)

// plainly is a message of a library without what it quotes, which may be a value.
func plainly(message string) string {
	switch {
	case strings.HasPrefix(message, "no template ") || unknownTemplate.MatchString(message) || evaluating.MatchString(message):
		return cut(oneLine(message), longestName)
	}
	message = printsValue.ReplaceAllString(message, "$1 this value")
	return cut(oneLine(quoted.ReplaceAllString(message, "…")), longestName)
}

var (
	unknownTemplate = regexp.MustCompile(`^template "[^"]*" not defined$`)
	evaluating      = regexp.MustCompile(`^(nil pointer evaluating|can't evaluate field|map has no entry for key|wrong type for value; expected|wrong number of args for) [^"` + "`" + `]*("[^"]*")?[^"` + "`" + `]*$`)
)
