// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/satchel-dev/satchel/internal/convert"
)

// choices are sentences about the choices of the user who installs the bundle. They are no problems.
func (t *tree) choices() []string {
	if t.bundle == nil {
		return nil
	}
	var said []string
	if name := t.bundle.CSV.Annotations[SuggestedNamespace]; len(validation.IsDNS1123Label(name)) == 0 {
		said = append(said, fmt.Sprintf("It suggests to be installed in the namespace %s.", name))
	}
	if text := watchChoice(t.modes()); text != "" {
		said = append(said, text)
	}
	if n := len(t.bundle.CSV.Spec.WebhookDefinitions); n > 0 {
		said = append(said, "Its webhooks need certificates: the controller issues them (self-signed), "+
			"unless certificateProvider (--certificate-provider) says cert-manager or service-ca.")
	}
	return said
}

// modes are the supported install modes.
func (t *tree) modes() map[v1alpha1.InstallModeType]bool {
	supported := map[v1alpha1.InstallModeType]bool{}
	for _, mode := range t.bundle.CSV.Spec.InstallModes {
		supported[mode.Type] = mode.Supported
	}
	return supported
}

// watchChoice says what can be watched:
//
//	All   Own   Single   Multi   watched
//	yes   no    no       no      always all
//	yes   otherwise              all, or chosen
//	no    yes   no       no      always its own
//	no    yes   no       yes     its own, or chosen
//	no    otherwise              has to be chosen
func watchChoice(supported map[v1alpha1.InstallModeType]bool) string {
	all, own := supported[v1alpha1.InstallModeTypeAllNamespaces], supported[v1alpha1.InstallModeTypeOwnNamespace]
	single, multi := supported[v1alpha1.InstallModeTypeSingleNamespace], supported[v1alpha1.InstallModeTypeMultiNamespace]
	var names []string
	for _, mode := range []v1alpha1.InstallModeType{v1alpha1.InstallModeTypeAllNamespaces, v1alpha1.InstallModeTypeMultiNamespace,
		v1alpha1.InstallModeTypeOwnNamespace, v1alpha1.InstallModeTypeSingleNamespace} {
		if supported[mode] {
			names = append(names, string(mode))
		}
	}
	modes := "Its install modes are " + strings.Join(names, ", ") + ": "
	const option = "watchNamespaces (--watch-namespace)"
	switch {
	case all && !own && !single && !multi:
		return modes + "it always watches all namespaces."
	case all:
		return modes + "it watches all namespaces, unless " + option + " says which."
	case own && !single && !multi:
		return modes + "it watches only the namespace that it is installed in."
	case own && !single:
		return modes + "it watches the namespace that it is installed in, unless " + option + " says which."
	case single || multi:
		return modes + "what it watches has to be chosen with " + option + "."
	}
	return "" // an error
}

// targetsAnnotation tells an operator's Pods what to watch.
const targetsAnnotation = "olm.targetNamespaces"

// Watched is what the operator of a registry+v1 bundle is told to watch, sorted; "" stands for all namespaces. It is empty
// without an operator.
func Watched(result convert.Result) []string {
	if result.Format != convert.RegistryV1 {
		return nil
	}
	var found []string
	for _, o := range result.Objects {
		if o.GetKind() != "Deployment" {
			continue
		}
		annotations, _, _ := unstructured.NestedMap(o.Object, "spec", "template", "metadata", "annotations")
		if targets, told := annotations[targetsAnnotation].(string); told {
			found = append(found, strings.Split(targets, ",")...)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// ForOLMOnly warns of ClusterServiceVersions among the objects of a plain bundle. A plain bundle that is a registry+v1 bundle,
// or its folder manifests/, installs the description of an operator instead of the operator.
func ForOLMOnly(result convert.Result) []Problem {
	var found []Problem
	for _, o := range result.Objects {
		if kind := o.GroupVersionKind().GroupKind(); kind.Group == v1alpha1.GroupName && kind.Kind == v1alpha1.ClusterServiceVersionKind {
			found = append(found, Problem{Severity: Warning, Object: kind.Kind + " " + o.GetName(), Rule: "format",
				Message: "without OLM this describes an operator and installs none",
				Remedy:  "read the whole registry+v1 bundle, with metadata/ beside manifests/, in that format"})
		}
	}
	return found
}
