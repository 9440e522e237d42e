// SPDX-License-Identifier: Apache-2.0

package valueset

import (
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
)

// longestPattern bounds the patterns that are understood. Longer ones are compared as text.
const longestPattern = 4096

// patterns that match every string are left out.
func patterns(n map[string]any) {
	pattern, _ := n["pattern"].(string)
	if expression := parsed(pattern); expression != nil && matchesAll(expression) {
		delete(n, "pattern")
	}
}

// samePattern tells whether two patterns differ in groups and the notation of classes only.
func samePattern(a, b string) bool {
	one, other := parsed(a), parsed(b)
	return one != nil && other != nil && one.Equal(other)
}

// parsed is the expression of a pattern, without groups; nil when it has none.
func parsed(pattern string) *syntax.Regexp {
	if pattern == "" || len(pattern) > longestPattern {
		return nil
	}
	expression, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil
	}
	plain, err := syntax.Parse(withoutGroups(expression).String(), syntax.Perl)
	if err != nil {
		return nil
	}
	return plain
}

// withoutGroups replaces groups by what is in them.
func withoutGroups(expression *syntax.Regexp) *syntax.Regexp {
	for expression.Op == syntax.OpCapture {
		expression = expression.Sub[0]
	}
	for i, sub := range expression.Sub {
		expression.Sub[i] = withoutGroups(sub)
	}
	return expression
}

// sequence are the parts of an expression that follow each other.
func sequence(expression *syntax.Regexp) []*syntax.Regexp {
	if expression.Op == syntax.OpConcat {
		return expression.Sub
	}
	return []*syntax.Regexp{expression}
}

// anchored splits off the beginning and the end of the text.
func anchored(expression *syntax.Regexp) (inner []*syntax.Regexp, begins, ends bool) {
	inner = sequence(expression)
	if len(inner) > 0 && inner[0].Op == syntax.OpBeginText {
		begins, inner = true, inner[1:]
	}
	if len(inner) > 0 && inner[len(inner)-1].Op == syntax.OpEndText {
		ends, inner = true, inner[:len(inner)-1]
	}
	return inner, begins, ends
}

// matchesAll tells whether the expression matches every string: between both ends of it there is
// any text, or, with one of them, something that may be empty.
func matchesAll(expression *syntax.Regexp) bool {
	inner, begins, ends := anchored(expression)
	if begins && ends {
		return len(inner) == 1 && inner[0].Op == syntax.OpStar && anyCharacter(inner[0].Sub[0])
	}
	return !slices.ContainsFunc(inner, func(part *syntax.Regexp) bool { return !mayBeEmpty(part) })
}

func anyCharacter(expression *syntax.Regexp) bool {
	return expression.Op == syntax.OpAnyChar ||
		expression.Op == syntax.OpCharClass && slices.Equal(expression.Rune, []rune{0, unicode.MaxRune})
}

func mayBeEmpty(expression *syntax.Regexp) bool {
	switch expression.Op {
	case syntax.OpEmptyMatch, syntax.OpStar, syntax.OpQuest:
		return true
	case syntax.OpRepeat:
		return expression.Min == 0 || mayBeEmpty(expression.Sub[0])
	case syntax.OpPlus, syntax.OpCapture:
		return mayBeEmpty(expression.Sub[0])
	case syntax.OpConcat:
		return !slices.ContainsFunc(expression.Sub, func(sub *syntax.Regexp) bool { return !mayBeEmpty(sub) })
	case syntax.OpAlternate:
		return slices.ContainsFunc(expression.Sub, mayBeEmpty)
	}
	return false
}

// language lists all strings that match a pattern, when they are few.
func language(pattern string) (all []string, few bool) {
	expression := parsed(pattern)
	if expression == nil {
		return nil, false
	}
	inner, begins, ends := anchored(expression)
	if !begins || !ends {
		return nil, false
	}
	all = []string{""}
	for _, part := range inner {
		if all, few = followed(all, part); !few {
			return nil, false
		}
	}
	return all, true
}

// words of an expression, when they are few.
func words(of *syntax.Regexp) (all []string, few bool) {
	switch of.Op {
	case syntax.OpEmptyMatch:
		return []string{""}, true
	case syntax.OpLiteral:
		return []string{string(of.Rune)}, of.Flags&syntax.FoldCase == 0
	case syntax.OpCharClass:
		for i := 0; i+1 < len(of.Rune); i += 2 {
			for c := of.Rune[i]; c <= of.Rune[i+1]; c++ {
				if all = append(all, string(c)); len(all) > mostValues {
					return nil, false
				}
			}
		}
		return all, true
	case syntax.OpQuest:
		all, few = words(of.Sub[0])
		return append([]string{""}, all...), few
	case syntax.OpConcat:
		all = []string{""}
		for _, sub := range of.Sub {
			if all, few = followed(all, sub); !few {
				return nil, false
			}
		}
		return all, true
	case syntax.OpAlternate:
		for _, sub := range of.Sub {
			more, few := words(sub)
			if all = append(all, more...); !few || len(all) > mostValues {
				return nil, false
			}
		}
		return all, true
	}
	return nil, false
}

func followed(all []string, by *syntax.Regexp) (longer []string, few bool) {
	ends, few := words(by)
	if !few || len(all)*len(ends) > mostValues {
		return nil, false
	}
	for _, begin := range all {
		for _, end := range ends {
			longer = append(longer, strings.Join([]string{begin, end}, ""))
		}
	}
	return longer, true
}

// lengths are the least and the most characters of the strings that an expression matches; most is -1
// where there is no bound.
func lengths(pattern string) (least, most int) {
	expression := parsed(pattern)
	if expression == nil {
		return 0, -1
	}
	inner, begins, ends := anchored(expression)
	for _, part := range inner {
		fewest, largest := widths(part)
		least += fewest
		most = sum(most, largest)
	}
	if !begins || !ends {
		most = -1
	}
	return least, most
}

func widths(of *syntax.Regexp) (least, most int) {
	switch of.Op {
	case syntax.OpLiteral:
		return len(of.Rune), len(of.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 1, 1
	case syntax.OpEmptyMatch, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary, syntax.OpBeginLine, syntax.OpEndLine:
		return 0, 0
	case syntax.OpQuest:
		_, most = widths(of.Sub[0])
		return 0, most
	case syntax.OpPlus:
		least, _ = widths(of.Sub[0])
		return least, -1
	case syntax.OpRepeat:
		least, most = widths(of.Sub[0])
		if most *= of.Max; of.Max < 0 || most < 0 {
			most = -1
		}
		return least * of.Min, most
	case syntax.OpConcat:
		for _, sub := range of.Sub {
			fewest, largest := widths(sub)
			least, most = least+fewest, sum(most, largest)
		}
		return least, most
	case syntax.OpAlternate:
		return widthsOfAny(of.Sub)
	}
	return 0, -1
}

func widthsOfAny(ways []*syntax.Regexp) (least, most int) {
	for i, way := range ways {
		fewest, largest := widths(way)
		switch {
		case i == 0:
			least, most = fewest, largest
		case most < 0 || largest < 0:
			least, most = min(least, fewest), -1
		default:
			least, most = min(least, fewest), max(most, largest)
		}
	}
	return least, most
}

func sum(a, b int) int {
	if a < 0 || b < 0 {
		return -1
	}
	return a + b
}
