// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/observe"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/ignore"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/plan/pruning"
	"github.com/satchel-dev/satchel/internal/apply/plan/requirement"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/overlay"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// Observing returns the plan options in the spec of a deployment. The caller fills in what depends on its bundle and
// its status. With keeping, for drift correction of the applied revision, which passed the checks before, only a few
// options are set. The error says which rule of spec.drift is invalid.
func Observing(d *v1alpha1.BundleDeployment, keeping bool) (observe.Request, error) {
	o := observe.Request{
		InstallNamespace: effective.InstallNamespace(d), CreateNamespace: d.Spec.Target.CreateNamespace, Optional: optionalKinds(d), Keeping: keeping,
	}
	var err error
	if o.Ignore, err = Ignore(d); err != nil || keeping {
		return o, err
	}
	o.Pruning = Pruning(&d.Spec)
	o.PodSecurity = d.Spec.Apply.PodSecurityLabels || effective.ApprovalMode(&d.Spec) != v1alpha1.ApprovalAutomatic
	o.Protection = ownership.Protection(effective.CollisionProtection(&d.Spec))
	o.UpgradeSafety = plan.Enforcement(effective.UpgradeSafety(&d.Spec))
	o.RequirementsPolicy = plan.Enforcement(requirementsPolicy(&d.Spec))
	if crds := d.Spec.Apply.CRDs; crds != nil {
		o.Exempt = crds.UpgradeSafetyExemptions
	}
	return o, nil
}

// Ignore compiles the rules for fields that drift correction ignores.
func Ignore(d *v1alpha1.BundleDeployment) (ignore.Rules, error) {
	return ignore.New(IgnoreRules(d))
}

// CheckSelectors checks the patterns and selectors of the patches in spec.processors and of spec.drift. The error names the field.
func CheckSelectors(d *v1alpha1.BundleDeployment) error {
	if err := overlay.CheckTargets(Overlay(&d.Spec)); err != nil {
		return err
	}
	_, err := Ignore(d)
	return err
}

// IgnoreRules are these rules, not compiled.
func IgnoreRules(d *v1alpha1.BundleDeployment) []ignore.Rule {
	var rules []ignore.Rule
	for _, rule := range ignoreRules(&d.Spec) {
		r := ignore.Rule{Paths: rule.Paths}
		if t := rule.Target; t != nil {
			r.Target = ignore.Selector{
				Group: t.Group, Version: t.Version, Kind: t.Kind, Namespace: t.Namespace, Name: t.Name,
				LabelSelector: t.LabelSelector, AnnotationSelector: t.AnnotationSelector,
			}
		}
		rules = append(rules, r)
	}
	return rules
}

// Pruning returns the options for deleting and orphaning objects.
func Pruning(of *v1alpha1.BundleDeploymentSpec) pruning.Policy {
	most, percent := pruneLimit(&of.Prune)
	return pruning.Policy{
		Disabled:    !prunes(&of.Prune),
		First:       of.Prune.Timing == v1alpha1.PruneBeforeApply,
		Limit:       &pruning.Limit{Most: most, Percent: percent},
		Orphan:      of.DeletionPolicy == v1alpha1.DeletionOrphan,
		Definitions: effective.DeletesCRDs(of),
		Recreates:   of.Apply.Recreate == v1alpha1.RecreateOnImmutableChange,
	}
}

// optionalKinds are the kinds of objects that are skipped while their kind is not served.
func optionalKinds(d *v1alpha1.BundleDeployment) []schema.GroupKind {
	kinds := make([]schema.GroupKind, 0, len(d.Spec.Apply.OptionalKinds))
	for _, kind := range d.Spec.Apply.OptionalKinds {
		kinds = append(kinds, schema.GroupKind{Group: kind.Group, Kind: kind.Kind})
	}
	return kinds
}

// Packages are those that other deployments of the same namespace have installed on the cluster with the identity
// target, sorted. During an upgrade it is the last version that was healthy.
func Packages(deployments []v1alpha1.BundleDeployment, of *v1alpha1.BundleDeployment, target string) []requirement.Package {
	installed := map[requirement.Package]bool{}
	for i := range deployments {
		other := &deployments[i]
		there := other.Status.Inventory != nil && other.Status.Inventory.Target == target
		if provided := other.Status.Healthy.Package; other.Name != of.Name && there && provided != nil && other.DeletionTimestamp.IsZero() {
			installed[requirement.Package{Name: provided.Name, Version: provided.Version}] = true
		}
	}
	return slices.SortedFunc(maps.Keys(installed), func(a, b requirement.Package) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Version, b.Version))
	})
}

// Ranks are the ranks of the objects of a conversion, by identity; nil if it has none.
func Ranks(of convert.Result) map[inventory.ID]int {
	if len(of.Ranks) != len(of.Objects) {
		return nil
	}
	byID := make(map[inventory.ID]int, len(of.Objects))
	for i, object := range of.Objects {
		byID[inventory.IDOf(object)] = of.Ranks[i]
	}
	return byID
}

// Origins are the files that the objects of a conversion came from, by identity; nil if that is not known.
func Origins(of convert.Result) map[inventory.ID]string {
	if len(of.Origins) != len(of.Objects) {
		return nil
	}
	byID := make(map[inventory.ID]string, len(of.Objects))
	for i, object := range of.Objects {
		byID[inventory.IDOf(object)] = of.Origins[i]
	}
	return byID
}
