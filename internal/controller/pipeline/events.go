// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/satchel-dev/satchel/internal/visible"
)

// LongestNote bounds the note of an event: the API server accepts 1,024 bytes.
const LongestNote = 1000

// EventRecorder returns a recorder that escapes invisible characters in the note of an event, and shortens it to what the API
// server accepts. Every event of the controllers goes through it.
func EventRecorder(next events.EventRecorder) events.EventRecorder {
	if next == nil {
		return nil
	}
	return eventRecorder{next}
}

type eventRecorder struct{ next events.EventRecorder }

// Eventf implements events.EventRecorder.
func (r eventRecorder) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	text := visible.Escape(fmt.Sprintf(note, args...))
	r.next.Eventf(regarding, related, kind, reason, action, "%s", Shorten(text, LongestNote))
}
