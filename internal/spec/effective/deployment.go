// SPDX-License-Identifier: Apache-2.0

// Package effective says what the fields of a spec mean: what counts where a field is left out, and what follows from
// several fields together. It is for all who read specs, and imports nothing but the API.
package effective

import (
	"errors"
	"iter"
	"time"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// InstallNamespace is the namespace of objects that name none.
func InstallNamespace(d *v1alpha1.BundleDeployment) string {
	if d.Spec.Target.Namespace == "" {
		return d.Namespace
	}
	return d.Spec.Target.Namespace
}

// SourceName is the name of the BundleSource that is installed: the referenced
// one, or the one that holds the inline source. It is empty for a source of Flux.
func SourceName(d *v1alpha1.BundleDeployment) string {
	switch ref := d.Spec.SourceRef; {
	case ref == nil:
		return d.Name
	case IsFlux(ref):
		return ""
	default:
		return ref.Name
	}
}

// IsFlux tells whether the source is one of Flux.
func IsFlux(ref *v1alpha1.SourceReference) bool { return ref.Kind != v1alpha1.BundleSourceKind }

// SourceDisplayName is the source in messages: the name of a BundleSource, or the kind and
// name of a source of Flux.
func SourceDisplayName(d *v1alpha1.BundleDeployment) string {
	if ref := d.Spec.SourceRef; ref != nil && IsFlux(ref) {
		return ref.Kind + "/" + ref.Name
	}
	return SourceName(d)
}

// Interval is how often the objects are compared with the bundle.
func Interval(spec *v1alpha1.BundleDeploymentSpec) time.Duration {
	return orDefault(spec.Interval, 10*time.Minute)
}

// RetryInterval is the longest pause before a failed attempt is repeated.
func RetryInterval(spec *v1alpha1.BundleDeploymentSpec) time.Duration {
	return orDefault(spec.RetryInterval, time.Minute)
}

// Timeout is how long a revision may take to become healthy.
func Timeout(spec *v1alpha1.BundleDeploymentSpec) time.Duration {
	return orDefault(spec.Health.Timeout, 5*time.Minute)
}

// Problem says what of the spec cannot be read, although it was stored; nil when
// nothing is wrong.
func Problem(spec *v1alpha1.BundleDeploymentSpec) error {
	problems := []error{
		problem("spec.interval", spec.Interval), problem("spec.retryInterval", spec.RetryInterval), problem("spec.health.timeout", spec.Health.Timeout),
	}
	if spec.Source != nil {
		problems = append(problems, problem("spec.source.interval", spec.Source.Interval), problem("spec.source.timeout", spec.Source.Timeout))
	}
	return errors.Join(problems...)
}

// ApprovalMode is which plans wait for an approval.
func ApprovalMode(spec *v1alpha1.BundleDeploymentSpec) v1alpha1.ApprovalMode {
	if spec.Approval == nil || spec.Approval.Mode == "" {
		return v1alpha1.ApprovalAutomatic
	}
	return spec.Approval.Mode
}

// DriftMode is what is done about drift.
func DriftMode(spec *v1alpha1.BundleDeploymentSpec) v1alpha1.DriftCorrection {
	if spec.Drift == nil || spec.Drift.Correction == "" {
		return v1alpha1.DriftEnabled
	}
	return spec.Drift.Correction
}

// DeletesCRDs tells whether CustomResourceDefinitions may be deleted.
func DeletesCRDs(spec *v1alpha1.BundleDeploymentSpec) bool {
	return spec.Apply.CRDs != nil && spec.Apply.CRDs.DeletionPolicy == v1alpha1.DeletionDelete
}

// CollisionProtection is which existing objects of other owners are adopted.
func CollisionProtection(spec *v1alpha1.BundleDeploymentSpec) v1alpha1.CollisionProtection {
	if spec.Apply.CollisionProtection == "" {
		return v1alpha1.CollisionPrevent
	}
	return spec.Apply.CollisionProtection
}

// UpgradeSafety is how changes of CustomResourceDefinitions are judged.
func UpgradeSafety(spec *v1alpha1.BundleDeploymentSpec) v1alpha1.Enforcement {
	if spec.Apply.CRDs == nil || spec.Apply.CRDs.UpgradeSafety == "" {
		return v1alpha1.Enforce
	}
	return spec.Apply.CRDs.UpgradeSafety
}

// Variables are the processors of variables, with their indexes.
func Variables(spec *v1alpha1.BundleDeploymentSpec) iter.Seq2[int, *v1alpha1.VariablesProcessor] {
	return func(yield func(int, *v1alpha1.VariablesProcessor) bool) {
		for i := range spec.Processors {
			if of := spec.Processors[i].Variables; of != nil && !yield(i, of) {
				return
			}
		}
	}
}

// HistoryLimit is how many revisions the history has.
func HistoryLimit(spec *v1alpha1.BundleDeploymentSpec) int {
	if spec.HistoryLimit == nil {
		return 5
	}
	return int(*spec.HistoryLimit)
}

// RollsBack tells whether a failed revision is rolled back to the last healthy one.
func RollsBack(spec *v1alpha1.BundleDeploymentSpec) bool {
	return spec.Remediation != nil && spec.Remediation.Strategy == v1alpha1.RemediationRollback
}
