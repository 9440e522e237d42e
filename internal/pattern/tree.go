// SPDX-License-Identifier: Apache-2.0

package pattern

import (
	"regexp"
	"regexp/syntax"
	"strings"
)

// What parsing takes, as instructions: a class of Unicode, such as \pL, has hundreds of ranges, and merging classes is
// quadratic (25 ms for 255 of them); a range that ignores case is folded one character at a time (up to 5 ms a range).
const (
	classCost = 64
	foldCost  = 1024
)

var (
	ignoresCase = regexp.MustCompile(`\(\?[a-zA-Z]*i`)
	wideRange   = regexp.MustCompile(`-(\\|[^\x00-\x7f])`)
)

// parseCost reads only the text. It may count too much, never too little.
func parseCost(expr string) int64 {
	cost := classCost * int64(strings.Count(expr, `\p`)+strings.Count(expr, `\P`))
	if ignoresCase.MatchString(expr) {
		cost += foldCost * int64(len(wideRange.FindAllStringIndex(expr, -1)))
	}
	return cost
}

// maxEstimate is where estimates end: far above every limit, and far below what overflows when it is multiplied.
const maxEstimate = 1 << 30

// programSize is at least the number of instructions that an expression compiles to. The library writes counted repetitions
// out, so what is repeated counts as often.
func programSize(expression *syntax.Regexp) int64 {
	const startAndEnd = 2 // the program's own: fail and match
	return saturate(startAndEnd + size(expression))
}

func size(e *syntax.Regexp) int64 {
	switch e.Op {
	case syntax.OpLiteral:
		return max(1, int64(len(e.Rune)))
	case syntax.OpCapture, syntax.OpStar:
		return saturate(2 + size(e.Sub[0]))
	case syntax.OpPlus, syntax.OpQuest:
		return saturate(1 + size(e.Sub[0]))
	case syntax.OpConcat:
		return sizes(e.Sub)
	case syntax.OpAlternate:
		return saturate(sizes(e.Sub) + int64(len(e.Sub)))
	case syntax.OpRepeat:
		return repeated(e)
	default:
		return 1
	}
}

func sizes(parts []*syntax.Regexp) int64 {
	total := int64(0)
	for _, part := range parts {
		total = saturate(total + size(part))
	}
	return max(1, total)
}

// repeated counts x{2,5} as xx(x(x(x)?)?)? and x{2,} as xx+.
func repeated(e *syntax.Regexp) int64 {
	once := size(e.Sub[0])
	if e.Max < 0 {
		return saturate(2 + int64(max(1, e.Min))*once)
	}
	return saturate(max(1, int64(e.Max)*once+int64(e.Max-e.Min)))
}

func saturate(n int64) int64 { return min(n, maxEstimate) }
