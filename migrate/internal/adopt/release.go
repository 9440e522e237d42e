// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/view"
)

// releaseTries is how often the release of an object is tried that another client writes at the same time.
const releaseTries = 10

// release removes the owner references, labels, annotations and finalizers of the former owner, and annotates the object as
// orphaned, in one patch that fails if the object changed.
func (w *adopter) release(ctx context.Context, o AdoptedObject) error {
	var err error
	for try := range releaseTries {
		if try > 0 {
			if err := kit.Pause(ctx, time.Duration(try)*20*time.Millisecond); err != nil {
				return err
			}
		}
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(o.kind)
		if err = w.any.Get(ctx, types.NamespacedName{Namespace: o.id.Namespace, Name: o.id.Name}, live); err != nil {
			return fmt.Errorf("reading %s: %w", o.ID, err)
		}
		seen := ownership.LiveOf(live, w.owner)
		switch seen.ClaimOf(w.owner, ownership.None) {
		case ownership.Owned:
			return nil
		case ownership.Foreign:
			return fmt.Errorf("%s %s now, and is not adopted", o.ID, seen.Holder(w.owner))
		}
		if live.UID != o.Live.UID {
			return fmt.Errorf("%s was deleted and created again in the meantime: run the command again with --dry-run", o.ID)
		}
		if err = w.patchReleased(ctx, live); !apierrors.IsConflict(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("releasing %s: %w", o.ID, err)
	}
	return nil
}

func (w *adopter) patchReleased(ctx context.Context, live *metav1.PartialObjectMetadata) error {
	metadata := disown(live)
	metadata["uid"], metadata["resourceVersion"] = live.UID, live.ResourceVersion
	body, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	return w.any.Patch(ctx, live, client.RawPatch(types.MergePatchType, body), client.FieldOwner(kit.FieldManager))
}

// stopUpgrades deletes the Subscriptions that would install a ClusterServiceVersion again.
func (w *adopter) stopUpgrades(ctx context.Context, owners []Former) error {
	for _, owner := range owners {
		if owner.Kind != CSVKind {
			continue
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: owner.Group, Version: "v1alpha1", Kind: "SubscriptionList"})
		if err := w.any.List(ctx, list, client.InNamespace(owner.Namespace)); err != nil {
			return fmt.Errorf("looking for the Subscription that installed %s: %w", owner, err)
		}
		for i := range list.Items {
			installed, _, _ := unstructured.NestedString(list.Items[i].Object, "status", "installedCSV")
			if installed != owner.Name {
				continue
			}
			if err := client.IgnoreNotFound(w.any.Delete(ctx, &list.Items[i])); err != nil {
				return fmt.Errorf("deleting the Subscription %s: %w", list.Items[i].GetName(), err)
			}
			fmt.Fprintf(w.app.Streams.Out, "Subscription %s/%s: deleted, so that OLM does not install the operator again\n", owner.Namespace, view.Inline(list.Items[i].GetName()))
		}
	}
	return nil
}

// removeFormer deletes a former owner and orphans its dependents.
func (w *adopter) removeFormer(ctx context.Context, owner Former) error {
	if owner.Kind == ReleaseKind {
		return w.deleteRelease(ctx, owner)
	}
	object := &metav1.PartialObjectMetadata{}
	kind := schema.GroupKind{Group: owner.Group, Kind: owner.Kind}
	mapping, err := w.any.RESTMapper().RESTMapping(kind, versionsOf(owner)...)
	if err != nil {
		return fmt.Errorf("looking up the kind of %s: %w", owner, err)
	}
	object.SetGroupVersionKind(mapping.GroupVersionKind)
	key := types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name}
	if err := w.any.Get(ctx, key, object); err != nil {
		return client.IgnoreNotFound(err)
	}
	uid := object.UID
	if owner.uid != "" && owner.uid != uid {
		return nil // the former owner was deleted already; this is another object of its name
	}
	err = w.any.Delete(ctx, object, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationOrphan))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %s: %w", owner, err)
	}
	for {
		err := w.any.Get(ctx, key, object)
		if apierrors.IsNotFound(err) || err == nil && object.UID != uid {
			fmt.Fprintf(w.app.Streams.Out, "%s: deleted, the objects that it owned were kept\n", view.Inline(owner.String()))
			return nil
		}
		if err == nil {
			err = kit.Pause(ctx, 200*time.Millisecond)
		}
		if err != nil {
			return fmt.Errorf("waiting until %s is deleted (finalizers: %s): %w", owner, strings.Join(object.Finalizers, ", "), err)
		}
	}
}

func versionsOf(owner Former) []string {
	if owner.version == "" {
		return nil
	}
	return []string{owner.version}
}

// deleteRelease deletes the Secrets in which Helm stores a release.
func (w *adopter) deleteRelease(ctx context.Context, owner Former) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "SecretList"})
	if err := w.any.List(ctx, list, client.InNamespace(owner.Namespace), client.MatchingLabels{"owner": "helm", "name": owner.Name}); err != nil {
		return fmt.Errorf("looking for the Secrets of the %s: %w", owner, err)
	}
	for i := range list.Items {
		secret := &list.Items[i]
		secret.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Secret"})
		if !strings.HasPrefix(secret.Name, "sh.helm.release.v1.") {
			continue
		}
		if err := client.IgnoreNotFound(w.any.Delete(ctx, secret)); err != nil {
			return fmt.Errorf("deleting the Secret %s/%s of the %s: %w", secret.Namespace, secret.Name, owner, err)
		}
	}
	fmt.Fprintf(w.app.Streams.Out, "%s: its Secrets were deleted, the objects that it installed were kept\n", view.Inline(owner.String()))
	return nil
}

// adoptedAgain are the objects that a former owner owns again.
func (w *adopter) adoptedAgain(ctx context.Context, objects []AdoptedObject) ([]AdoptedObject, error) {
	var again []AdoptedObject
	for _, o := range objects {
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(o.kind)
		err := w.any.Get(ctx, types.NamespacedName{Namespace: o.id.Namespace, Name: o.id.Name}, live)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", o.ID, err)
		}
		if len(FormersOf(live)) > 0 {
			again = append(again, o)
		}
	}
	return again, nil
}
