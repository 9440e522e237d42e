// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"fmt"
	"strings"

	"github.com/satchel-dev/satchel/internal/convert/helm"
	"github.com/satchel-dev/satchel/internal/spec"
)

// given is what the conversion is given beside the bundle and the spec.
func (r *Reconciler) given(ctx context.Context, s *state) (spec.Given, error) {
	if err := r.readInputs(ctx, s); err != nil {
		return spec.Given{}, err
	}
	given := spec.Given{Contents: s.inputs.contents, Values: s.inputs.values}
	if !spec.AsksCapabilities(s.object, s.content.FS()) {
		return given, nil
	}
	var err error
	if given.Capabilities, err = s.askCapabilities(ctx); err == nil {
		s.capabilities = spec.Capabilities(given.Capabilities)
	}
	return given, err
}

// askCapabilities asks the cluster that receives the objects what a chart may want to know of it. An API group whose server
// does not answer must not look as if nobody served it: a chart leaves objects out then, and they would be deleted. The
// first time there is nothing to lose, and a warning does.
func (s *state) askCapabilities(ctx context.Context) (helm.Capabilities, error) {
	version, err := s.client.ServerVersion(ctx)
	if err != nil {
		return helm.Capabilities{}, err
	}
	served, silent, err := s.client.Kinds().Versions(ctx)
	if err != nil {
		return helm.Capabilities{}, err
	}
	if len(silent) > 0 {
		groups := strings.Join(silent, ", ")
		if s.previous.Len() > 0 {
			return helm.Capabilities{}, fmt.Errorf("the API server of %s does not answer, so that nobody knows which kinds it has, and the chart might ask for them: see kubectl get apiservices", groups)
		}
		s.warnings = append(s.warnings, "the API server of "+groups+" does not answer: its kinds are not among the capabilities that the chart sees")
	}
	return helm.Capabilities{KubeVersion: version, APIVersions: served}, nil
}
