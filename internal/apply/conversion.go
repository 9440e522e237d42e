// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// unconverted is the result of removing the conversion webhook of a CRD.
type unconverted struct {
	live      *unstructured.Unstructured
	patch     map[string]any // what the patch that releases the CRD has to change
	storage   string         // the version in which all resources have to be stored
	others    []string       // versions in which they may be stored as well
	waiting   string         // why the webhook cannot be removed yet
	unwritten string         // what could not be written in the version of storage, and why
	note      string
}

// unconvert removes the conversion webhook from a CRD that outlives the webhook's server.
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
//	the account may not list them,    None, and say what that means
//	or some are refused, each alone
//	fails for longer than patience    None, and say what that means
//	fails                             wait, and try again
//
// Without patience every failure is final.
func (d deleter) unconvert(ctx context.Context, ref tenant.Ref, crd *unstructured.Unstructured, storage string) (unconverted, error) {
	result := unconverted{live: crd}
	if !convertsByWebhook(crd) {
		return result, nil
	}
	result.patch = map[string]any{"spec": map[string]any{"conversion": map[string]any{"strategy": "None", "webhook": nil}}}
	m := newMigration(d, crd, storage)
	result.storage, result.others = m.storage, m.others
	if len(m.others) == 0 {
		return result, nil
	}
	done, err := m.run(ctx)
	defer func() { d.migrations.keep(d.keyOf(crd), m.progress) }()
	switch {
	case ctx.Err() != nil:
		return result, ctx.Err()
	case apierrors.IsForbidden(err) && responseOf(err) == refused, err != nil && d.patience == 0:
		result.unwritten = m.unwritten("its resources", err.Error())
	case err != nil:
		unwritten := m.unwritten("its resources", err.Error())
		if until, over := m.progress.fail(d.migrations.now(), d.patience); over {
			result.unwritten = unwritten
		} else {
			result.waiting = m.waits(until, unwritten)
		}
	case !done:
		result.waiting = fmt.Sprintf("waits for its resources to be written as %s, before its conversion webhook goes", m.storage)
	case len(m.progress.refused) > 0:
		result.unwritten = m.unwritten(m.progress.refusals(), m.progress.why)
	case m.stores == m.storage:
		result.note = fmt.Sprintf("its resources are all stored as %s now", m.storage)
		return result, d.settleStored(ctx, ref, m.storage, &result)
	}
	return result, nil
}

// keyOf is the key under which the migration of a CRD is remembered.
func (d deleter) keyOf(crd *unstructured.Unstructured) migrationKey {
	return migrationKey{owner: d.owner, name: crd.GetName(), uid: crd.GetUID()}
}

// free removes the conversion from a CRD of the owner when conversion is impossible.
// The CRD is released later, in its stage.
func (d deleter) free(ctx context.Context, ref tenant.Ref) (waiting, note string, err error) {
	live, err := d.client.Get(ctx, ref)
	if apierrors.IsNotFound(err) || err == nil && !plan.LiveOf(live, d.owner).Ours(d.owner) {
		return "", "", nil
	}
	if err != nil {
		return "", "", err
	}
	storage, _ := versionsOf(live)
	kept, err := d.unconvert(ctx, ref, live, storage)
	if err == nil && kept.loss() != "" {
		patch := metadataPatch(kept.live, map[string]any{})
		maps.Copy(patch, kept.patch)
		_, err = d.client.Merge(ctx, ref, patch, inventory.OrphanManager)
	}
	switch {
	case apierrors.IsConflict(err):
		return wasChanging, "", nil
	case err == nil && kept.loss() != "":
		d.migrations.forget(d.keyOf(live))
	}
	return kept.waiting, kept.loss(), err
}

func convertsByWebhook(crd *unstructured.Unstructured) bool {
	strategy, _, _ := unstructured.NestedString(crd.Object, "spec", "conversion", "strategy")
	return strategy == "Webhook"
}

// unwritten says what could not be written, and why.
func (m *migration) unwritten(which, why string) string {
	return fmt.Sprintf("%s could not be written as %s (%s)", which, m.storage, oneLine(why))
}

// waits says until when a failing migration is retried.
func (m *migration) waits(until time.Time, unwritten string) string {
	return fmt.Sprintf("waits until %s for its conversion webhook, which goes after that: since %s %s",
		until.UTC().Format(time.RFC3339), m.progress.failing.UTC().Format(time.RFC3339), unwritten)
}

// loss describes the effect of removing the webhook while resources are not rewritten;
// empty when all were written.
func (u unconverted) loss() string {
	if u.unwritten == "" {
		return ""
	}
	return fmt.Sprintf("its conversion webhook goes and %s: those stored as %s are served as they are, "+
		"so that fields unknown to %s cannot be seen, and are lost when such a resource is written next",
		u.unwritten, strings.Join(u.others, ", "), u.storage)
}

// held says why a CRD keeps its conversion, and what the user can do.
func (u unconverted) held() string {
	return fmt.Sprintf("is not updated, for that ends its conversion by webhook and %s: of those stored as %s, fields unknown to %s would be lost. "+
		"See to it that they can be written, or apply a revision that converts; where nothing of value is lost, "+
		"end the conversion yourself by setting spec.conversion of the live CRD to {strategy: None}",
		u.unwritten, strings.Join(u.others, ", "), u.storage)
}

// settleStored sets status.storedVersions to the one storage version. Without the
// permission for that, the list also keeps the other versions.
func (d deleter) settleStored(ctx context.Context, ref tenant.Ref, storage string, result *unconverted) error {
	patch := metadataPatch(result.live, map[string]any{})
	patch["status"] = map[string]any{"storedVersions": []string{storage}}
	answer, err := d.client.MergeStatus(ctx, ref, patch, inventory.OrphanManager)
	if apierrors.IsForbidden(err) {
		result.note += ", which its status.storedVersions does not say: the account may not patch customresourcedefinitions/status"
		return nil
	}
	if err != nil {
		return err
	}
	result.live, err = answer.Object()
	return err
}
