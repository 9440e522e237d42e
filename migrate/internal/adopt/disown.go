// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
)

// disown is the metadata of a merge patch that orphans an object: its former owner neither deletes it with itself nor
// reconciles it, and the next deployment that contains it adopts it. It is Unmark, with the annotation of an orphan, and
// without the finalizers of the tools that own by references.
func disown(object metav1.Object) map[string]any {
	metadata := ownership.Unmark(object)
	if annotations, ok := metadata["annotations"].(map[string]any); ok {
		annotations[inventory.AnnotationOrphaned] = "true"
	}
	finalizers := object.GetFinalizers()
	kept := slices.DeleteFunc(slices.Clone(finalizers), ownership.IsToolFinalizer)
	if len(kept) < len(finalizers) {
		metadata["finalizers"] = kept
	}
	return metadata
}
