// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// unconverted is what became of the conversion webhook of a CRD that stays behind.
type unconverted struct {
	live    *unstructured.Unstructured
	patch   map[string]any // what the patch that releases the CRD has to change
	waiting string         // why it cannot go yet
	note    string
	loss    string // what it means that resources could not be migrated
}

// unconvert keeps a CRD that stays behind from calling a conversion webhook that
// goes: nothing of its kind could be listed then, and no namespace be deleted.
// Without conversion only the API version of a resource is rewritten, so what is
// stored in another version is written in the one of storage before, while the
// webhook still answers. The first line that holds decides.
//
//	does not convert by webhook       nothing to do
//	stored in one version, the one    None
//	of storage
//	no resources                      None
//	all resources rewritten           None
//	there are more                    wait, and go on in the next call
//	the account may not, or it has    None, and say what that means
//	failed for the last time
//	failed                            wait, and try again
func (d deleter) unconvert(ctx context.Context, ref tenant.Ref, crd *unstructured.Unstructured) (unconverted, error) {
	result := unconverted{live: crd}
	if !convertsByWebhook(crd) {
		return result, nil
	}
	result.patch = map[string]any{"spec": map[string]any{"conversion": map[string]any{"strategy": "None", "webhook": nil}}}
	m := newMigration(d, crd)
	if len(m.others) == 0 {
		return result, nil
	}
	done, err := m.run(ctx)
	switch {
	case ctx.Err() != nil:
		return result, ctx.Err()
	case done:
		result.note = fmt.Sprintf("its resources are all stored as %s now", m.storage)
		return result, d.settleStored(ctx, ref, m.storage, &result)
	case err == nil:
		result.waiting = fmt.Sprintf("waits for its resources to be written as %s, before its conversion webhook goes", m.storage)
		return result, d.mark(ctx, ref, crd, m.progress)
	case apierrors.IsForbidden(err), m.progress.failures+1 >= mostFailures:
		result.loss = m.loss(err)
		return result, nil
	}
	m.progress.failures++
	result.waiting = fmt.Sprintf("waits for its resources to be written as %s, which fails: %s", m.storage, oneLine(err.Error()))
	return result, d.mark(ctx, ref, crd, m.progress)
}

// free takes the conversion off a CRD of the owner when nothing can be converted any
// more. The CRD is released later, in its turn.
func (d deleter) free(ctx context.Context, ref tenant.Ref) (waiting, note string, err error) {
	live, err := d.client.Get(ctx, ref)
	if apierrors.IsNotFound(err) || err == nil && !plan.LiveOf(live, d.owner).Ours(d.owner) {
		return "", "", nil
	}
	if err != nil {
		return "", "", err
	}
	kept, err := d.unconvert(ctx, ref, live)
	if err != nil || kept.loss == "" {
		return kept.waiting, "", err
	}
	patch := metadataPatch(kept.live, map[string]any{"annotations": map[string]any{annotationMigrating: nil}})
	maps.Copy(patch, kept.patch)
	_, err = d.client.Merge(ctx, ref, patch, inventory.OrphanManager)
	return "", kept.loss, err
}

func convertsByWebhook(crd *unstructured.Unstructured) bool {
	strategy, _, _ := unstructured.NestedString(crd.Object, "spec", "conversion", "strategy")
	return strategy == "Webhook"
}

// loss says what it means that resources stay as they are stored.
func (m *migration) loss(err error) string {
	return fmt.Sprintf("its conversion webhook goes and its resources could not be written as %s (%s): those stored as %s are served as they are, "+
		"so that fields unknown to %s cannot be seen, and are lost when such a resource is written next",
		m.storage, oneLine(err.Error()), strings.Join(m.others, ", "), m.storage)
}

// settleStored tells the CRD that everything is stored in one version. The account
// may lack the right to: then the CRD only keeps promising to hold the others.
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

// mark keeps on the CRD how far its migration has come.
func (d deleter) mark(ctx context.Context, ref tenant.Ref, crd *unstructured.Unstructured, p progress) error {
	_, err := d.client.Merge(ctx, ref, metadataPatch(crd, map[string]any{
		"annotations": map[string]any{annotationMigrating: p.String()},
	}), inventory.OrphanManager)
	return err
}

// newMigration reads what has to be written again from a CRD.
func newMigration(d deleter, crd *unstructured.Unstructured) migration {
	m := migration{deleter: d}
	served := ""
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, version := range versions {
		fields, _ := version.(map[string]any)
		name, _ := fields["name"].(string)
		isStorage, _ := fields["storage"].(bool)
		isServed, _ := fields["served"].(bool)
		if isStorage {
			m.storage = name
		}
		if isServed && (served == "" || isStorage) {
			served = name
		}
	}
	stored, _, _ := unstructured.NestedStringSlice(crd.Object, "status", "storedVersions")
	m.others = slices.DeleteFunc(stored, func(name string) bool { return name == m.storage })
	m.resources.Resource.Group, _, _ = unstructured.NestedString(crd.Object, "spec", "group")
	m.resources.Resource.Resource, _, _ = unstructured.NestedString(crd.Object, "spec", "names", "plural")
	m.resources.Resource.Version = served
	m.progress = progressOf(crd.GetAnnotations()[annotationMigrating], m.storage)
	return m
}
