// SPDX-License-Identifier: Apache-2.0

// Package parallel runs one function over many items, a bounded number at once.
package parallel

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// Default is how many requests are under way at once where the caller does not say.
const Default = 16

// Each runs do for every item, at most limit at once, and returns the results in
// the order of the items. Items that were not begun when the context ended keep
// the zero result.
func Each[T, R any](ctx context.Context, limit int, items []T, do func(context.Context, T) R) []R {
	results := make([]R, len(items))
	var group errgroup.Group
	var begun atomic.Int64
	for range min(max(limit, 1), len(items)) { // not one goroutine an item: the stack of each would have to grow
		group.Go(func() error {
			for ctx.Err() == nil {
				i := int(begun.Add(1)) - 1
				if i >= len(items) {
					break
				}
				results[i] = do(ctx, items[i])
			}
			return nil
		})
	}
	_ = group.Wait() // the functions report by their results
	return results
}
