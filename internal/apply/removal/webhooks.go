// SPDX-License-Identifier: Apache-2.0

package removal

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/apply/observe"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// configures tells whether an object configures admission webhooks.
func configures(id inventory.ID) bool {
	return id.Group == "admissionregistration.k8s.io" &&
		(id.Kind == "ValidatingWebhookConfiguration" || id.Kind == "MutatingWebhookConfiguration")
}

// unreachableWebhook is a webhook configuration of the owner with an unreachable webhook.
type unreachableWebhook struct {
	inventory.ID
	webhook string
}

// unreachableWebhooks finds the webhook configurations of the inventory that block writes or deletions.
func unreachableWebhooks(ctx context.Context, client *tenant.Client, owner inventory.Owner, listed inventory.Inventory, failed []*objecterror.Error) []unreachableWebhook {
	var uncalled []string
	for _, f := range failed {
		if f.Uncalled != "" {
			uncalled = append(uncalled, f.Uncalled)
		}
	}
	if len(uncalled) == 0 {
		return nil
	}
	var found []unreachableWebhook
	for _, entry := range listed.Entries {
		if !configures(entry.ID) {
			continue
		}
		resource := strings.ToLower(entry.Kind) + "s"
		live, err := client.Get(ctx, tenant.Ref{Resource: observe.EntryRef(entry).Resource.GroupVersion().WithResource(resource), Name: entry.Name})
		if err != nil || !ownership.LiveOf(live, owner).Ours(owner) {
			continue // what cannot be read does not count as the cause
		}
		for _, name := range webhooksOf(live) {
			if slices.Contains(uncalled, name) {
				found = append(found, unreachableWebhook{ID: entry.ID, webhook: name})
				break
			}
		}
	}
	return found
}

// webhooksOf are the names of the webhooks of a configuration.
func webhooksOf(live *unstructured.Unstructured) []string {
	var names []string
	webhooks, _, _ := unstructured.NestedSlice(live.Object, "webhooks")
	for _, webhook := range webhooks {
		fields, _ := webhook.(map[string]any)
		if name, _ := fields["name"].(string); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// UnreachableWebhooks says what to do about objects that an unreachable webhook of the bundle itself refuses, as
// where the revision would repair its server; empty where that is not the cause.
func UnreachableWebhooks(ctx context.Context, client *tenant.Client, owner inventory.Owner, listed inventory.Inventory, failed []*objecterror.Error) string {
	var text strings.Builder
	for _, o := range unreachableWebhooks(ctx, client, owner, listed, failed) {
		fmt.Fprintf(&text, "\nthe webhook %s of %s belongs to this deployment, and its server cannot be reached: repair the server, or delete the configuration, which is applied again after everything else (kubectl delete %s %s)",
			o.webhook, o.ID, strings.ToLower(o.Kind), o.Name)
	}
	return text.String()
}

// deleteUnreachableWebhooks deletes, before everything else, the webhook configurations of the inventory that block a
// removal because their server is gone: otherwise it would be blocked for ever. Configurations that
// are to be kept stay.
func (r *Removed) deleteUnreachableWebhooks(ctx context.Context, client *tenant.Client, owner inventory.Owner, o Options, stages []plan.DeletionStage) {
	found := unreachableWebhooks(ctx, client, owner, r.Inventory, r.Denied)
	for _, at := range found {
		deletion, deletes := deletionOf(stages, at.ID)
		if !deletes {
			continue
		}
		ended := o.deleter(client, owner).delete(ctx, deletion)
		if ended.denied != nil {
			r.Denied = append(r.Denied, ended.denied)
			continue
		}
		r.DeletedIDs, r.Deleted = append(r.DeletedIDs, at.ID), r.Deleted+1
		if ended.gone {
			r.Gone = append(r.Gone, at.ID)
			r.Inventory = r.Inventory.Without(at.ID)
		}
		r.Cleared = append(r.Cleared, fmt.Sprintf("%s was deleted before everything else: its webhook %s refuses deletions, and cannot be reached", at.ID, at.webhook))
		r.retry(at.webhook)
	}
}

// retry has the deletions that a webhook refused tried again.
func (r *Removed) retry(webhook string) {
	var denied []*objecterror.Error
	for _, d := range r.Denied {
		if d.Uncalled == webhook {
			r.Waiting = append(r.Waiting, Remaining{ID: d.ID, Reason: "was refused by the webhook " + webhook + ", which is gone now"})
			continue
		}
		denied = append(denied, d)
	}
	r.Denied = denied
}

// deletionOf finds the deletion of an object, unless the object is kept.
func deletionOf(stages []plan.DeletionStage, id inventory.ID) (plan.Deletion, bool) {
	for _, stage := range stages {
		for _, deletion := range stage.Deletions {
			if deletion.ID == id {
				return deletion, deletion.How == plan.Delete
			}
		}
	}
	return plan.Deletion{}, false
}
