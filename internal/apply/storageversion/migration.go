// SPDX-License-Identifier: Apache-2.0

package storageversion

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/apply/crds"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// mostRewrites is how many resources one call writes, rounded to a page.
const mostRewrites = 1000

// migration rewrites all resources of a CRD unchanged, which stores them in the
// storage version.
type migration struct {
	Migrator
	resources tenant.Ref // of all namespaces
	stores    string     // the version of storage
	storage   string     // the version in which all have to be stored
	others    []string   // versions in which resources may be stored
	progress  progress
}

// newMigration reads from a CRD which resources have to be rewritten so that all are
// stored in one version.
func newMigration(r Migrator, crd *unstructured.Unstructured, storage string) migration {
	m := migration{Migrator: r, resources: tenant.Ref{Resource: crds.Resources(crd)}, storage: storage, progress: r.Migrations.of(r.keyOf(crd), crd.GetGeneration())}
	m.stores, _ = crds.Versions(crd)
	stored, _, _ := unstructured.NestedStringSlice(crd.Object, "status", "storedVersions")
	m.others = slices.DeleteFunc(append(stored, m.stores), func(name string) bool { return name == m.storage })
	slices.Sort(m.others)
	m.others = slices.Compact(m.others)
	return m
}

// run writes resources until none is left, or until it has written enough for one
// call. It tells whether only refused resources are left, which the next call
// retries. An error may be that of the webhook.
func (m *migration) run(ctx context.Context) (done bool, err error) {
	switch {
	case m.resources.Resource.Version == "":
		return false, errors.New("none of its versions is served")
	case m.stores != m.storage:
		return m.none(ctx)
	case m.progress.ended:
		return m.again(ctx)
	}
	options := metav1.ListOptions{Limit: tenant.PageSize}
	for budget := mostRewrites; ; {
		page, err := m.Client.ListMetadata(ctx, m.resources, options)
		switch {
		case apierrors.IsResourceExpired(err):
			return false, nil // the list expired; the next call goes on
		case objecterror.NotServed(err):
			return true, nil // so there are no resources
		case err != nil:
			return false, err
		}
		due := m.due(page.Items)
		if len(due) > 0 && budget <= 0 {
			return false, nil
		}
		if _, err := m.rewriteAll(ctx, due); err != nil {
			return false, err
		}
		if page.Continue == "" {
			m.progress.ended = true
			return true, nil
		}
		budget -= len(due)
		options.Continue = page.Continue
	}
}

// none tells that there is no resource: until the CRD is updated, resources that are
// stored in another version cannot be written in this one.
func (m *migration) none(ctx context.Context) (done bool, err error) {
	page, err := m.Client.ListMetadata(ctx, m.resources, metav1.ListOptions{Limit: 1})
	switch {
	case objecterror.NotServed(err):
		return true, nil
	case err == nil && len(page.Items) > 0:
		err = fmt.Errorf("the cluster stores %s still: apply a revision first that stores %s and converts", m.stores, m.storage)
	}
	return err == nil, err
}

// due are the resources after the last one that was written. A list is sorted by key.
func (m *migration) due(items []metav1.PartialObjectMetadata) []types.NamespacedName {
	var due []types.NamespacedName
	for _, item := range items {
		resource := types.NamespacedName{Namespace: item.Namespace, Name: item.Name}
		if resource.String() > m.progress.last.String() {
			due = append(due, resource)
		}
	}
	return due
}

// again retries the refused resources: a user may have corrected them since. When
// more were refused than are remembered, the migration starts again after that.
func (m *migration) again(ctx context.Context) (done bool, err error) {
	before := m.progress.refused
	m.progress.refused = nil
	tried, err := m.rewriteAll(ctx, before)
	m.progress.refused = append(m.progress.refused, before[tried:]...)
	if err == nil && len(m.progress.refused) == 0 && m.progress.further > 0 {
		m.progress = progress{generation: m.progress.generation}
		return false, nil
	}
	return err == nil, err
}

// rewriteAll rewrites resources, and records those that are refused, each for
// itself. An error concerns all of them: then no further
// one is begun, and only those before the first failure count as tried.
func (m *migration) rewriteAll(ctx context.Context, due []types.NamespacedName) (tried int, err error) {
	type attempt struct {
		begun bool
		err   error
	}
	going, stop := context.WithCancel(ctx)
	defer stop()
	attempts := parallel.Each(going, m.Limit, due, func(_ context.Context, resource types.NamespacedName) attempt {
		err := m.rewrite(ctx, resource)
		if responseOf(err) == failing {
			stop()
		}
		return attempt{begun: true, err: err}
	})
	for _, attempt := range attempts {
		response := responseOf(attempt.err)
		if !attempt.begun || response == failing {
			break
		}
		if response == refused {
			m.progress.refuse(due[tried], attempt.err)
		} else {
			m.progress.wrote(due[tried])
		}
		tried++
	}
	var failures []error
	for _, attempt := range attempts[tried:] {
		if responseOf(attempt.err) == failing {
			failures = append(failures, attempt.err)
		}
	}
	return tried, errors.Join(objecterror.Join(failures), ctx.Err())
}

// rewrite writes one resource as it is.
func (m *migration) rewrite(ctx context.Context, resource types.NamespacedName) error {
	ref := m.resources
	ref.Namespace, ref.Name = resource.Namespace, resource.Name
	_, err := m.Client.Merge(ctx, ref, map[string]any{}, inventory.OrphanManager)
	return err
}

// response is what an answer of the API server means for one resource.
type response int

const (
	// settled: it was written, by us or by another client, or is gone.
	settled response = iota
	// refused: the API server rejects this resource. It is invalid by a
	// schema that became stricter, say, or a policy or RBAC forbids the write.
	refused
	// failing: the failure does not concern the one resource, and may be temporary.
	failing
)

func responseOf(err error) response {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return settled
	case objecterror.ByConversionWebhook(err) || !errors.As(err, &status):
		return failing
	case strings.HasPrefix(err.Error(), `admission webhook "`): // has denied it, with a code of its liking
		return refused
	}
	switch code := status.Status().Code; {
	case code == http.StatusNotFound, code == http.StatusConflict:
		return settled
	case code == http.StatusUnauthorized, code == http.StatusRequestTimeout, code == http.StatusTooManyRequests:
		return failing
	case code >= http.StatusBadRequest && code < http.StatusInternalServerError:
		return refused
	}
	return failing
}
