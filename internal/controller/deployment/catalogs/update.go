// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/format"
	"github.com/satchel-dev/satchel/internal/resolver"
)

// looked is one catalog, and what it says about the package.
type looked struct {
	object *v1alpha1.BundleCatalog
	said   resolver.Catalog
	digest string
	// unread is why nothing is known of the package.
	unread error
}

// update resolves the package again if what that depends on changed. The next upgrade waits for the outcome of the last one,
// unless spec.catalog was changed.
func (st *Stage) update(ctx context.Context, in *Input) error {
	if st.Packages == nil {
		return errUnset
	}
	status := in.Object.Status.Catalog
	if in.resolvedBefore() && UnderWay(in.Object) {
		return nil
	}
	in.goBack()
	visible, err := st.visible(ctx, in.Object)
	if err != nil {
		return err
	}
	all, err := st.look(ctx, in, visible)
	if err != nil {
		return err
	}
	input := in.inputDigest(all)
	if status.Resolved != nil && status.Resolved.Input == input {
		return nil
	}
	if err := st.choose(in, all); err != nil {
		return err
	}
	status.Resolved.Input, status.Resolved.Query = input, queryDigest(in.Object.Spec.Catalog)
	return nil
}

// look reads the package in the catalogs that serve something.
func (st *Stage) look(ctx context.Context, in *Input, visible []v1alpha1.BundleCatalog) ([]looked, error) {
	var all []looked
	var waits error
	name := in.Object.Spec.Catalog.Package
	for i := range visible {
		c := &visible[i]
		serves, counts := served(in.Object, c)
		if !serves {
			waits = notReady(c)
			if counts && in.Object.Spec.Catalog.Lock == nil {
				return nil, waits
			}
			continue
		}
		one := looked{object: c, said: resolver.Catalog{Name: c.Name, Priority: c.Spec.Priority}}
		found, err := st.Packages.Read(ctx, advertised(c), name)
		switch {
		case err != nil && in.Object.Spec.Catalog.Lock == nil:
			return nil, failure.Error{Reason: v1alpha1.ReasonCatalogNotReady, Err: err}
		case err != nil:
			one.unread = err
		}
		one.said.Package = found.Package
		one.said.Problem = found.Problem
		one.digest = found.Digest
		if st.Saw != nil && err == nil {
			st.Saw(types.NamespacedName{Namespace: c.Namespace, Name: c.Name}, name, found.Digest)
		}
		all = append(all, one)
	}
	if len(all) == 0 && in.Object.Spec.Catalog.Lock == nil {
		return nil, waits
	}
	return all, nil
}

// inputDigest identifies all that the result depends on.
func (in *Input) inputDigest(all []looked) string {
	var catalogs []string
	for _, one := range all {
		catalogs = append(catalogs, fmt.Sprintf("%s/%s %d %s %t", one.object.Namespace, one.object.Name, one.said.Priority, one.digest, one.unread != nil))
	}
	var installed v1alpha1.InstalledBundle
	if known := in.Object.Status.Catalog.Installed; known != nil {
		installed = v1alpha1.InstalledBundle{Bundle: known.Bundle, Version: known.Version}
	}
	return stage.DigestOfAll(format.CatalogQuery.Purpose("catalog-input"), queryDigest(in.Object.Spec.Catalog), catalogs, installed, in.rejected())
}

// goBack makes upgrades start from the last healthy bundle, once the installed one was rejected.
func (in *Input) goBack() {
	kept := in.Object.Status.Internal.Artifact
	if rejected := in.rejected(); rejected == "" || rejected != installedName(in.Object) || kept == nil || kept.Bundle == nil {
		return
	}
	in.Object.Status.Catalog.Installed = kept.Bundle.DeepCopy()
}

// rejected is the bundle that was rolled back; "" for none. A changed spec and a request lift the rejection.
func (in *Input) rejected() string {
	status := &in.Object.Status
	asked := in.Before.Status.ObservedGeneration != in.Object.Generation ||
		pipeline.Requested(in.Object) != "" && pipeline.Requested(in.Object) != in.Before.Status.LastHandledReconcileAt
	if status.Rejected.Revision == "" || asked {
		return ""
	}
	for _, record := range status.History {
		if record.Revision == status.Rejected.Revision {
			return record.Bundle // what the package resolves to may be the bundle that replaces it
		}
	}
	return ""
}

// choose sets what the package resolves to.
func (st *Stage) choose(in *Input, all []looked) error {
	if in.Object.Spec.Catalog.Lock != nil {
		return in.chooseLocked(all)
	}
	query := queryOf(in)
	answer, err := resolver.Resolve(query, said(all))
	if err != nil {
		return refused(err)
	}
	if rejected := in.rejected(); rejected != "" && answer.Bundle == rejected {
		kept := in.Object.Status.Catalog.Resolved
		other, err := resolver.Resolve(query, without(said(all), rejected))
		if err != nil || other.Bundle == installedName(in.Object) {
			in.Object.Status.Catalog.Resolved = kept // nothing else fits: it stays rejected
			return nil
		}
		answer = other
	}
	in.record(answer, all)
	return nil
}

// queryOf is spec.catalog, and what is installed, as the resolver reads it.
func queryOf(in *Input) resolver.Query {
	of := in.Object.Spec.Catalog
	query := resolver.Query{
		Package: of.Package, Range: of.Version, Channels: of.Channels,
		UpgradePolicy: resolver.UpgradePolicy(of.UpgradePolicy), Downgrade: resolver.Downgrade(of.Downgrade),
	}
	if installed := in.Object.Status.Catalog.Installed; installed != nil {
		query.Installed = &resolver.Installed{Bundle: installed.Bundle, Version: installed.Version}
	}
	return query
}

func said(all []looked) []resolver.Catalog {
	list := make([]resolver.Catalog, 0, len(all))
	for _, one := range all {
		list = append(list, one.said)
	}
	return list
}

// refused turns the refusal of the resolver into the failure of the step.
func refused(err error) error {
	var refusal *resolver.RefusalError
	if !errors.As(err, &refusal) {
		return err
	}
	failed := failure.Error{Reason: v1alpha1.ReasonResolutionFailed, Woken: true, Err: errors.New(
		strings.Join(append([]string{refusal.Text}, refusal.Details()...), "\n"))}
	if refusal.Reason == resolver.InvalidRange {
		failed.Reason, failed.Stalled = v1alpha1.ReasonInvalidRange, true
	}
	return failed
}
