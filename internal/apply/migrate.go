// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/crds"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/storageversion"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/apply/write"
)

// prepared is an action as it can be carried out now.
type prepared struct {
	plan.Action

	rest *awaited // what follows when its conversion webhook can answer; nil for nothing
}

// prepare says how an update of a CRD is carried out, without losing what is stored and without calling a webhook that
// cannot answer yet; and what it has to wait for, while nothing is changed.
func (a *application) prepare(ctx context.Context, action plan.Action) (ready prepared, waiting string, err error) {
	ready = prepared{Action: action}
	if !action.Alters() || !crds.IsCRD(action.ID) {
		return ready, "", nil
	}
	ref := tenant.RefTo(action.ID, action.Resource)
	live, err := a.client.Get(ctx, ref)
	if apierrors.IsNotFound(err) {
		return ready, "", nil // the apply creates it
	}
	if err != nil {
		return ready, "", err
	}
	if storage := crds.StoredBefore(live, action.Desired); storage != "" {
		if waiting, err = a.storeBefore(ctx, action, ref, live, storage); waiting != "" || err != nil {
			return ready, waiting, err
		}
		if live, err = a.client.Get(ctx, ref); err != nil {
			return ready, "", err
		}
	}
	if crds.ConvertsByWebhook(action.Desired) {
		return a.applyInterim(action, live), "", nil
	}
	waiting, err = a.migrate(ctx, action, ref, live)
	return ready, waiting, err
}

// storeBefore has all resources of a CRD stored in an earlier version again, through its conversion webhook: the API server accepts
// no CRD without a version in which resources may be stored. It returns what that waits for.
func (a *application) storeBefore(ctx context.Context, action plan.Action, ref tenant.Ref, live *unstructured.Unstructured, storage string) (waiting string, err error) {
	if stores, _ := crds.Versions(live); stores != storage {
		action.Desired = crds.Storing(live, action.Desired, storage)
		if _, err = a.writer.Write(ctx, action); err != nil {
			return "", err
		}
		if live, err = a.client.Get(ctx, ref); err != nil {
			return "", err
		}
	}
	waiting, err = a.rewrite(ctx, ref, live, storage)
	if waiting != "" && err == nil {
		waiting += fmt.Sprintf("; it stores %s again already. Where its webhook cannot be repaired, remove the other versions from status.storedVersions as well (kubectl edit crd %s --subresource=status)",
			storage, ref.Name)
	}
	return waiting, err
}

// migrate rewrites the resources of a CRD before an update that ends its conversion
// webhook, while the webhook still answers. It returns what the update has to wait for,
// without a limit where resources would lose fields: until then nothing is changed,
// and only the user can decide whether the loss matters.
func (a *application) migrate(ctx context.Context, action plan.Action, ref tenant.Ref, live *unstructured.Unstructured) (waiting string, err error) {
	storage, _ := crds.Versions(action.Desired)
	return a.rewrite(ctx, ref, live, storage)
}

// rewrite writes the resources of a CRD in a version while its conversion webhook answers, and returns what that waits for.
func (a *application) rewrite(ctx context.Context, ref tenant.Ref, live *unstructured.Unstructured, storage string) (waiting string, err error) {
	m := storageversion.Migrator{Client: a.client, Owner: a.owner, Limit: a.options.Parallelism, Migrations: a.options.Migrations}
	kept, err := m.RemoveConversion(ctx, ref, live, storage)
	switch {
	case apierrors.IsConflict(err):
		return write.WasChanging, nil
	case err != nil:
		return "", err
	case kept.Unwritten != "":
		return kept.Held(), nil
	}
	return kept.Waiting, nil
}
