// SPDX-License-Identifier: Apache-2.0

package abandon

import (
	"fmt"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/plural"
)

// Left are the objects that an abandoned removal leaves behind.
type Left struct {
	// Marked objects are annotated as orphaned; Unmarked ones keep the labels of the deployment.
	Marked, Unmarked []inventory.ID
	// Why it was abandoned, as Decide says; Cause is the failure, "" for a removal that only waited.
	Why, Cause string
}

// Note is the event about a removal. What is left comes before the cause, which may be long.
func (l Left) Note(removal string) string {
	parts := []string{removal + " was abandoned " + l.Why}
	if len(l.Unmarked) > 0 {
		parts = append(parts, fmt.Sprintf("%s %s be annotated as orphaned: %s", plural.Of(len(l.Unmarked), "object"),
			plural.Choose(len(l.Unmarked), "stays with its labels, as it could not", "stay with their labels, as they could not"), someNames(l.Unmarked)))
	}
	if len(l.Marked) > 0 {
		parts = append(parts, fmt.Sprintf("%s %s, annotated %s: %s", plural.Of(len(l.Marked), "object"), plural.Choose(len(l.Marked), "stays", "stay"), v1alpha1.OrphanedAnnotation, someNames(l.Marked)))
	}
	if len(l.Marked)+len(l.Unmarked) == 0 {
		parts = append(parts, "no objects are left")
	}
	if l.Cause != "" {
		parts = append(parts, "it failed with: "+l.Cause)
	}
	return strings.Join(parts, "; ")
}

// mostNames bounds the names in an event, in bytes; the log has them all.
const mostNames = 300

// someNames are as many names as fit into an event.
func someNames(ids []inventory.ID) string {
	text := ""
	for i, id := range ids {
		if i > 0 && len(text)+len(id.String()) > mostNames {
			return fmt.Sprintf("%s and %d more, which the log of the controller lists", text, len(ids)-i)
		}
		if i > 0 {
			text += ", "
		}
		text += id.String()
	}
	return text
}
