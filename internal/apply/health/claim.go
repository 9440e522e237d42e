// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// storageClasses is where StorageClasses are.
var storageClasses = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}

const (
	waitForFirstConsumer = "WaitForFirstConsumer" // a volumeBindingMode, and the reason of an event
	selectedNode         = "volume.kubernetes.io/selected-node"
)

// ClaimReader reads what the state of a PersistentVolumeClaim depends on beside itself: its StorageClass, or its events.
type ClaimReader interface {
	Get(ctx context.Context, ref tenant.Ref) (*unstructured.Unstructured, error)
	Events(ctx context.Context, namespace, uid string, limit int) ([]unstructured.Unstructured, error)
}

// settledClaim tells whether a PersistentVolumeClaim that is not bound waits for the first Pod that uses it, which is a
// steady state: nothing happens to it until then.
//
//	being deleted, lost, or names a volume                    no
//	a Pod that uses it has been scheduled (selected-node)     no: its volume is being provisioned
//	names no class                                            no: none provisions it
//	its class can be read                                     as its volumeBindingMode says
//	its class is missing                                      no
//	else                                                      as the newest event about it says
func settledClaim(ctx context.Context, client ClaimReader, claim *unstructured.Unstructured) (bool, error) {
	phase, _, _ := unstructured.NestedString(claim.Object, "status", "phase")
	volume, _, _ := unstructured.NestedString(claim.Object, "spec", "volumeName")
	class, _, _ := unstructured.NestedString(claim.Object, "spec", "storageClassName")
	switch {
	case inventory.IDOf(claim).GroupKind() != schema.GroupKind{Kind: "PersistentVolumeClaim"},
		claim.GetDeletionTimestamp() != nil, phase != "" && phase != "Pending", volume != "",
		claim.GetAnnotations()[selectedNode] != "", class == "":
		return false, nil
	}
	found, err := client.Get(ctx, tenant.Ref{Resource: storageClasses, Name: class})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case apierrors.IsForbidden(err):
		return awaitsConsumer(ctx, client, claim), nil
	case err != nil:
		return false, err
	}
	mode, _, _ := unstructured.NestedString(found.Object, "volumeBindingMode")
	return mode == waitForFirstConsumer, nil
}

// awaitsConsumer tells whether the newest event about a claim says that it waits for its first consumer. The
// controller of volumes repeats the event every few seconds.
func awaitsConsumer(ctx context.Context, client ClaimReader, claim *unstructured.Unstructured) bool {
	events, err := client.Events(ctx, claim.GetNamespace(), string(claim.GetUID()), podLimit)
	if err != nil || len(events) == 0 {
		return false
	}
	newest := slices.MaxFunc(events, func(a, b unstructured.Unstructured) int {
		return cmp.Or(strings.Compare(when(a), when(b)), cmp.Compare(warns(a), warns(b)))
	})
	return newest.Object["reason"] == waitForFirstConsumer
}
