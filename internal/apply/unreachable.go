// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// failedCall matches the API server's message that it could not call an admission webhook: no answer
// came, for the error of an HTTP client follows. A webhook that denies, or answers nonsense, is worded
// otherwise.
var failedCall = regexp.MustCompile(`failed calling webhook "([^"]{1,253})": failed to call webhook: Post "`)

// uncalled is the name of the admission webhook that refused a request by being unreachable; empty
// for any other error.
func uncalled(err error) string {
	if !apierrors.IsInternalError(err) {
		return ""
	}
	found := failedCall.FindStringSubmatch(err.Error())
	if found == nil {
		return ""
	}
	return found[1]
}

// configures tells whether an object configures admission webhooks.
func configures(id inventory.ID) bool {
	return id.Group == "admissionregistration.k8s.io" &&
		(id.Kind == "ValidatingWebhookConfiguration" || id.Kind == "MutatingWebhookConfiguration")
}

// obstacle is a webhook configuration of the owner with an unreachable webhook.
type obstacle struct {
	inventory.ID
	webhook string
}

// obstacles finds the webhook configurations of the inventory that block writes or deletions.
func obstacles(ctx context.Context, client *tenant.Client, owner Owner, listed inventory.Inventory, failed []*ObjectError) []obstacle {
	var uncalled []string
	for _, f := range failed {
		if f.Uncalled != "" {
			uncalled = append(uncalled, f.Uncalled)
		}
	}
	if len(uncalled) == 0 {
		return nil
	}
	var found []obstacle
	for _, entry := range listed.Entries {
		if !configures(entry.ID) {
			continue
		}
		resource := strings.ToLower(entry.Kind) + "s"
		live, err := client.Get(ctx, tenant.Ref{Resource: entryRef(entry).Resource.GroupVersion().WithResource(resource), Name: entry.Name})
		if err != nil || !plan.LiveOf(live, owner).Ours(owner) {
			continue // what cannot be read does not count as the cause
		}
		for _, name := range webhooksOf(live) {
			if slices.Contains(uncalled, name) {
				found = append(found, obstacle{ID: entry.ID, webhook: name})
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

// WayOut says what to do about objects that an unreachable webhook of the bundle itself refuses, as
// where the revision would repair its server; empty where that is not the cause.
func WayOut(ctx context.Context, client *tenant.Client, owner Owner, listed inventory.Inventory, failed []*ObjectError) string {
	var text strings.Builder
	for _, o := range obstacles(ctx, client, owner, listed, failed) {
		fmt.Fprintf(&text, "\nthe webhook %s of %s belongs to this deployment, and its server cannot be reached: repair the server, or delete the configuration, which is applied again after everything else (kubectl delete %s %s)",
			o.webhook, o.ID, strings.ToLower(o.Kind), o.Name)
	}
	return text.String()
}

// clearWay deletes, before everything else, the webhook configurations of the inventory that block a
// removal because their server is gone: otherwise it would be blocked for ever. Configurations that
// are to be kept stay.
func (r *Removed) clearWay(ctx context.Context, client *tenant.Client, owner Owner, o Options, stages []plan.DeletionStage) {
	found := obstacles(ctx, client, owner, r.Inventory, r.Denied)
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
	var denied []*ObjectError
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
