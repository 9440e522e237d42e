// SPDX-License-Identifier: Apache-2.0

package ignore

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// Each file is compared with each pattern, and a wildcard with each character of a name, so that all are bounded. The
// bounds are several times what lists of real repositories hold.
const (
	mostPatterns  = 200
	mostAsterisks = 500 // of all patterns
	mostDeep      = 10  // "**" of all patterns
	mostParts     = 16  // of a pattern with "**"
)

// pattern is one line of a list, as gitignore(5) defines it.
type pattern struct {
	back    bool     // "!": takes back in
	folders bool     // matches folders only
	parts   []string // of path.Match, or "**"
}

const deep = "**"

// parse reads a list, one pattern on a line.
func parse(list string) ([]pattern, error) {
	var patterns []pattern
	asterisks, deeps := 0, 0
	number := 0
	for line := range strings.Lines(list) {
		number++
		text := trimmed(line)
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		p, err := parseLine(text)
		if err != nil {
			return nil, fetch.Errorf(fetch.Refused, "ignore: the pattern %s in line %d %w", fetch.Quote(text), number, err)
		}
		patterns = append(patterns, p)
		asterisks += strings.Count(text, "*")
		deeps += strings.Count(text, deep)
	}
	for _, bound := range []struct {
		what       string
		have, most int
	}{{"patterns", len(patterns), mostPatterns}, {"asterisks", asterisks, mostAsterisks}, {`times "**"`, deeps, mostDeep}} {
		if bound.have > bound.most {
			return nil, fetch.Errorf(fetch.Refused, "ignore: it has %d %s, and at most %d are possible", bound.have, bound.what, bound.most)
		}
	}
	return patterns, nil
}

// trimmed is a line without its end and the blanks before it, unless a backslash keeps the last one.
func trimmed(line string) string {
	line = strings.TrimRight(line, "\r\n")
	bare := strings.TrimRight(line, " ")
	if strings.HasSuffix(bare, `\`) && len(line) > len(bare) {
		return bare + " "
	}
	return bare
}

// parseLine reads a pattern. One with a slash that is not its last character is about paths from the root, another
// one about names anywhere.
func parseLine(text string) (pattern, error) {
	var p pattern
	if text, p.back = strings.CutPrefix(text, "!"); p.back && text == "" {
		return p, errors.New("takes back nothing: write what after the exclamation mark")
	}
	text, p.folders = strings.CutSuffix(text, "/")
	rooted := strings.Contains(text, "/")
	for part := range strings.SplitSeq(strings.TrimPrefix(text, "/"), "/") {
		part = strings.ReplaceAll(part, "[!", "[^")
		if part == "" {
			return p, errors.New("has an empty part: write one slash")
		}
		if _, err := path.Match(part, ""); err != nil {
			return p, errors.New("is malformed: a bracket is not closed, or it ends in a backslash")
		}
		if part != deep || len(p.parts) == 0 || p.parts[len(p.parts)-1] != deep {
			p.parts = append(p.parts, part)
		}
	}
	if !rooted {
		p.parts = []string{deep, p.parts[0]}
		return p, nil
	}
	if slices.Contains(p.parts, deep) && len(p.parts) > mostParts {
		return p, fmt.Errorf("has %d parts, and at most %d are possible with **", len(p.parts), mostParts)
	}
	return p, nil
}

// matches tells whether a path, in its parts, is what the pattern names; what lies below that is not.
func (p pattern) matches(parts []string, isFolder bool) bool {
	if p.folders && !isFolder {
		return false
	}
	if len(p.parts) == 2 && p.parts[0] == deep && p.parts[1] != deep { // a name anywhere
		return matched(p.parts[1], parts[len(parts)-1])
	}
	reached := p.skip(make([]bool, len(p.parts)+1), 0)
	for _, part := range parts {
		next := make([]bool, len(p.parts)+1)
		for i, want := range p.parts {
			switch {
			case !reached[i]:
			case want == deep:
				next = p.skip(next, i)
				next[len(p.parts)] = next[len(p.parts)] || i == len(p.parts)-1
			case matched(want, part):
				next = p.skip(next, i+1)
			}
		}
		reached = next
	}
	return reached[len(p.parts)]
}

// skip marks what is reached with part i: "**" stands for no folder as well, but at the end for something.
func (p pattern) skip(reached []bool, i int) []bool {
	reached[i] = true
	if i < len(p.parts)-1 && p.parts[i] == deep {
		reached[i+1] = true
	}
	return reached
}

func matched(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}
