// SPDX-License-Identifier: Apache-2.0

package parallel_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/satchel-dev/satchel/internal/apply/parallel"
)

// numbers are 1 to n.
func numbers(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i + 1
	}
	return list
}

// Each item has its result at its place, and no more are under way at once than allowed.
func TestEach(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ items, limit, atOnce int }{{0, 4, 0}, {1, 4, 1}, {3, 4, 3}, {50, 4, 4}, {5, 1, 1}, {5, 0, 1}} {
		synctest.Test(t, func(t *testing.T) {
			var now, most atomic.Int64
			got := parallel.Each(t.Context(), tc.limit, numbers(tc.items), func(_ context.Context, n int) int {
				running := now.Add(1)
				for seen := most.Load(); running > seen && !most.CompareAndSwap(seen, running); seen = most.Load() {
				}
				time.Sleep(time.Duration(n%3+1) * time.Second)
				now.Add(-1)
				return n
			})
			if !slices.Equal(got, numbers(tc.items)) || int(most.Load()) != tc.atOnce {
				t.Errorf("%d items, at most %d at once: %v, %d at once", tc.items, tc.limit, got, most.Load())
			}
		})
	}
}

// What has not begun when the context ends is not begun any more.
func TestEachEndsWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	got := parallel.Each(ctx, 1, numbers(5), func(_ context.Context, n int) int {
		if n == 2 {
			cancel()
		}
		return n
	})
	if want := []int{1, 2, 0, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("results %v, want %v", got, want)
	}
}
