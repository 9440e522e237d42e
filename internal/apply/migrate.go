// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/satchel-dev/satchel/internal/apply/crds"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/storageversion"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/apply/write"
)

// migrate rewrites the resources of a CRD before an update that ends its conversion
// webhook, while the webhook still answers. It returns what the update has to wait for,
// without a limit where resources would lose fields: until then nothing is changed,
// and only the user can decide whether the loss matters.
func (a *application) migrate(ctx context.Context, action plan.Action) (waiting string, err error) {
	if !action.Alters() || !crds.IsCRD(action.ID) || crds.ConvertsByWebhook(action.Desired) {
		return "", nil
	}
	ref := tenant.RefTo(action.ID, action.Resource)
	live, err := a.client.Get(ctx, ref)
	if apierrors.IsNotFound(err) {
		return "", nil // the apply creates it
	}
	if err != nil {
		return "", err
	}
	storage, _ := crds.Versions(action.Desired)
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
