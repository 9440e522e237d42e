// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/convert/helm"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/internal/spec/values"
)

// InputsRead are the Secrets and ConfigMaps that a conversion needs, as the user read them.
type InputsRead struct {
	Given  spec.Given
	Needed []spec.Input
	// contents of them, and what of that must not be shown.
	Contents spec.Contents
	Scrub    *values.Scrubber
}

// ReadInputs reads, with the user's permissions, the further inputs of a deployment's conversion: values from Secrets and
// ConfigMaps in its namespace, unless they are among those that are held already, and for a chart the capabilities of the
// target cluster.
func ReadInputs(ctx context.Context, d *v1alpha1.BundleDeployment, given spec.Contents, user, target *tenant.Client, files fs.FS) (read InputsRead, err error) {
	read.Needed, read.Contents = spec.Inputs(d), spec.Contents{}
	var problems []error
	for _, ref := range spec.InputRefs(read.Needed) {
		if given[ref] != nil {
			read.Contents[ref] = given[ref]
			continue
		}
		held, err := readInput(ctx, user, d.Namespace, ref)
		switch {
		case ctx.Err() != nil:
			return read, ctx.Err()
		case err != nil:
			problems = append(problems, err)
		case held != nil:
			read.Contents[ref] = held
		}
	}
	if err := errors.Join(problems...); err != nil {
		return read, err
	}
	read.Scrub = spec.Scrubber(d, read.Needed, read.Contents)
	if err := spec.Lacking(d.Namespace, read.Needed, read.Contents); err != nil {
		return read, err
	}
	read.Given.Contents = read.Contents
	if read.Given.Values, err = spec.HelmValues(d, read.Contents); err != nil {
		return read, err
	}
	if spec.AsksCapabilities(d, files) {
		read.Given.Capabilities, err = capabilitiesOf(ctx, target)
	}
	return read, err
}

// readInput reads one Secret or ConfigMap; nil when it does not exist.
func readInput(ctx context.Context, user *tenant.Client, namespace string, ref spec.InputRef) (map[string]string, error) {
	object, err := user.Get(ctx, tenant.Ref{Resource: kit.CoreResource(ref.Kind), Namespace: namespace, Name: ref.Name})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // it may be optional
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("you may not get %s, which holds values: the bundle cannot be converted without them", ref.In(namespace))
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", ref.In(namespace), err)
	}
	return spec.DataOf(object)
}

// capabilitiesOf reads the capabilities of a cluster that a chart may query.
func capabilitiesOf(ctx context.Context, target *tenant.Client) (helm.Capabilities, error) {
	version, err := target.ServerVersion(ctx)
	if err != nil {
		return helm.Capabilities{}, err
	}
	served, silent, err := target.Kinds().Versions(ctx)
	if err == nil && len(silent) > 0 {
		err = fmt.Errorf("the API server of %s does not answer, so its kinds are unknown, and the chart may depend on them: see kubectl get apiservices", strings.Join(silent, ", "))
	}
	return helm.Capabilities{KubeVersion: version, APIVersions: served}, err
}
