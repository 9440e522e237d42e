// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/format"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// longestName bounds the names of BundleDeployments, and digitsOfLongName is how many digits replace the end of a longer one.
const (
	longestName      = 63
	digitsOfLongName = 10
)

// ChildName is the name of the BundleDeployment of a cluster: those of both, and a hash instead of the end where that is too long.
func ChildName(rollout, cluster string) string {
	return boundedName(rollout + "-" + cluster)
}

func boundedName(name string) string {
	if len(name) <= longestName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	kept := strings.TrimRight(name[:longestName-digitsOfLongName-1], "-.")
	return kept + "-" + hex.EncodeToString(sum[:])[:digitsOfLongName]
}

// SourceName is the name of the BundleSource and of the ControllerRevision of a revision.
func SourceName(rollout, revision string) string { return rollout + "-" + revision }

// Renderer renders the BundleDeployments of one revision.
type Renderer struct {
	rollout   string
	revision  string
	data      Data
	overrides []override
	dependsOn []v1alpha1.RolloutDependency
}

// Child is a BundleDeployment as the rollout wants it, but for what a start writes.
type Child struct {
	Name        string
	Labels      map[string]string
	Annotations map[string]string
	Spec        v1alpha1.BundleDeploymentSpec
	// Inputs are the Secrets and ConfigMaps that only this cluster has, with a variable in their names, each once. The digests are empty:
	// see UseInputs.
	Inputs []FrozenInput
}

// NewRenderer checks the data of a revision, as CheckTemplate does.
func NewRenderer(rollout, revision string, data Data, dependsOn []v1alpha1.RolloutDependency) (*Renderer, error) {
	overrides, err := readOverrides(data.Overrides)
	if err != nil {
		return nil, err
	}
	return &Renderer{rollout: rollout, revision: revision, data: data, overrides: overrides, dependsOn: dependsOn}, nil
}

// Render is the BundleDeployment of a cluster. Equal facts of a cluster give an equal one.
func (r *Renderer) Render(cluster *Cluster) (*Child, error) {
	merged, err := merge(r.data.Template.Spec.Raw, r.overrides, cluster.Labels)
	if err != nil {
		return nil, err
	}
	if err := misfits("spec", merged); err != nil {
		return nil, err
	}
	child := &Child{Name: ChildName(r.rollout, cluster.Name)}
	if err := json.Unmarshal(merged, &child.Spec); err != nil {
		return nil, fmt.Errorf("decoding the spec: %w", err)
	}
	if err := checkCounts("spec", &child.Spec); err != nil {
		return nil, err
	}
	r.useCopies(&child.Spec)
	named := InputsOf(&child.Spec)
	known, err := values(r.data.Variables, cluster)
	if err != nil {
		return nil, err
	}
	left := room(MaxSpecBytes - len(merged))
	if err := expandSpec(&child.Spec, &left, known); err != nil {
		return nil, err
	}
	child.Inputs = ownInputs(named, InputsOf(&child.Spec))
	r.complete(&child.Spec, cluster)
	return child, r.label(child, cluster, known)
}

// Shape is equal for clusters of which the specs differ in nothing but variables: the same overrides select them, and they are reached in
// the same way.
func (r *Renderer) Shape(cluster *Cluster) string {
	var shape []string
	for i := range r.overrides {
		if r.overrides[i].selector.Matches(labels.Set(cluster.Labels)) {
			shape = append(shape, strconv.Itoa(i))
		}
	}
	switch {
	case cluster.KubeConfig == nil:
		shape = append(shape, "here")
	case cluster.KubeConfig.ClusterProfileRef != nil:
		shape = append(shape, "profile")
	}
	return strings.Join(shape, ",")
}

// complete sets what the rollout decides.
func (r *Renderer) complete(spec *v1alpha1.BundleDeploymentSpec, cluster *Cluster) {
	spec.SourceRef = &v1alpha1.SourceReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.BundleSourceKind, Name: SourceName(r.rollout, r.revision),
	}
	spec.Target.ClusterReference = effective.ClusterReference(cluster.KubeConfig)
	spec.Target.ServiceAccountName = cmp.Or(cluster.RemoteServiceAccountName, spec.Target.ServiceAccountName)
	if cluster.KubeConfig == nil { // it is the cluster of the rollout, which has no remote accounts
		spec.Target.ServiceAccountName = ""
	}
	for _, other := range r.dependsOn {
		spec.DependsOn = append(spec.DependsOn, v1alpha1.Dependency{Name: ChildName(other.Name, cluster.Name)})
	}
}

// label sets labels and annotations but for those of the start.
func (r *Renderer) label(child *Child, cluster *Cluster, known map[string]string) error {
	child.Annotations = maps.Clone(r.data.Template.Metadata.Annotations)
	child.Labels = map[string]string{}
	left := room(MaxSpecBytes)
	for key, value := range r.data.Template.Metadata.Labels {
		expanded, err := expand(value, &left, func(name string) (string, bool) {
			found, has := known[name]
			return found, has
		})
		if err != nil {
			return fmt.Errorf("spec.template.metadata.labels[%.317s]: %w", key, err)
		}
		child.Labels[key] = expanded
	}
	child.Labels[v1alpha1.RolloutLabel] = r.rollout
	child.Labels[v1alpha1.ClusterLabel] = cluster.Name
	return nil
}

// mostProblems bounds the problems of one spec that are named: every cluster may have them.
const mostProblems = 10

// expandSpec replaces variables in the fields that may have them, and adds the variables to those of the processors.
func expandSpec(spec *v1alpha1.BundleDeploymentSpec, left *room, known map[string]string) error {
	var problems []error
	replace := func(field string, text *string) {
		if len(problems) == mostProblems {
			return
		}
		expanded, err := expand(*text, left, func(name string) (string, bool) {
			value, has := known[name]
			return value, has
		})
		if err != nil {
			problems = append(problems, fmt.Errorf("spec.%.100s: %w", field, err))
		}
		*text = expanded
	}
	replace("path", &spec.Path)
	replace("target.namespace", &spec.Target.Namespace)
	replace("target.serviceAccountName", &spec.Target.ServiceAccountName)
	if spec.Helm != nil {
		replace("helm.releaseName", &spec.Helm.ReleaseName)
		for i := range spec.Helm.ValuesFrom {
			replace(fmt.Sprintf("helm.valuesFrom[%d].name", i), &spec.Helm.ValuesFrom[i].Name)
		}
	}
	for at, variables := range effective.Variables(spec) {
		field := fmt.Sprintf("processors[%d].variables.", at)
		for _, name := range slices.Sorted(maps.Keys(variables.Values)) {
			value := variables.Values[name]
			replace(field+"values."+name, &value)
			variables.Values[name] = value
		}
		for i := range variables.ValuesFrom {
			replace(fmt.Sprintf("%svaluesFrom[%d].name", field, i), &variables.ValuesFrom[i].Name)
		}
		problems = append(problems, addVariables(variables, left, known))
	}
	return errors.Join(problems...)
}

// addVariables makes the variables of the rollout variables of a processor, unless it sets them itself.
func addVariables(of *v1alpha1.VariablesProcessor, left *room, known map[string]string) error {
	if of.Values == nil {
		of.Values = map[string]string{}
	}
	for name, value := range known {
		if _, set := of.Values[name]; set {
			continue
		}
		if err := left.take(len(name) + len(value)); err != nil {
			return err
		}
		of.Values[name] = value
	}
	return nil
}

// SpecHash is the value of the annotation satchel.dev/rollout-spec: the hash of a rendered spec, and of the digests of inputs that
// only this cluster has.
func SpecHash(spec *v1alpha1.BundleDeploymentSpec, inputs []string) (string, error) {
	digest, err := DigestOf(map[string]any{"spec": spec, "inputs": inputs})
	if err != nil {
		return "", err
	}
	return format.RolloutSpec.Text(strings.TrimPrefix(digest, "sha256:")), nil
}

// SameForm tells whether a hash has the form of those that SpecHash returns now. One of another form says nothing about whether
// the spec changed: compare the specs.
func SameForm(hash string) bool {
	_, err := format.RolloutSpec.CutText(hash)
	return err == nil
}
