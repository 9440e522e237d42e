// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/satchel-dev/satchel/internal/convert/helm/message"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// longestMessage bounds a message.
const longestMessage = 1000

// place is where a template was when it failed.
type place struct {
	file, line, at string
	function       string // that failed there, if one did
}

// tplName is the name of texts that are run as templates, in messages of the engine.
const tplName = "gotpl"

var (
	// executing begins the messages of text/template.
	executing = regexp.MustCompile(`(?s)^template: (.*?):(\d+):\d+: executing ".*?" at <(.*?)>: (.*)$`)
	// traced are the messages of text/template as Helm's engine lays them out, where no function of its own failed.
	traced = regexp.MustCompile(`(?m)^(\S.*?):(\d+):\d+\n  executing ".*?" at <(.*)>:\n    (.*)$`)
	// unparsed is what Helm's engine makes of a message of the parser.
	unparsed = regexp.MustCompile(`(?s)^parse error at \((.*?):(\d+)(?::\d+)?\): (.*)$`)
	// calling begins those of functions that fail.
	calling = regexp.MustCompile(`^error calling ([A-Za-z0-9_]+): ?`)
	// unknown is the message of include for a name that no template has.
	unknown = regexp.MustCompile(`(?s)^template: no template (".*?") associated with template "gotpl"$`)
)

// What Helm's engine says, beside the place.
const (
	saysUnparsedText = "cannot parse template "
	saysRecursion    = "rendering template has a nested reference name: "
	saysBroken       = "rendering template failed: "
)

// problem says why a chart cannot be rendered: where, in the names of the bundle, and without values.
func (r *renderer) problem(err error) manifest.Problem {
	p := manifest.Problem{Rule: message.Rule, Remedy: "correct the template, or the values"}
	if match := unparsed.FindStringSubmatch(err.Error()); match != nil {
		p.File, p.Remedy = r.file(match[1]), "correct the template"
		p.Message = fmt.Sprintf("line %s: this is no template: %s", match[2], message.Cut(message.OneLine(match[3]), message.MaxQuoted))
		return p
	}
	where, cause := locate(err)
	text, remedy := r.why(where, cause)
	if remedy != "" {
		p.Remedy = remedy
	}
	p.Message = message.Cut(r.called(&p, where)+text, longestMessage)
	return p
}

// locate follows an error to where it began: through the templates that call one another, to what was wrong there.
func locate(err error) ([]place, error) {
	var all []place
	for {
		var inner template.ExecError
		if !errors.As(err, &inner) {
			if len(all) == 0 {
				return locateTraced(err)
			}
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
		all = append(all, placeOf(match))
		if next == nil {
			return all, errors.New(match[4])
		}
		err = next
	}
}

// locateTraced is locate for an error that the engine has laid out as text.
func locateTraced(err error) ([]place, error) {
	text := err.Error()
	matches := traced.FindAllStringSubmatch(text, -1)
	if matches == nil {
		return nil, err
	}
	var all []place
	for _, match := range matches {
		all = append(all, placeOf(match))
	}
	_, last, _ := strings.Cut(text[strings.LastIndex(text, matches[len(matches)-1][0]):], ">:\n")
	if _, after, found := strings.Cut(last, "\n"); found && strings.HasPrefix(after, "template: ") {
		last = after // what was called has no place of its own
	}
	return all, errors.New(strings.TrimSpace(last))
}

func placeOf(match []string) place {
	here := place{file: match[1], line: match[2], at: match[3]}
	if name := calling.FindStringSubmatch(match[4]); name != nil {
		here.function = name[1]
	}
	return here
}

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
func (r *renderer) why(where []place, cause error) (why, remedy string) {
	var refused *refusal
	var complained *complaint
	text := cause.Error()
	switch {
	case errors.As(cause, &refused):
		return refused.Error(), remedies[refused.why]
	case errors.As(cause, &complained) && r.secret:
		return "the chart refuses the values; what it says is not shown, because values come from Secrets", remedyWithheld
	case errors.As(cause, &complained):
		return "the chart says: " + message.Cut(message.OneLine(complained.text), longestMessage/2), "give the values that it asks for"
	case strings.HasPrefix(text, saysUnparsedText):
		return "a string that tpl runs as a template is not a valid template", "correct the value, or the template"
	case strings.HasPrefix(text, saysRecursion):
		return "the templates call one another without an end, or too deep", "end the recursion"
	case strings.HasPrefix(text, saysBroken):
		return "it broke off", "correct the template"
	case r.secret && !ofTemplate(where, cause):
		return besides(where, "the template fails, and why is not shown, because values come from Secrets"), remedyWithheld
	}
	if name := unknown.FindStringSubmatch(text); name != nil {
		return besides(where, "no template "+message.Cut(message.OneLine(name[1]), message.MaxQuoted)+" is defined"), ""
	}
	return besides(where, plainly(text)), ""
}

// ofTemplate tells whether a message is about a field or template that the files of the chart name, and so holds no value.
func ofTemplate(where []place, cause error) bool {
	values := func(p place) bool { return p.file == tplName }
	return !slices.ContainsFunc(where, values) && evaluating.MatchString(cause.Error())
}

// remedyWithheld tells how to read what is withheld.
const remedyWithheld = "run satchel render with values of your own to read it"

// besides adds the function that failed, and the part of the template.
func besides(where []place, text string) string {
	if len(where) == 0 {
		return text
	}
	last := where[len(where)-1]
	if last.function != "" {
		text = "the function " + last.function + " fails: " + text
	}
	if last.file != tplName {
		text += " at " + message.Cut(message.OneLine(last.at), message.MaxQuoted)
	}
	return text
}

// printsValue begins messages of text/template that print a value.
var printsValue = regexp.MustCompile(`(?s)(range can't iterate over|if/with can't use|can't use) .*`)

// plainly is a message of a library without what it quotes, which may be a value.
func plainly(text string) string {
	switch {
	case unknownTemplate.MatchString(text) || evaluating.MatchString(text):
		return message.Cut(message.OneLine(text), message.MaxQuoted)
	}
	text = printsValue.ReplaceAllString(text, "$1 this value")
	return message.Cut(message.OneLine(message.Quoted.ReplaceAllString(text, "…")), message.MaxQuoted)
}

var (
	unknownTemplate = regexp.MustCompile(`^template "[^"]*" not defined$`)
	evaluating      = regexp.MustCompile(`^(nil pointer evaluating|can't evaluate field|map has no entry for key|wrong type for value; expected|wrong number of args for) [^"` + "`" + `]*("[^"]*")?[^"` + "`" + `]*$`)
)
