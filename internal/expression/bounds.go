// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/env"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/satchel-dev/satchel/internal/pattern"
)

const (
	// CostLimit of one evaluation, in CEL's units. Looking through the conditions of an object costs about a hundred.
	CostLimit = 100_000
	// Longest is how many bytes an expression may have. The API says the same to who writes one.
	Longest = 4096
	// longestEvaluation bounds what the units do not measure. It is looked at in each round of a loop: a round may take
	// long, with large texts.
	longestEvaluation, checkEvery = time.Second, 1
	// longestPattern and longestMatched bound a regular expression and the string that it is matched with.
	longestPattern, longestMatched = 512, 64 << 10
	// mostSteps bounds the product of the instructions of the regular expression and the bytes of the string: the work of one
	// call, which cannot be interrupted. It takes about 0.1 s.
	mostSteps = 10_000_000
)

// unbounded are functions with results up to the product of the sizes of their operands, computed before the cost is known:
// a short expression over one large string would take all memory.
var unbounded = []string{"replace", "join", "format", "strings.quote"}

// standard is the standard library, with matches in bounds.
func standard() cel.EnvOption {
	return cel.StdLib(cel.StdLibSubset(env.NewLibrarySubset().AddExcludedFunctions(env.NewFunction(overloads.Matches))))
}

// boundedMatches is the standard function matches. Package pattern judges the expression before it is compiled.
func boundedMatches() cel.EnvOption {
	texts := []*cel.Type{cel.StringType, cel.StringType}
	return cel.Function(overloads.Matches,
		cel.Overload(overloads.Matches, texts, cel.BoolType),
		cel.MemberOverload(overloads.MatchesString, texts, cel.BoolType),
		cel.SingletonBinaryBinding(matches, traits.MatcherType))
}

func matches(value, expr ref.Val) ref.Val {
	text, isText := value.(types.String)
	regular, isPattern := expr.(types.String)
	switch {
	case !isText || !isPattern:
		return types.MaybeNoSuchOverloadErr(value)
	case len(regular) > longestPattern || len(text) > longestMatched:
		return types.NewErr("matches takes patterns of at most %d bytes and strings of at most %d", longestPattern, longestMatched)
	}
	instructions, err := pattern.Size(string(regular))
	if err != nil {
		return types.WrapErr(err)
	}
	if instructions*int64(len(text)) > mostSteps {
		return types.NewErr("matches takes a pattern of %d instructions, as this one has, only for strings of at most %d bytes: repeat less",
			instructions, mostSteps/instructions)
	}
	compiled, err := pattern.Compile(string(regular), pattern.NewBudget())
	if err != nil {
		return types.WrapErr(err)
	}
	return types.Bool(compiled.MatchString(string(text)))
}

// costs charges each call for the texts and lists that it goes through or makes. CEL itself does so only where the types
// are known before: of objects without a schema they are not.
type costs struct{}

const (
	bytesPerUnit          = 10
	instructionsPerFactor = 4
)

// CallCost implements interpreter.ActualCostEstimator.
func (costs) CallCost(function, _ string, args []ref.Val, result ref.Val) *uint64 {
	var all uint64
	for _, value := range append([]ref.Val{result}, args...) {
		all += size(value)
	}
	cost := 1 + all/bytesPerUnit
	if function == overloads.Matches && len(args) == 2 {
		cost += size(args[0]) / bytesPerUnit * (1 + instructions(args[1])/instructionsPerFactor)
	}
	return &cost
}

// instructions of a regular expression; 0 for one that matches refuses.
func instructions(expr ref.Val) uint64 {
	regular, ok := expr.(types.String)
	if !ok || len(regular) > longestPattern {
		return 0
	}
	n, err := pattern.Size(string(regular))
	if err != nil {
		return 0
	}
	return uint64(n) //nolint:gosec // it is positive
}

// size of a text or a collection; 0 for everything else.
func size(value ref.Val) uint64 {
	sized, ok := value.(traits.Sizer)
	if !ok {
		return 0
	}
	n, ok := sized.Size().(types.Int)
	if !ok || n < 0 {
		return 0
	}
	return uint64(n)
}
