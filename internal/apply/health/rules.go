// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/expression"
)

// Expressions are CEL expressions of users about the objects of a kind. Empty ones are never true.
type Expressions struct {
	Kind                        schema.GroupVersionKind
	InProgress, Failed, Current string
}

// Rules say when objects of some kinds are healthy. The zero value
// uses their status, as kstatus reads it.
type Rules struct {
	// Everything: read all objects, as they may not exist: also those that are healthy as soon as they do.
	Everything bool

	byKind map[schema.GroupVersionKind][]verdict
	budget *expression.Budget
}

// verdict is the state of an object when an expression is true; State is empty for healthy.
type verdict struct {
	name  string
	holds *expression.Expression
	state State
}

// NewRules compiles expressions; the error names the first that is invalid. The budget bounds what they take, and may be nil.
func NewRules(all []Expressions, budget *expression.Budget) (Rules, error) {
	rules := Rules{byKind: map[schema.GroupVersionKind][]verdict{}, budget: budget}
	for _, of := range all {
		var verdicts []verdict
		for _, v := range []struct {
			name, text string
			state      State
		}{{"inProgress", of.InProgress, InProgress}, {"failed", of.Failed, Failed}, {"current", of.Current, ""}} {
			if v.text == "" {
				continue
			}
			read, err := expression.Parse(budget, v.text)
			if err != nil {
				return Rules{}, fmt.Errorf("%s of %s %s: %w", v.name, of.Kind.GroupVersion(), of.Kind.Kind, err)
			}
			verdicts = append(verdicts, verdict{name: v.name, holds: read, state: v.state})
		}
		rules.byKind[of.Kind] = verdicts
	}
	return rules, nil
}

// Looks tells whether objects like this one have to be read: they are not healthy
// as soon as they exist.
func (r Rules) Looks(at plan.Object) bool {
	return r.Everything || !AlwaysCurrent(at.GroupKind()) || r.byKind[at.Resource.GroupVersion().WithKind(at.ID.Kind)] != nil
}

// assess returns the state of an object by the rules, or by its own status where no rule
// is for its kind; ok when healthy.
func (r Rules) assess(ctx context.Context, object *unstructured.Unstructured) (state State, message string, ok bool, err error) {
	verdicts := r.byKind[object.GroupVersionKind()]
	if verdicts == nil {
		state, message, ok = assess(object)
		return state, message, ok, nil
	}
	if object.GetDeletionTimestamp() != nil {
		return Terminating, "it is being deleted", false, nil
	}
	if seen, found, err := unstructured.NestedInt64(object.Object, "status", "observedGeneration"); err == nil && found && seen != object.GetGeneration() {
		return InProgress, "its controller has not seen its newest generation yet", false, nil
	}
	for _, v := range verdicts {
		holds, err := v.holds.Holds(ctx, r.budget, object.Object)
		var known *expression.Error
		switch {
		case expression.IsExpensive(err) && errors.As(err, &known):
			return Failed, fmt.Sprintf("the expression %s was not evaluated: %s; make it simpler in spec.health.expressions, or apply it to shorter fields",
				v.name, known.Message), false, nil
		case errors.As(err, &known):
			return InProgress, fmt.Sprintf("the expression %s has no answer: %s", v.name, known.Message), false, nil
		case err != nil:
			return "", "", false, err
		case holds && v.state == "":
			return "", "", true, nil
		case holds:
			return v.state, inWords(object, fmt.Sprintf("the expression %s is true", v.name)), false, nil
		}
	}
	return InProgress, "none of its expressions is true", false, nil
}
