// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// Disown is the metadata of a merge patch that orphans an object: its former owner neither deletes
// it with itself nor reconciles it, and the next deployment that contains it adopts it. It is
// Unmark, with the annotation of an orphan, and without the finalizers of the
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
