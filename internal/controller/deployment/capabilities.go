// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"fmt"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/convert/helm"
	"github.com/satchel-dev/satchel/internal/spec"
)

// given is what the conversion is given beside the bundle and the spec.
func (r *Reconciler) given(ctx context.Context, s *state) (spec.Given, error) {
	if err := r.readInputs(ctx, s); err != nil {
		return spec.Given{}, err
	}
	return spec.Given{Contents: s.inputs.contents, Values: s.inputs.values}, nil
}

// askingCapabilities returns what asks the cluster that receives the objects what a chart may want to know of it. An API group whose server
// does not answer must not look as if nobody served it: a chart leaves objects out then, and they would be deleted. The
// first time there is nothing to lose, and a warning does.
// The conversion may outlive the reconcile: nothing of the state is changed.
func (s *state) askingCapabilities() func(context.Context) (helm.Capabilities, []string, error) {
	tenant, first := s.client, s.previous.Len() == 0
	return func(ctx context.Context) (helm.Capabilities, []string, error) {
		version, err := tenant.ServerVersion(ctx)
		if err != nil {
			return helm.Capabilities{}, nil, failure{reason: v1alpha1.ReasonFailed, err: err}
		}
		served, silent, err := tenant.Kinds().Versions(ctx)
		groups := strings.Join(silent, ", ")
		switch {
		case err != nil:
			return helm.Capabilities{}, nil, failure{reason: v1alpha1.ReasonFailed, err: err}
		case len(silent) > 0 && !first:
			return helm.Capabilities{}, nil, failure{reason: v1alpha1.ReasonFailed, err: fmt.Errorf(
				"the API server of %s does not answer, so that nobody knows which kinds it has, and the chart might ask for them: see kubectl get apiservices", groups)}
		case len(silent) > 0:
			warning := "the API server of " + groups + " does not answer: its kinds are not among the capabilities that the chart sees"
			return helm.Capabilities{KubeVersion: version, APIVersions: served}, []string{warning}, nil
		}
		return helm.Capabilities{KubeVersion: version, APIVersions: served}, nil, nil
	}
}
