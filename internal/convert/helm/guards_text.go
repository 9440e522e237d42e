// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"fmt"
	"reflect"
	"strings"
)

// perParsed is how much more memory than text a parser takes at worst while it works, and what it makes of it.
const perParsed = 4

// guardParsed bounds a text that is parsed.
func guardParsed(m *meter, args []reflect.Value) error {
	text := args[0].String()
	if len(text) > mostParsed {
		return &stopped{fmt.Sprintf("a text of more than %d bytes is parsed", mostParsed), "read a smaller one"}
	}
	return m.make(int64(len(text)) * perParsed)
}

// guardYAML also bounds what aliases repeat.
func guardYAML(m *meter, args []reflect.Value) error {
	if err := guardParsed(m, args); err != nil {
		return err
	}
	if err := aliases([]byte(args[0].String()), m.limits); err != nil {
		return &stopped{"the aliases of a text in YAML expand to too much", "write the values out"}
	}
	return nil
}

// guardTOML also bounds how deep a text nests, which its parser does not.
func guardTOML(m *meter, args []reflect.Value) error {
	text, depth := args[0].String(), 0
	for _, c := range []byte(text) {
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(0, depth-1)
		}
		if depth > mostNesting {
			return errNest
		}
	}
	if longest := strings.Count(text, "."); longest > mostParsed/bytesPerStep {
		return errNest
	}
	return guardParsed(m, args)
}

// pattern bounds a regular expression: what a repetition such as {1000} makes of it, and the time that it takes.
func (m *meter) pattern(expression string, text int) error {
	if len(expression) > mostPattern {
		return fmt.Errorf("a regular expression is longer than %d bytes", mostPattern)
	}
	instructions := int64(len(expression))
	if strings.Contains(expression, "{") {
		instructions *= mostPattern
	}
	if err := m.step(instructions/4 + 1); err != nil {
		return err
	}
	return m.step(times(instructions, int64(text)) / bytesPerStep)
}

func guardRegex(m *meter, args []reflect.Value) error {
	return m.pattern(args[0].String(), args[1].Len())
}

// guardRegexList is for those that return a list of parts.
func guardRegexList(m *meter, args []reflect.Value) error {
	if err := m.make(times(int64(args[1].Len())+1, perValue)); err != nil {
		return err
	}
	return guardRegex(m, args)
}

// guardRegexReplace is for those that put a text in place of each match, which may hold the match many times.
func guardRegexReplace(m *meter, args []reflect.Value) error {
	if err := guardRegex(m, args); err != nil {
		return err
	}
	longest := times(int64(args[1].Len())+1, int64(args[2].Len())+1)
	if longest > m.made {
		return errMade
	}
	return m.read(longest)
}
