// SPDX-License-Identifier: Apache-2.0

package removal

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/crds"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// mostNamed is how many resources a note names.
const mostNamed = 3

// finalized names resources of a CRD with finalizers, where the CRD stays and its operator is removed: they cannot be deleted then.
// It reads one page, and says nothing where that is refused.
func (d deleter) finalized(ctx context.Context, deletion plan.Deletion, crd *unstructured.Unstructured) string {
	resource := crds.Resources(crd)
	if !crds.IsCRD(deletion.ID) || deletion.Whole || resource.Version == "" {
		return ""
	}
	page, err := d.client.ListMetadata(ctx, tenant.Ref{Resource: resource}, metav1.ListOptions{Limit: tenant.PageSize})
	if err != nil {
		return "" // it is only advice
	}
	var resources []string
	finalizers := map[string]bool{}
	for i := range page.Items {
		found := crds.Finalizers(page.Items[i].Finalizers)
		for _, name := range found {
			finalizers[name] = true
		}
		if len(found) > 0 {
			resources = append(resources, nameOf(&page.Items[i]))
		}
	}
	if len(resources) == 0 {
		return ""
	}
	names, more := resources[:min(len(resources), mostNamed)], ""
	if rest := len(resources) - len(names); rest > 0 {
		more = fmt.Sprintf(" and %d more", rest)
	}
	sorted := slices.Sorted(maps.Keys(finalizers))
	return fmt.Sprintf("its resources %s%s have finalizers (%s), so that they and their namespaces cannot be deleted without the controller that removes these: "+
		"install the operator again to delete them, or remove metadata.finalizers", strings.Join(names, ", "), more, strings.Join(sorted[:min(len(sorted), mostNamed)], ", "))
}
