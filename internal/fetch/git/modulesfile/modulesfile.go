// SPDX-License-Identifier: Apache-2.0

// Package modulesfile reads .gitmodules: the URL of each submodule, by its path. It follows no URL.
package modulesfile

import (
	"bytes"
	"maps"
	"regexp"
	"strings"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// Parse returns the URLs in a .gitmodules file by path. Its other settings (update, branch) are for people who work
// in the repository. Of git's syntax (git-config(1)) the unusual parts are refused: values over several lines, and settings
// in the line of a section's name.
func Parse(content []byte) (map[string]string, error) {
	sections := map[string]map[string]string{}
	var present map[string]string // nil in sections that do not matter
	number := 0
	for raw := range bytes.Lines(bytes.TrimPrefix(content, []byte("\ufeff"))) {
		number++
		line := strings.TrimLeft(strings.TrimSuffix(strings.TrimSuffix(string(raw), "\n"), "\r"), " \t")
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case line[0] == '[':
			name, matters, ok := sectionName(line)
			if !ok {
				return nil, malformedLine(number)
			}
			present = nil
			if matters {
				if sections[name] == nil {
					sections[name] = map[string]string{}
				}
				present = sections[name]
			}
		default:
			key, value, ok := setting(line)
			if !ok {
				return nil, malformedLine(number)
			}
			if present != nil {
				present[key] = value
			}
		}
	}
	return byPath(maps.Values(sections))
}

func malformedLine(number int) error {
	return fetch.Errorf(fetch.InvalidContent, "line %d is malformed", number)
}

// byPath turns the settings of submodules into URLs by path.
func byPath(modules func(func(map[string]string) bool)) (map[string]string, error) {
	urls := map[string]string{}
	for module := range modules {
		where := module["path"]
		if _, twice := urls[where]; twice {
			return nil, fetch.Errorf(fetch.InvalidContent, "it has the path %s twice", fetch.Quote(where))
		}
		if where != "" {
			urls[where] = module["url"]
		}
	}
	return urls, nil
}

// section matches the name of a section, with or without one of a subsection.
var section = regexp.MustCompile(`^\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\]|\\.)*)")?\][ \t]*([#;].*)?$`)

// sectionName returns the name of a submodule; false for other sections.
func sectionName(line string) (name string, matters, ok bool) {
	match := section.FindStringSubmatchIndex(line)
	if match == nil {
		return "", false, false
	}
	if match[4] < 0 || !strings.EqualFold(line[match[2]:match[3]], "submodule") {
		return "", false, true
	}
	return unescaped.ReplaceAllString(line[match[4]:match[5]], "$1"), true, true
}

// unescaped takes the backslash off in the name of a subsection, where it means only the character after it.
var unescaped = regexp.MustCompile(`\\(.)`)

// key matches the name of a setting.
var key = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9-]*)[ \t]*(=|$|[#;])`)

// setting reads "key = value". A key alone stands for true.
func setting(line string) (name, value string, ok bool) {
	match := key.FindStringSubmatch(line)
	if match == nil {
		return "", "", false
	}
	name = strings.ToLower(match[1])
	if match[2] != "=" {
		return name, "true", true
	}
	value, ok = settingValue(strings.TrimLeft(line[len(match[0]):], " \t"))
	return name, value, ok
}

// escapes are those of values.
var escapes = map[byte]byte{'n': '\n', 't': '\t', 'b': '\b', '"': '"', '\\': '\\'}

// settingValue takes quotes, escapes and a comment off.
func settingValue(text string) (string, bool) {
	var value []byte
	kept, quoted := 0, false // spaces after kept are dropped when nothing follows
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '"':
			quoted = !quoted
			continue
		case !quoted && (c == '#' || c == ';'):
			return string(value[:kept]), true
		case c == '\\':
			if i++; i == len(text) || escapes[text[i]] == 0 {
				return "", false
			}
			c = escapes[text[i]]
			value = append(value, c)
			kept = len(value)
			continue
		}
		value = append(value, c)
		if quoted || c != ' ' && c != '\t' {
			kept = len(value)
		}
	}
	return string(value[:kept]), !quoted
}
