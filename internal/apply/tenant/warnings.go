// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"context"
	"slices"
	"strings"
	"sync"
)

const (
	maxWarnings     = 50
	maxWarningBytes = 500
)

// Warnings collects the warnings of the API server (a deprecated version, an unknown
// field), each once, bounded in number and length.
type Warnings struct {
	mu   sync.Mutex
	seen map[string]struct{}
}

// List returns the warnings, sorted.
func (w *Warnings) List() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := make([]string, 0, len(w.seen))
	for text := range w.seen {
		list = append(list, text)
	}
	slices.Sort(list)
	return list
}

func (w *Warnings) add(text string) {
	if len(text) > maxWarningBytes {
		text = strings.ToValidUTF8(text[:maxWarningBytes], "") + "..."
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen == nil {
		w.seen = map[string]struct{}{}
	}
	if len(w.seen) < maxWarnings {
		w.seen[text] = struct{}{}
	}
}

type warningsKey struct{}

// WithWarnings collects the warnings of all requests of the context.
func WithWarnings(ctx context.Context, into *Warnings) context.Context {
	return context.WithValue(ctx, warningsKey{}, into)
}

// warningHandler passes warnings to the collector of the request's context.
type warningHandler struct{}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (warningHandler) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	into, found := ctx.Value(warningsKey{}).(*Warnings)
	if found && code == 299 && text != "" { // 299 is the only code that the API server uses
		into.add(text)
	}
}
