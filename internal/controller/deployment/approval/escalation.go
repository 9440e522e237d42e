// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"fmt"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/escalation"
	"github.com/satchel-dev/satchel/internal/apply/plan/impact"
	"github.com/satchel-dev/satchel/internal/controller/deployment/snapshot"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// escalations lists what in the plan goes beyond the last executed plan, except deletions:
// other ServiceAccounts and clusters, another deletionPolicy, new permissions, changes of CRDs,
// objects that are adopted or recreated, and what package escalation does not know to be harmless.
func (a Approvals) escalations(c *State, p Proposal) ([]string, error) {
	spec := p.Object.Spec
	if c.server != "" { // which was approved with the kubeconfig
		spec.Target.ClusterReference = effective.ClusterReference(c.record.Cluster)
	}
	found := reaches(c.record, &spec)
	if c.server == "" {
		found = append(found, LeadsElsewhere(c.record, &spec, c.reach)...)
	}
	var recreated, adopted []inventory.ID
	for action := range p.Plan.Actions() {
		switch action.Verb {
		case plan.Recreate:
			recreated = append(recreated, action.ID)
		case plan.Adopt:
			adopted = append(adopted, action.ID)
		}
	}
	found = slices.Concat(found, destroysText("recreated", recreated), destroysText("adopted from other owners", adopted))
	contents, err := a.contentEscalations(c, p)
	return slices.Concat(p.Further, found, contents), err
}

// reaches lists what in the spec goes beyond the last plan, whatever the content.
func reaches(was *v1alpha1.ExecutedPlan, spec *v1alpha1.BundleDeploymentSpec) []string {
	if was == nil {
		return nil
	}
	found := Elsewhere(was, spec)
	switch kept, keeps := was.DeletionPolicy == v1alpha1.DeletionOrphan, spec.DeletionPolicy == v1alpha1.DeletionOrphan; {
	case kept && !keeps:
		found = append(found, "the objects would be deleted with the BundleDeployment, as spec.deletionPolicy says now")
	case !kept && keeps:
		found = append(found, "the objects would stay when the BundleDeployment is deleted, as spec.deletionPolicy says now")
	}
	if effective.DeletesCRDs(spec) && !was.DeletesDefinitions {
		found = append(found, "CustomResourceDefinitions would be deleted with the bundle, as spec.apply.crds.deletionPolicy says now")
	}
	return found
}

// Elsewhere lists the differences in ServiceAccount and cluster between a spec and an executed plan.
func Elsewhere(was *v1alpha1.ExecutedPlan, spec *v1alpha1.BundleDeploymentSpec) []string {
	var found []string
	changed := func(what, before, now string) {
		if before != now {
			found = append(found, fmt.Sprintf("%s changes from %q to %q", what, before, now))
		}
	}
	changed("spec.serviceAccountName", was.ServiceAccountName, spec.ServiceAccountName)
	changed("spec.target.serviceAccountName", was.RemoteServiceAccountName, spec.Target.ServiceAccountName)
	changed("the cluster of spec.target", kubeConfigText(was.Cluster), kubeConfigText(effective.RemoteCluster(spec.Target.ClusterReference)))
	return found
}

// contentEscalations lists new permissions and changed CRDs, compared with what was
// applied last, which is read from the controller's cache. If it is missing there, the
// result says so.
func (a Approvals) contentEscalations(c *State, p Proposal) ([]string, error) {
	last, found, err := snapshot.Read(a.Snapshots, string(p.Object.UID))
	if err != nil && !snapshot.Unusable(err) {
		return nil, err
	}
	if !found && (p.Object.Status.Applied.Revision != "" || c.record != nil && p.Listed.Len() > 0) {
		return []string{"what was applied last is not in the controller's cache any more, so new permissions and CRD changes are not known"}, nil
	}
	desired, err := p.Bare(p.Plan.Objects())
	if err != nil {
		return nil, fmt.Errorf("comparing with what was applied last: %w", err)
	}
	before, after := slices.Concat(last.Objects, plan.Rendered(last.Hooks)), slices.Concat(desired, plan.Rendered(p.Hooks))
	change := impact.Of(before, after, effective.InstallNamespace(p.Object))
	further := escalation.Of(before, after, effective.InstallNamespace(p.Object))
	return slices.Concat(listed("new permissions", change.Permissions), listed("changes of CRDs", change.Definitions), listed("not known to be harmless", further)), nil
}

// listed names up to mostAsked things of a kind; nil for none.
func listed[T fmt.Stringer](what string, things []T) []string {
	if len(things) == 0 {
		return nil
	}
	words := make([]string, 0, mostAsked)
	for _, thing := range things[:min(len(things), mostAsked)] {
		words = append(words, thing.String())
	}
	if more := len(things) - mostAsked; more > 0 {
		words = append(words, fmt.Sprintf("and %d more", more))
	}
	return []string{what + ": " + strings.Join(words, "; ")}
}
