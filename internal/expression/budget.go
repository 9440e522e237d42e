// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"context"
	"sync"
)

// Budget bounds what all expressions of one object take together in one reconcile, and evaluates one of them at a time. A nil one
// bounds nothing: each expression has its own limits.
type Budget struct {
	began func() (ended func())

	mu   sync.Mutex
	left uint64
}

const (
	// budgetLimit is how many steps the expressions of an object may take together: about half a second, or some hundred
	// steps for each condition of some thousand objects.
	budgetLimit = 5 * workLimit
	// perParsed and perChecked are the cost of a byte of an expression that is read without and with types.
	perParsed, perChecked = 3000, 20_000
)

// NewBudget returns the budget of an object for one reconcile. The function is called when an evaluation begins, and what it
// returns when it has ended; it may be nil.
func NewBudget(began func() (ended func())) *Budget {
	return &Budget{began: began, left: budgetLimit}
}

// read charges an expression that is to be read.
func (b *Budget) read(text string, perByte uint64) error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	took := perByte * uint64(len(text))
	if took > b.left {
		b.left = 0
		return &Error{Text: text, Message: "it and the others of the object are too long together", Expensive: true}
	}
	b.left -= took
	return nil
}

// evaluate runs an evaluation with the work that is left, and reports whether nothing was.
func (b *Budget) evaluate(ctx context.Context, run func(context.Context, *work)) (over bool) {
	most := uint64(workLimit)
	if b != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		most = min(most, b.left)
		if b.began != nil {
			defer b.began()()
		}
	}
	bounded, cancel := context.WithTimeout(ctx, LongestEvaluation)
	defer cancel()
	w := &work{ctx: bounded, most: most}
	run(bounded, w)
	if b != nil {
		b.left -= w.spent
	}
	return most < workLimit && w.left() == 0
}
