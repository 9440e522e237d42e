// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// DefaultProgressDeadline is spec.strategy.progressDeadline where it is left out.
const DefaultProgressDeadline = 15 * time.Minute

// CheckTemplate checks what every cluster's BundleDeployment is made of: the template, each override merged into it, and that all
// variables exist. The error names every field that is wrong. What the API server checks beyond types, it checks when a
// BundleDeployment is created in a dry run.
func CheckTemplate(spec *v1alpha1.BundleRolloutSpec) error {
	const field = "spec.template.spec"
	template := spec.Template.Spec.Raw
	if len(template) > MaxTemplateBytes {
		return fmt.Errorf("%s has %d bytes, more than %d", field, len(template), MaxTemplateBytes)
	}
	if err := errors.Join(refuseFields(field, template, ownFields), misfits(field, template)); err != nil {
		return err
	}
	overrides, err := readOverrides(spec.Overrides)
	if err != nil {
		return err
	}
	problems := []error{checkMerged(spec, field, template)}
	for i := range overrides {
		merged, err := merge(template, []override{{labels.Everything(), overrides[i].patch}}, nil)
		if err != nil {
			return err
		}
		problems = append(problems, checkMerged(spec, fmt.Sprintf("spec.overrides[%d].patch, merged", i), merged))
	}
	return errors.Join(problems...)
}

// checkMerged checks a template after overrides.
func checkMerged(spec *v1alpha1.BundleRolloutSpec, field string, merged []byte) error {
	if err := misfits(field, merged); err != nil {
		return err
	}
	var read v1alpha1.BundleDeploymentSpec
	if err := json.Unmarshal(merged, &read); err != nil {
		return fmt.Errorf("decoding %s: %w", field, err)
	}
	var problems []error
	if read.ServiceAccountName == "" {
		problems = append(problems, fmt.Errorf("%s.serviceAccountName is missing: it is the ServiceAccount that installs the bundle", field))
	}
	deadline := cmp.Or(spec.Strategy.ProgressDeadline.Duration, DefaultProgressDeadline)
	timeout := effective.Timeout(&read)
	if deadline <= timeout {
		problems = append(problems, fmt.Errorf("spec.strategy.progressDeadline (%s) has to be longer than %s.timeout (%s): clusters would be overdue before they fail", deadline, field, timeout))
	}
	names := map[string]string{clusterVariable: "c"}
	for i := range spec.Variables {
		names[spec.Variables[i].Name] = "v"
	}
	if onlyCluster := read.InstallNamespace; hasVariable(onlyCluster) {
		if _, err := expand(onlyCluster, func(name string) (string, bool) { return "", name == clusterVariable }); err != nil {
			problems = append(problems, fmt.Errorf("%s.installNamespace may have no variable but $(cluster): it cannot change", field))
		}
	}
	return errors.Join(append(problems, expandSpec(&read, names))...)
}

// AccountOf is the ServiceAccount of the template.
func AccountOf(spec *v1alpha1.BundleRolloutSpec) (string, error) {
	var template struct {
		ServiceAccountName string `json:"serviceAccountName"`
	}
	if err := json.Unmarshal(spec.Template.Spec.Raw, &template); err != nil {
		return "", fmt.Errorf("reading spec.template.spec: %w", err)
	}
	return template.ServiceAccountName, nil
}
