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
	// workLimit is how many steps one evaluation may take: about 0.1 s. Looking through the conditions of an object takes some
	// ten thousand.
	workLimit = 100_000_000
	// Longest is how many bytes an expression may have. The API says the same to who writes one.
	Longest = 4096
	// LongestEvaluation bounds an evaluation on a machine that is busy. It is looked at before every so many nodes.
	LongestEvaluation, checkEvery = time.Second, 16
	// mostNested is how deep an expression may be. To check the types of 480 brackets takes 20 s.
	mostNested = 40
	// longestPattern and longestMatched bound a regular expression and the string that it is matched with.
	longestPattern, longestMatched = 512, 64 << 10
	// mostSteps bounds the product of the instructions of the regular expression and the bytes of the string.
	mostSteps = workLimit / perMatched
)

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
