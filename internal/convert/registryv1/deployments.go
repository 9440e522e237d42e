// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"maps"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/internal/convert/registryv1/deploymentconfig"
)

const (
	targetNamespacesAnnotation  = "olm.targetNamespaces"
	operatorNamespaceAnnotation = "olm.operatorNamespace"
	operatorConditionName       = "OPERATOR_CONDITION_NAME"
)

// generateDeployments makes the operator's Deployments (rules D).
func generateDeployments(in *input) ([]manifest.Manifest, []manifest.Problem) {
	var out []manifest.Manifest
	var problems []manifest.Problem
	for _, spec := range in.Deployments() {
		m, err := in.manifest(in.deployment(spec))
		if err != nil {
			problems = append(problems, in.Problem("D1", "correct it", "the deployment %q cannot be written as an object", spec.Name))
			continue
		}
		out = append(out, m)
	}
	return out, problems
}

func (in *input) deployment(spec v1alpha1.StrategyDeploymentSpec) *appsv1.Deployment {
	d := &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: spec.Name, Namespace: in.InstallNamespace, Labels: spec.Label},
		Spec:       *spec.Spec.DeepCopy(),
	}
	revisions := int32(1)
	d.Spec.RevisionHistoryLimit = &revisions
	d.Spec.Template.Annotations = in.podAnnotations(d.Spec.Template.Annotations)
	if in.served(spec.Name) {
		mountCertificate(&d.Spec.Template.Spec, certificateName(serviceName(spec.Name)))
	}
	if in.OperatorConditions {
		for i := range d.Spec.Template.Spec.Containers {
			c := &d.Spec.Template.Spec.Containers[i]
			c.Env = deploymentconfig.ReplaceNamed(c.Env, []corev1.EnvVar{{Name: operatorConditionName, Value: in.CSV.Name}}, deploymentconfig.EnvName)
		}
	}
	in.config.Apply(d)
	return d
}

// podAnnotations are the CSV's, overlaid by the template's and by the two that operators read (D3, D4).
func (in *input) podAnnotations(template map[string]string) map[string]string {
	out := map[string]string{}
	if in.PodAnnotations != RequiredAnnotations {
		maps.Copy(out, in.CSV.Annotations)
	}
	maps.Copy(out, template)
	out[targetNamespacesAnnotation] = strings.Join(in.targets, ",")
	out[operatorNamespaceAnnotation] = in.InstallNamespace
	return out
}

// manifest turns a typed object into a manifest, without the empty status that types bring along.
func (in *input) manifest(object runtime.Object) (manifest.Manifest, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return manifest.Manifest{}, err
	}
	delete(content, "status")
	m := in.object("", "", "", "", content)
	return m, nil
}
