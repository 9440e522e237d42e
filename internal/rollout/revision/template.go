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
	return errors.Join(append(problems, checkSizes(spec, template, overrides))...)
}

// Limits of lists in a spec of a BundleDeployment, which are those of its CRD. A template has no schema that holds them.
const (
	mostInputs     = 50 // of a chart, and of the processors together
	mostProcessors = 100
	mostVariables  = 1000
)

// checkCounts refuses lists that are longer than permitted.
func checkCounts(field string, spec *v1alpha1.BundleDeploymentSpec) error {
	tooMany := func(name string, most int) error {
		return &SizeError{fmt.Errorf("%s.%s has more than %d entries: use fewer and larger ones", field, name, most)}
	}
	if spec.Helm != nil && len(spec.Helm.ValuesFrom) > mostInputs {
		return tooMany("helm.valuesFrom", mostInputs)
	}
	if len(spec.Processors) > mostProcessors {
		return tooMany("processors", mostProcessors)
	}
	references := 0
	for i, variables := range effective.Variables(spec) {
		if len(variables.Values) > mostVariables {
			return tooMany(fmt.Sprintf("processors[%d].variables.values", i), mostVariables)
		}
		references += len(variables.ValuesFrom)
	}
	if references > mostInputs {
		return tooMany("processors[].variables.valuesFrom", mostInputs)
	}
	return nil
}

// checkSizes refuses a template that is larger than permitted with the values of a cluster that is named in the spec. Clusters that
// are listed elsewhere are checked when they are rendered.
func checkSizes(spec *v1alpha1.BundleRolloutSpec, template []byte, overrides []override) error {
	for i := range spec.Clusters {
		one := spec.Clusters[i].Cluster
		if one == nil {
			continue
		}
		var read v1alpha1.BundleDeploymentSpec
		merged, err := merge(template, overrides, one.Labels)
		if err == nil && json.Unmarshal(merged, &read) != nil {
			continue // it is reported for the cluster
		}
		var known map[string]string
		if err == nil {
			known, err = values(spec.Variables, &Cluster{Name: one.Name, Labels: one.Labels, Annotations: one.Annotations})
		}
		if err == nil {
			left := room(MaxSpecBytes - len(merged))
			for j := range spec.Variables {
				if _, has := known[spec.Variables[j].Name]; !has {
					known[spec.Variables[j].Name] = "" // it is reported for the cluster
				}
			}
			err = expandSpec(&read, &left, known)
		}
		if size := (*SizeError)(nil); errors.As(err, &size) {
			return fmt.Errorf("spec.clusters[%d], cluster %s: %w", i, one.Name, size)
		}
	}
	return nil
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
		problems = append(problems, fmt.Errorf("spec.strategy.progressDeadline (%s) has to be longer than %s.health.timeout (%s): clusters would be overdue before they fail", deadline, field, timeout))
	}
	if err := checkCounts(field, &read); err != nil {
		return errors.Join(append(problems, err)...)
	}
	names := map[string]string{clusterVariable: "c"}
	for i := range spec.Variables {
		names[spec.Variables[i].Name] = "v"
		if value := spec.Variables[i].Value; value != nil {
			names[spec.Variables[i].Name] = *value
		}
	}
	left := room(MaxSpecBytes - len(merged))
	if onlyCluster := read.Target.Namespace; hasVariable(onlyCluster) {
		if _, err := expand(onlyCluster, &left, func(name string) (string, bool) { return "", name == clusterVariable }); err != nil {
			problems = append(problems, fmt.Errorf("%s.target.namespace may have no variable but $(cluster): it cannot change", field))
		}
	}
	return errors.Join(append(problems, expandSpec(&read, &left, names))...)
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
