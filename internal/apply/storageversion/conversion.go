// SPDX-License-Identifier: Apache-2.0

package storageversion

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/crds"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/apply/write"
)

// Migrator removes the conversion webhooks of CRDs as the tenant.
type Migrator struct {
	Client     *tenant.Client
	Owner      inventory.Owner
	Limit      int           // requests at once
	Patience   time.Duration // with a conversion webhook that fails
	Migrations *Migrations
}

// Conversion is the result of removing the conversion webhook of a CRD.
type Conversion struct {
	Live      *unstructured.Unstructured
	Patch     map[string]any // what the patch that releases the CRD has to change
	storage   string         // the version in which all resources have to be stored
	others    []string       // versions in which they may be stored as well
	Waiting   string         // why the webhook cannot be removed yet
	Unwritten string         // what could not be written in the version of storage, and why
	Note      string
}

// RemoveConversion removes the conversion webhook from a CRD that outlives the webhook's server.
// With a dead webhook, resources of its kind could not be listed, and no namespace deleted.
// Without conversion only the API version of a resource is rewritten, so resources that are
// stored in another version are first rewritten in the storage version, while the
// webhook still answers. The first line that holds decides.
//
//	does not convert by webhook       nothing to do
//	stored in one version, the one    None
//	of storage
//	no resources                      None
//	all resources rewritten           None
//	there are more                    wait, and go on in the next call
//	the ServiceAccount may not list them,    None, and say what that means
//	or some are refused, each alone
//	fails for longer than patience    None, and say what that means
//	fails                             wait, and try again
//
// Without patience every failure is final.
func (r Migrator) RemoveConversion(ctx context.Context, ref tenant.Ref, crd *unstructured.Unstructured, storage string) (Conversion, error) {
	result := Conversion{Live: crd}
	if !crds.ConvertsByWebhook(crd) {
		return result, nil
	}
	result.Patch = map[string]any{"spec": map[string]any{"conversion": map[string]any{"strategy": "None", "webhook": nil}}}
	m := newMigration(r, crd, storage)
	result.storage, result.others = m.storage, m.others
	if len(m.others) == 0 {
		return result, nil
	}
	done, err := m.run(ctx)
	defer func() { r.Migrations.keep(r.keyOf(crd), m.progress) }()
	switch {
	case ctx.Err() != nil:
		return result, ctx.Err()
	case apierrors.IsForbidden(err) && responseOf(err) == refused, err != nil && r.Patience == 0:
		result.Unwritten = m.unwritten("its resources", err.Error())
	case err != nil:
		unwritten := m.unwritten("its resources", err.Error())
		if until, over := m.progress.fail(r.Migrations.now(), r.Patience); over {
			result.Unwritten = unwritten
		} else {
			result.Waiting = m.waits(until, unwritten)
		}
	case !done:
		result.Waiting = fmt.Sprintf("waits for its resources to be written as %s, before its conversion webhook goes", m.storage)
	case len(m.progress.refused) > 0:
		result.Unwritten = m.unwritten(m.progress.refusals(), m.progress.why)
	case m.stores == m.storage:
		result.Note = fmt.Sprintf("its resources are all stored as %s now", m.storage)
		return result, r.settleStored(ctx, ref, m.storage, &result)
	}
	return result, nil
}

// keyOf is the key under which the migration of a CRD is remembered.
func (r Migrator) keyOf(crd *unstructured.Unstructured) migrationKey {
	return migrationKey{owner: r.Owner, name: crd.GetName(), uid: crd.GetUID()}
}

// Forget ends the migration of a CRD.
func (r Migrator) Forget(crd *unstructured.Unstructured) { r.Migrations.forget(r.keyOf(crd)) }

// RemoveDeadConversion removes the conversion from a CRD of the owner when conversion is impossible.
// The CRD is released later, in its stage.
func (r Migrator) RemoveDeadConversion(ctx context.Context, ref tenant.Ref) (waiting, note string, err error) {
	live, err := r.Client.Get(ctx, ref)
	if apierrors.IsNotFound(err) || err == nil && !ownership.LiveOf(live, r.Owner).Ours(r.Owner) {
		return "", "", nil
	}
	if err != nil {
		return "", "", err
	}
	storage, _ := crds.Versions(live)
	kept, err := r.RemoveConversion(ctx, ref, live, storage)
	if err == nil && kept.Loss() != "" {
		patch := write.MetadataPatch(kept.Live, map[string]any{})
		maps.Copy(patch, kept.Patch)
		_, err = r.Client.Merge(ctx, ref, patch, inventory.OrphanManager)
	}
	switch {
	case apierrors.IsConflict(err):
		return write.WasChanging, "", nil
	case err == nil && kept.Loss() != "":
		r.Forget(live)
	}
	return kept.Waiting, kept.Loss(), err
}

// unwritten says what could not be written, and why.
func (m *migration) unwritten(which, why string) string {
	return fmt.Sprintf("%s could not be written as %s (%s)", which, m.storage, objecterror.OneLine(why))
}

// waits says until when a failing migration is retried.
func (m *migration) waits(until time.Time, unwritten string) string {
	return fmt.Sprintf("waits until %s for its conversion webhook, which goes after that: since %s %s",
		until.UTC().Format(time.RFC3339), m.progress.failing.UTC().Format(time.RFC3339), unwritten)
}

// Loss describes the effect of removing the webhook while resources are not rewritten;
// empty when all were written.
func (u Conversion) Loss() string {
	if u.Unwritten == "" {
		return ""
	}
	return fmt.Sprintf("its conversion webhook goes and %s: those stored as %s are served as they are, "+
		"so that fields unknown to %s cannot be seen, and are lost when such a resource is written next",
		u.Unwritten, strings.Join(u.others, ", "), u.storage)
}

// Held says why a CRD keeps its conversion, and what the user can do.
func (u Conversion) Held() string {
	return fmt.Sprintf("is not updated, for that ends its conversion by webhook and %s: of those stored as %s, fields unknown to %s would be lost. "+
		"See to it that they can be written, or apply a revision that converts; where nothing of value is lost, "+
		"end the conversion yourself by setting spec.conversion of the live CRD to {strategy: None}",
		u.Unwritten, strings.Join(u.others, ", "), u.storage)
}

// settleStored sets status.storedVersions to the one storage version. Without the
// permission for that, the list also keeps the other versions.
func (r Migrator) settleStored(ctx context.Context, ref tenant.Ref, storage string, result *Conversion) error {
	patch := write.MetadataPatch(result.Live, map[string]any{})
	patch["status"] = map[string]any{"storedVersions": []string{storage}}
	answer, err := r.Client.MergeStatus(ctx, ref, patch, inventory.OrphanManager)
	if apierrors.IsForbidden(err) {
		result.Note += ", which its status.storedVersions does not say: the ServiceAccount may not patch customresourcedefinitions/status"
		return nil
	}
	if err != nil {
		return err
	}
	result.Live, err = answer.Object()
	return err
}
