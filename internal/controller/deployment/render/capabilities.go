// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"fmt"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/convert/helm"
	"github.com/satchel-dev/satchel/internal/spec"
)

// StillHas tells whether the cluster has the capabilities that a chart was converted with.
func (*Stage) StillHas(ctx context.Context, client *tenant.Client, had v1alpha1.Capabilities) bool {
	asked, _, err := askingCapabilities(client, false)(ctx)
	return err == nil && *spec.Capabilities(asked) == had
}

// askingCapabilities returns a function that asks the target cluster for its capabilities, for charts. An API group with a
// server that does not answer must not look unserved: the chart would leave objects out, and they would be deleted. On the
// first install a warning is enough. The conversion may outlive the reconcile.
func askingCapabilities(tenant *tenant.Client, first bool) func(context.Context) (helm.Capabilities, []string, error) {
	return func(ctx context.Context) (helm.Capabilities, []string, error) {
		version, err := tenant.ServerVersion(ctx)
		if err != nil {
			return helm.Capabilities{}, nil, failure.Error{Reason: v1alpha1.ReasonFailed, Err: err}
		}
		served, silent, err := tenant.Kinds().Versions(ctx)
		groups := strings.Join(silent, ", ")
		switch {
		case err != nil:
			return helm.Capabilities{}, nil, failure.Error{Reason: v1alpha1.ReasonFailed, Err: err}
		case len(silent) > 0 && !first:
			return helm.Capabilities{}, nil, failure.Error{Reason: v1alpha1.ReasonFailed, Err: fmt.Errorf(
				"the API server of %s does not answer, so its kinds are unknown, and the chart may depend on them: see kubectl get apiservices", groups)}
		case len(silent) > 0:
			warning := "the API server of " + groups + " does not answer: its kinds are not among the capabilities that the chart sees"
			return helm.Capabilities{KubeVersion: version, APIVersions: served}, []string{warning}, nil
		}
		return helm.Capabilities{KubeVersion: version, APIVersions: served}, nil, nil
	}
}
