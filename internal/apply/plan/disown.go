// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// Disown is what a merge patch says of the metadata of an object so that its former
// owner neither takes it along when it goes nor looks after it, and the next deployment
// that contains it adopts it: Unmark, the mark of an orphan, and no finalizers of the
// tools that own by references.
func Disown(object metav1.Object) map[string]any {
	metadata := Unmark(object)
	if annotations, ok := metadata["annotations"].(map[string]any); ok {
		annotations[inventory.AnnotationOrphaned] = "true"
	}
	finalizers := object.GetFinalizers()
	kept := slices.DeleteFunc(slices.Clone(finalizers), ofTool)
	if len(kept) < len(finalizers) {
		metadata["finalizers"] = kept
	}
	return metadata
}

// ofTool tells whether a finalizer is that of a tool that owns by references.
func ofTool(finalizer string) bool {
	group, _, found := strings.Cut(finalizer, "/")
	return found && toolGroups[group] != ""
}
