// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// CEL's own tracking of the cost charges a call after it has returned, and looks at the time between the rounds of a loop: neither
// interrupts a call that takes a minute. So every node of an expression is planned as one that charges its cost before it is
// evaluated, a call with all that its function may do with the arguments.

// work is what one evaluation took, and may take, in steps. An evaluation runs in one goroutine.
type work struct {
	ctx         context.Context //nolint:containedctx // of one evaluation, which has no other way to its nodes
	spent, most uint64
	charges     uint64
}

// workVariable is the variable with the work of an evaluation. An expression cannot name it.
const workVariable = "@work"

// charge ends the evaluation if the steps are more than what is left, or its time is over. It panics, as CEL's own tracking does,
// and the program recovers: an operator such as || would go on after an error.
func (w *work) charge(steps uint64) {
	if steps > w.left() {
		w.spent = w.most
		panic(interpreter.EvalCancelledError{Cause: interpreter.CostLimitExceeded, Message: "it would take too much work"}) //nolint:forbidigo // see above
	}
	w.spent += steps
	if w.charges++; w.charges%checkEvery == 0 && w.ctx.Err() != nil {
		panic(interpreter.EvalCancelledError{Cause: interpreter.ContextCancelled, Message: "the time is over"}) //nolint:forbidigo // see above
	}
}

func (w *work) left() uint64 { return w.most - w.spent }

// workOf finds the work of an evaluation.
func workOf(frame *interpreter.ExecutionFrame) *work {
	found, _ := frame.ResolveName(workVariable)
	return found.(*work) //nolint:errcheck,forcetypeassert // Holds added it
}

// withWork adds the work of an evaluation to its data.
func withWork(data map[string]any, w *work) map[string]any {
	all := make(map[string]any, len(data)+1)
	maps.Copy(all, data)
	all[workVariable] = w
	return all
}

// implementations are the functions of the environment, by the id of an overload and by name, as CEL dispatches them.
var implementations = sync.OnceValues(func() (map[string]*functions.Overload, error) {
	env, err := environment()
	if err != nil {
		return nil, err
	}
	all := map[string]*functions.Overload{}
	for name, function := range env.Functions() {
		bindings, err := function.Bindings()
		if err != nil {
			return nil, fmt.Errorf("preparing the function %s of CEL: %w", name, err)
		}
		for _, binding := range bindings {
			all[binding.Operator] = binding
		}
	}
	all[operators.Equals] = &functions.Overload{Binary: types.Equal}
	all[operators.NotEquals] = &functions.Overload{Binary: func(a, b ref.Val) ref.Val { return types.Bool(types.Equal(a, b) != types.True) }}
	return all, nil
})

// guard calls functions that let only some types through, for the values that choose an element and those of optional elements.
// CEL prints another value than the expected one in its error, at full length.
func guard(tree *cel.Ast) {
	factory := ast.NewExprFactory()
	by := func(e ast.Expr, function string) {
		if e.Kind() != ast.LiteralKind {
			e.SetKindCase(factory.NewCall(e.ID(), function, factory.CopyExpr(e)))
		}
	}
	ast.PostOrderVisit(tree.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.CallKind:
			call := e.AsCall()
			if name := call.FunctionName(); len(call.Args()) == 2 && (name == operators.Index || name == operators.OptIndex) {
				by(call.Args()[1], keyFunction)
			}
		case ast.ListKind:
			for _, i := range e.AsList().OptionalIndices() {
				by(e.AsList().Elements()[i], optionalFunction)
			}
		case ast.MapKind:
			for _, entry := range e.AsMap().Entries() {
				by(entry.AsMapEntry().Key(), keyFunction)
				if entry.AsMapEntry().IsOptional() {
					by(entry.AsMapEntry().Value(), optionalFunction)
				}
			}
		}
	}))
}

// An expression cannot name these functions.
const keyFunction, optionalFunction = "@key", "@optional"

// guarding declares a function that returns its argument, if that is permitted.
func guarding(name, says string, permits func(ref.Val) bool) cel.EnvOption {
	return cel.Function(name, cel.Overload(name, []*cel.Type{cel.DynType}, cel.DynType, cel.UnaryBinding(func(value ref.Val) ref.Val {
		if permits(value) {
			return value
		}
		return types.NewErr("%s, not a %s", says, value.Type().TypeName())
	})))
}

// plan is an interpreter.InterpretableDecoratorV2.
func plan(node interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	switch of := node.(type) {
	case interpreter.InterpretableConst:
		return node, nil
	case interpreter.InterpretableAttribute:
		return chargedAttribute{of}, nil
	case interpreter.InterpretableCall:
		return planCall(of)
	case interpreter.InterpretableConstructor:
		if kind := of.Type(); kind != types.ListType && kind != types.MapType {
			return nil, fmt.Errorf("messages such as %s are not offered here", kind.TypeName())
		}
	}
	return chargedNode{node}, nil
}

// planCall refuses a function without a known cost.
func planCall(of interpreter.InterpretableCall) (interpreter.InterpretableV2, error) {
	cost, known := costs[of.Function()]
	if !known {
		return nil, fmt.Errorf("there is no function %s here", of.Function())
	}
	all, err := implementations()
	if err != nil {
		return nil, err
	}
	implementation := cmp.Or(all[of.OverloadID()], all[of.Function()], &functions.Overload{})
	return &chargedCall{InterpretableCall: of, args: of.Args(), cost: cost, of: implementation}, nil
}

// chargedAttribute is a variable, a field or an element.
type chargedAttribute struct {
	interpreter.InterpretableAttribute
}

// Eval implements interpreter.Interpretable.
func (a chargedAttribute) Eval(vars interpreter.Activation) ref.Val {
	return a.Exec(interpreter.AsFrame(vars))
}

// Exec implements interpreter.InterpretableV2.
func (a chargedAttribute) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	workOf(frame).charge(perNode)
	return a.InterpretableAttribute.Exec(frame)
}

// chargedNode is any other node, which does nothing but evaluate others.
type chargedNode struct{ interpreter.InterpretableV2 }

// Eval implements interpreter.Interpretable.
func (n chargedNode) Eval(vars interpreter.Activation) ref.Val {
	return n.Exec(interpreter.AsFrame(vars))
}

// Exec implements interpreter.InterpretableV2.
func (n chargedNode) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	workOf(frame).charge(perNode)
	return n.InterpretableV2.Exec(frame)
}

// chargedCall is a call that charges its cost before it is made.
type chargedCall struct {
	interpreter.InterpretableCall
	args []interpreter.InterpretableV2
	cost cost
	of   *functions.Overload
}

// Eval implements interpreter.Interpretable.
func (c *chargedCall) Eval(vars interpreter.Activation) ref.Val {
	return c.Exec(interpreter.AsFrame(vars))
}

// Exec implements interpreter.InterpretableV2, as the nodes of CEL do, but for the charge.
func (c *chargedCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	args := make([]ref.Val, len(c.args))
	for i, arg := range c.args {
		args[i] = arg.Exec(frame)
		if !c.of.NonStrict && types.IsUnknownOrError(args[i]) {
			return args[i]
		}
	}
	w := workOf(frame)
	w.charge(c.cost(args, w.left()))
	return types.LabelErrNode(c.ID(), c.invoke(args))
}

func (c *chargedCall) invoke(args []ref.Val) ref.Val {
	of := c.of
	fits := of.OperandTrait == 0 || len(args) > 0 && (of.NonStrict && types.IsUnknownOrError(args[0]) || args[0].Type().HasTrait(of.OperandTrait))
	switch {
	case len(args) == 1 && of.Unary != nil && fits:
		return of.Unary(args[0])
	case len(args) == 2 && of.Binary != nil && fits:
		return of.Binary(args[0], args[1])
	case of.Function != nil && fits:
		return of.Function(args...)
	}
	if len(args) > 0 {
		if receiver, ok := args[0].(traits.Receiver); ok {
			return receiver.Receive(c.Function(), c.OverloadID(), args[1:])
		}
	}
	return types.NewErr("no such overload: %s", c.Function())
}

func isKey(value ref.Val) bool {
	switch value.(type) {
	case types.String, types.Int, types.Uint, types.Double, types.Bool:
		return true
	}
	return false
}

func isOptional(value ref.Val) bool {
	_, ok := value.(*types.Optional)
	return ok
}
