// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// annotationMigrating keeps, on a CRD whose resources are being written anew, how
// far that has come. It goes with the migration.
const annotationMigrating = "satchel.dev/migrating"

const (
	// mostRewrites is how many resources one call writes, give or take a page.
	mostRewrites = 1000
	// mostFailures is how often a migration is tried whose webhook, say, is dead:
	// with the pauses in between, that is for some seconds at least.
	mostFailures = 5
)

// migration writes all resources of a CRD anew, unchanged, which stores them in the
// version of storage.
type migration struct {
	deleter
	resources tenant.Ref // of all namespaces
	storage   string
	others    []string // versions in which resources may be stored
	progress  progress
}

// progress of a migration. What is created after it began is stored in the version
// of storage from the first, so that the order of keys is enough to go on in.
type progress struct {
	storage  string
	failures int
	last     string // key of the resource that was written last; empty: none
}

// String is the progress as the annotation has it.
func (p progress) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %d %s", p.storage, p.failures, p.last))
}

// progressOf reads the annotation; what is about another version begins anew.
func progressOf(text, storage string) progress {
	p := progress{}
	if _, err := fmt.Sscanf(text, "%s %d %s", &p.storage, &p.failures, &p.last); (err != nil && p.last != "") || p.storage != storage {
		return progress{storage: storage}
	}
	return p
}

// run writes resources until none is left, or until it has written enough for one
// call. It tells whether none is left. An error may be that of the webhook.
func (m *migration) run(ctx context.Context) (done bool, err error) {
	options := metav1.ListOptions{Limit: pageSize}
	for budget := mostRewrites; ; {
		page, err := m.client.ListMetadata(ctx, m.resources, options)
		switch {
		case apierrors.IsResourceExpired(err):
			return false, nil // others were faster; the next call goes on
		case apierrors.IsNotFound(err):
			return true, nil // nobody serves the kind, so nobody wrote any
		case err != nil:
			return false, err
		}
		due := m.due(page.Items)
		if len(due) > 0 && budget <= 0 {
			return false, nil
		}
		if err := firstErrors(parallel.Each(ctx, m.limit, due, m.rewrite)); err != nil || ctx.Err() != nil {
			return false, err
		}
		if len(due) > 0 {
			m.progress.last = keyOf(due[len(due)-1])
		}
		if page.Continue == "" {
			return true, nil
		}
		budget -= len(due)
		options.Continue = page.Continue
	}
}

// due are the resources after the last one that was written. A list is in the order
// of its keys.
func (m *migration) due(items []metav1.PartialObjectMetadata) []metav1.PartialObjectMetadata {
	at := slices.IndexFunc(items, func(item metav1.PartialObjectMetadata) bool { return keyOf(item) > m.progress.last })
	if at < 0 {
		return nil
	}
	return items[at:]
}

func keyOf(item metav1.PartialObjectMetadata) string { return item.Namespace + "/" + item.Name }

// rewrite writes one resource as it is. One that somebody wrote or deleted since it
// was listed needs nothing more.
func (m *migration) rewrite(ctx context.Context, item metav1.PartialObjectMetadata) error {
	ref := m.resources
	ref.Namespace, ref.Name = item.Namespace, item.Name
	_, err := m.client.Merge(ctx, ref, metadataPatch(&item, map[string]any{}), inventory.OrphanManager)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// migrate writes the resources of a CRD anew whose update gives its conversion
// webhook up, while that still answers. It tells what the update has to wait for,
// or what it costs when they cannot be written.
func (a *application) migrate(ctx context.Context, action plan.Action) (waiting, loss string, err error) {
	if action.Verb != plan.Update || !plan.IsDefinition(action.ID) || convertsByWebhook(action.Desired) {
		return "", "", nil
	}
	ref := refOf(action.ID, action.Resource)
	live, err := a.client.Get(ctx, ref)
	if apierrors.IsNotFound(err) {
		return "", "", nil // the apply creates it
	}
	if err != nil {
		return "", "", err
	}
	kept, err := deleter{client: a.client, limit: a.options.Parallelism}.unconvert(ctx, ref, live)
	if err != nil || kept.waiting != "" {
		return kept.waiting, "", err
	}
	if _, marked := kept.live.GetAnnotations()[annotationMigrating]; marked {
		_, err = a.client.Merge(ctx, ref, metadataPatch(kept.live, map[string]any{
			"annotations": map[string]any{annotationMigrating: nil},
		}), inventory.OrphanManager)
	}
	return "", kept.loss, err
}
