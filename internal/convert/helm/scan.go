// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"strings"
)

// Bounds of templates before they are parsed: a tree takes many times the memory of its text, and the time to find a
// variable grows with those there are.
const (
	mostActions      = 20_000  // in one file
	mostActionBytes  = 1 << 20 // in one file
	mostVariables    = 1000    // declared in one file
	mostNesting      = 200     // of actions, and of parentheses
	templateShare    = 2       // part of the limit on the manifests' size that all templates together may have
	allActionsFactor = 4       // times what one file may have, for all together
)

// actions is what stands between the braces of templates.
type actions struct{ count, bytes, variables int }

// scan counts the actions of a template, as the parser will find them.
func scan(text string) actions {
	var found actions
	for {
		at := strings.Index(text, "{{")
		if at < 0 {
			return found
		}
		text = text[at+2:]
		found.count++
		length := actionLength(text)
		found.bytes += length
		found.variables += strings.Count(text[:length], ":=")
		text = text[length:]
	}
}

// actionLength is how far an action goes: to the braces that close it, outside of quotes and comments.
func actionLength(text string) int {
	if body := strings.TrimLeft(strings.TrimPrefix(text, "-"), " \t\r\n"); strings.HasPrefix(body, "/*") {
		if end := strings.Index(body, "*/"); end >= 0 {
			return len(text) - len(body) + end
		}
		return len(text)
	}
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '}':
			if strings.HasPrefix(text[i:], "}}") {
				return i
			}
		case '"', '\'', '`':
			i = afterQuote(text, i)
		}
	}
	return len(text)
}

// afterQuote is where the quoted text that begins at an index ends.
func afterQuote(text string, at int) int {
	quote := text[at]
	for i := at + 1; i < len(text); i++ {
		switch {
		case text[i] == quote:
			return i
		case text[i] == '\\' && quote != '`':
			i++
		}
	}
	return len(text)
}

// check refuses what would take too much to parse.
func (a actions) check(factor int) error {
	switch {
	case a.count > mostActions*factor:
		return &stopped{"the templates have too many actions", "split the template, or the chart"}
	case a.bytes > mostActionBytes*factor:
		return &stopped{"the actions of the templates are too long", "split the template, or the chart"}
	case factor == 1 && a.variables > mostVariables:
		return &stopped{"a template declares more than a thousand variables", "split the template"}
	}
	return nil
}
