// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// ignoreRules leave fields to other clients.
func ignoreRules(of *v1alpha1.BundleDeploymentSpec) []v1alpha1.IgnoreRule {
	if of.Drift == nil {
		return nil
	}
	return of.Drift.Ignore
}

// valuesKeyOf is the key that holds the values.
func valuesKeyOf(of *v1alpha1.ValuesReference) string {
	if of.ValuesKey == "" {
		return v1alpha1.DefaultValuesKey
	}
	return of.ValuesKey
}

// releaseNameOf is the name of the release for the templates of a chart.
func releaseNameOf(of *v1alpha1.BundleDeployment) string {
	if of.Spec.Helm == nil || of.Spec.Helm.ReleaseName == "" {
		return of.Name
	}
	return of.Spec.Helm.ReleaseName
}

// prunes tells whether objects that leave the bundle are deleted.
func prunes(of *v1alpha1.PruneOptions) bool { return of.Enabled == nil || *of.Enabled }

// pruneLimit is the limit: a number, or so many percent.
func pruneLimit(of *v1alpha1.PruneOptions) (most int, percent bool) {
	if of.Limit == nil {
		return v1alpha1.DefaultPruneLimit, true
	}
	if of.Limit.Type == intstr.Int {
		return int(of.Limit.IntVal), false
	}
	most, err := strconv.Atoi(strings.TrimSuffix(of.Limit.StrVal, "%"))
	if err != nil || most < 0 {
		return v1alpha1.DefaultPruneLimit, true // stored under a CRD that did not validate it
	}
	return most, true
}

// requirementsPolicy is how the requirements of the bundle are enforced.
func requirementsPolicy(of *v1alpha1.BundleDeploymentSpec) v1alpha1.Enforcement {
	if of.RegistryV1 == nil || of.RegistryV1.Requirements == "" {
		return v1alpha1.Enforce
	}
	return of.RegistryV1.Requirements
}
