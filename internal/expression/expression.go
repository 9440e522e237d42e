// SPDX-License-Identifier: Apache-2.0

// Package expression evaluates what users write in the Common Expression Language (CEL), over objects that users wrote as
// well: the cost of an evaluation and the memory that it takes are bounded, whatever the two are.
package expression

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"
	"github.com/google/cel-go/interpreter"
)

// Expression is one that was read and can be evaluated. It is safe for concurrent use.
type Expression struct {
	text    string
	program cel.Program
}

// Error is about an expression that cannot be evaluated, with these data or with any.
type Error struct {
	// Text is the expression.
	Text string
	// Message says what is wrong, in one line.
	Message string
	// Expensive: the evaluation was stopped because it costs too much.
	Expensive bool
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("the expression %q: %s", shorten(e.Text), e.Message)
}

// mostQuoted is how much of an expression, and of what is wrong with it, a message has.
const mostQuoted = 200

// IsExpensive tells whether an evaluation was stopped because it costs too much.
func IsExpensive(err error) bool {
	var failed *Error
	return errors.As(err, &failed) && failed.Expensive
}

// Compile reads an expression with objects of these names as its only variables. An unknown name, and a result that is
// certainly no bool, are errors. The budget may be nil.
func Compile(budget *Budget, text string, objects ...string) (*Expression, error) {
	if err := budget.read(text, perChecked); err != nil {
		return nil, err
	}
	base, err := environment()
	if err != nil {
		return nil, err
	}
	variables := make([]cel.EnvOption, 0, len(objects))
	for _, name := range objects {
		variables = append(variables, cel.Variable(name, cel.MapType(cel.StringType, cel.DynType)))
	}
	env, err := base.Extend(variables...)
	if err != nil {
		return nil, fmt.Errorf("preparing CEL: %w", err)
	}
	return program(env, text, env.Compile)
}

// Parse reads an expression with the top-level fields of an object as variables. Which fields exist is known only when it
// is evaluated. The budget may be nil.
func Parse(budget *Budget, text string) (*Expression, error) {
	if err := budget.read(text, perParsed); err != nil {
		return nil, err
	}
	env, err := environment()
	if err != nil {
		return nil, err
	}
	return program(env, text, env.Parse)
}

// environment has the functions that Flux offers in its expressions, so that these can be taken over.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	env, err := cel.NewCustomEnv(
		standard(), boundedMatches(),
		cel.ParserRecursionLimit(mostNested), cel.HomogeneousAggregateLiterals(), cel.EagerlyValidateDeclarations(true), cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(), ext.Strings(), ext.Sets(), ext.Encoders(),
		guarding(keyFunction, "a key has to be a string, a number or a bool", isKey),
		guarding(optionalFunction, "an element after ? has to be an optional value", isOptional),
	)
	if err != nil {
		return nil, fmt.Errorf("preparing CEL: %w", err)
	}
	return env, nil
})

func program(env *cel.Env, text string, read func(string) (*cel.Ast, *cel.Issues)) (*Expression, error) {
	if len(text) > Longest {
		return nil, &Error{Text: text, Message: fmt.Sprintf("it has more than %d bytes", Longest)}
	}
	tree, issues := read(text)
	if issues.Err() != nil {
		return nil, &Error{Text: text, Message: inOneLine(issues.Err())}
	}
	if kind := tree.OutputType(); tree.IsChecked() && !kind.IsExactType(cel.BoolType) && !kind.IsExactType(cel.DynType) {
		return nil, &Error{Text: text, Message: fmt.Sprintf("it gives a %s, and has to give true or false", kind)}
	}
	guard(tree)
	// Without cel.OptOptimize, by which constant patterns would get around boundedMatches.
	made, err := env.Program(tree, cel.CustomDecoratorV2(plan))
	if err != nil {
		return nil, &Error{Text: text, Message: inOneLine(err)}
	}
	return &Expression{text: text, program: made}, nil
}

// Holds evaluates the expression. An *Error says that it has no answer for these data; any other error that the context ended. The
// budget may be nil.
func (e *Expression) Holds(ctx context.Context, budget *Budget, data map[string]any) (bool, error) {
	var value ref.Val
	var err, late error
	over := budget.evaluate(ctx, func(bounded context.Context, w *work) {
		value, _, err = e.program.ContextEval(bounded, withWork(data, w))
		late = bounded.Err()
	})
	var stopped interpreter.EvalCancelledError
	switch {
	case ctx.Err() != nil:
		return false, fmt.Errorf("evaluating %q: %w", e.text, ctx.Err())
	case over:
		return false, &Error{Text: e.text, Message: "it and the others of the object take too much work together: it was stopped", Expensive: true}
	case errors.As(err, &stopped), late != nil:
		return false, &Error{Text: e.text, Message: "it takes too much work, and was stopped", Expensive: true}
	case err != nil:
		return false, &Error{Text: e.text, Message: inOneLine(err)}
	}
	holds, ok := value.(types.Bool)
	if !ok {
		return false, &Error{Text: e.text, Message: fmt.Sprintf("it gives a %s, and has to give true or false", value.Type().TypeName())}
	}
	return bool(holds), nil
}

// inOneLine leaves out the picture of the expression that CEL draws below an error, and shortens the values that it quotes.
func inOneLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return shorten(strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(line), "ERROR: "), "<input>:"))
}

func shorten(text string) string {
	if len(text) <= mostQuoted {
		return text
	}
	return strings.ToValidUTF8(text[:mostQuoted], "") + "..."
}
