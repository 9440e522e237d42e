// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/convert/helm/document"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/internal/spec/values"
)

// InputRef names a Secret or a ConfigMap in the namespace of a deployment.
type InputRef struct{ Kind, Name string }

// SecretKind is the kind of the inputs with values that may not be shown.
const SecretKind = "Secret"

// In names the object in messages: "secret shop/db".
func (r InputRef) In(namespace string) string {
	return strings.ToLower(r.Kind) + " " + namespace + "/" + r.Name
}

// Input is a Secret or a ConfigMap that the conversion of a deployment needs.
type Input struct {
	InputRef

	// Key that is needed; "" for all keys.
	Key string
	// Optional: it may be missing, as may its key.
	Optional bool
	// Document: the key holds a document of values, not a single value.
	Document bool
	// Field of the spec that names it.
	Field string
}

// Contents are the data of inputs by key. A missing input has no entry.
type Contents map[InputRef]map[string]string

// Inputs are those that the spec of a deployment names, in its order.
func Inputs(d *v1alpha1.BundleDeployment) []Input {
	var inputs []Input
	if helm := d.Spec.Helm; helm != nil {
		for i := range helm.ValuesFrom {
			from := &helm.ValuesFrom[i]
			inputs = append(inputs, Input{
				InputRef: InputRef{from.Kind, from.Name}, Key: valuesKeyOf(from), Optional: from.Optional, Document: from.TargetPath == "",
				Field: fmt.Sprintf("spec.helm.valuesFrom[%d]", i),
			})
		}
	}
	for at, variables := range effective.Variables(&d.Spec) {
		for i, from := range variables.ValuesFrom {
			inputs = append(inputs, Input{
				InputRef: InputRef{from.Kind, from.Name}, Optional: from.Optional,
				Field: fmt.Sprintf("spec.processors[%d].variables.valuesFrom[%d]", at, i),
			})
		}
	}
	return inputs
}

// DataOf returns the data of a Secret or a ConfigMap from the API server.
func DataOf(object *unstructured.Unstructured) (map[string]string, error) {
	plain, encoded := "data", "binaryData"
	if object.GetKind() == SecretKind {
		plain, encoded = "stringData", "data" // the API server never returns the first
	}
	held, _, err := unstructured.NestedStringMap(object.Object, plain)
	binary, _, failed := unstructured.NestedStringMap(object.Object, encoded)
	if err != nil || failed != nil {
		return nil, fmt.Errorf("%s %s/%s has data that are not strings", strings.ToLower(object.GetKind()), object.GetNamespace(), object.GetName())
	}
	if held == nil {
		held = map[string]string{}
	}
	for key, text := range binary {
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, fmt.Errorf("%s %s/%s, key %s: this is not base64", strings.ToLower(object.GetKind()), object.GetNamespace(), object.GetName(), key)
		}
		held[key] = string(raw)
	}
	return held, nil
}

// InputRefs are the distinct objects of inputs, in their order.
func InputRefs(inputs []Input) []InputRef {
	var refs []InputRef
	for _, input := range inputs {
		if !slices.Contains(refs, input.InputRef) {
			refs = append(refs, input.InputRef)
		}
	}
	return refs
}

// ClusterProfileGroup is the API group of ClusterProfiles.
const ClusterProfileGroup = "multicluster.x-k8s.io"

// KubeConfigHolder names what leads to another cluster: a Secret or a ClusterProfile.
func KubeConfigHolder(ref *v1alpha1.ClusterReference) string {
	if ref.ClusterProfileRef != nil {
		return "ClusterProfile " + ref.ClusterProfileRef.Name
	}
	return SecretKind + " " + ref.KubeConfig.SecretRef.Name
}

// InputIDs identify the Secrets and ConfigMaps that the ServiceAccount of a deployment reads by name: the inputs, and the
// kubeconfig of another cluster, or its ClusterProfile. The Secret that a ClusterProfile names is known only from that.
func InputIDs(d *v1alpha1.BundleDeployment) []inventory.ID {
	refs := InputRefs(Inputs(d))
	ids := make([]inventory.ID, 0, len(refs)+1)
	if ref := effective.RemoteCluster(d.Spec.Target.ClusterReference); ref != nil && ref.ClusterProfileRef != nil {
		ids = append(ids, inventory.ID{Group: ClusterProfileGroup, Kind: "ClusterProfile", Namespace: d.Namespace, Name: ref.ClusterProfileRef.Name})
	} else if ref != nil {
		refs = append(refs, InputRef{Kind: SecretKind, Name: ref.KubeConfig.SecretRef.Name})
	}
	for _, ref := range refs {
		ids = append(ids, inventory.ID{Kind: ref.Kind, Namespace: d.Namespace, Name: ref.Name})
	}
	return ids
}

// Lacking lists the required inputs that do not exist, or lack their key; nil when there are none.
func Lacking(namespace string, inputs []Input, contents Contents) error {
	var lines []error
	for _, input := range inputs {
		held, exists := contents[input.InputRef]
		_, found := held[input.Key]
		switch {
		case input.Optional:
		case !exists:
			lines = append(lines, fmt.Errorf("%s does not exist: create it, or correct %s", input.In(namespace), input.Field))
		case input.Key != "" && !found:
			lines = append(lines, fmt.Errorf("%s has no key %q: add it, or correct %s", input.In(namespace), input.Key, input.Field))
		}
	}
	return errors.Join(lines...)
}

// FromSecrets tells whether one of the inputs with contents is a Secret.
func FromSecrets(inputs []Input, contents Contents) bool {
	return slices.ContainsFunc(inputs, func(input Input) bool { return input.Kind == SecretKind && contents[input.InputRef] != nil })
}

// DigestInputs is the keyed digest (HMAC) of inputs and their contents, so that a reader cannot test guesses of secret
// values; "" when there are none. Only the needed keys of an object count.
func DigestInputs(inputs []Input, contents Contents, key []byte) (string, error) {
	if len(inputs) == 0 {
		return "", nil
	}
	type line struct {
		Input  InputRef
		Key    string
		Exists bool
		Held   map[string]string
	}
	lines := make([]line, 0, len(inputs))
	for _, input := range inputs {
		held, exists := contents[input.InputRef]
		if input.Key != "" {
			text, found := held[input.Key]
			held, exists = map[string]string{input.Key: text}, found
		}
		lines = append(lines, line{input.InputRef, input.Key, exists, held})
	}
	data, err := json.Marshal(lines)
	if err != nil {
		return "", fmt.Errorf("digesting the inputs: %w", err)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("satchel.dev/inputs/v1\n"))
	mac.Write(data)
	return "hmac-sha256:" + hex.EncodeToString(mac.Sum(nil)), nil
}

// Scrubber returns a scrubber for the values of the Secrets among the inputs. Names in the spec are not secret.
func Scrubber(d *v1alpha1.BundleDeployment, inputs []Input, contents Contents) *values.Scrubber {
	scrubber := &values.Scrubber{}
	scrubber.Public(d.Name, d.Namespace, effective.InstallNamespace(d), releaseNameOf(d), d.Spec.ServiceAccountName)
	for _, input := range inputs {
		if input.Kind != SecretKind {
			continue
		}
		for key, text := range contents[input.InputRef] {
			switch {
			case input.Key != "" && key != input.Key:
			case input.Document:
				scrubber.AddDocument(text)
			default:
				scrubber.Add(text)
			}
		}
	}
	return scrubber
}

// variableName is what a key must be to name a variable.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Variables are the variables of valuesFrom of a processor: later inputs win. Keys that are no valid names of variables
// are ignored.
func Variables(of *v1alpha1.VariablesProcessor, contents Contents) map[string]string {
	given := map[string]string{}
	for _, from := range of.ValuesFrom {
		for key, text := range contents[InputRef{from.Kind, from.Name}] {
			if variableName.MatchString(key) {
				given[key] = text
			}
		}
	}
	return given
}

// HelmValues are the values for the templates of a chart: those of the inputs, overridden by those of the spec. It fails
// with a *values.Error that names objects, keys and lines, but never contents.
func HelmValues(d *v1alpha1.BundleDeployment, contents Contents) (map[string]any, error) {
	helm := d.Spec.Helm
	if helm == nil {
		return nil, nil //nolint:nilnil // there are none
	}
	var inline map[string]any
	if helm.Values != nil && len(helm.Values.Raw) > 0 {
		read, problem := document.Read(helm.Values.Raw)
		if problem != "" {
			return nil, &values.Error{Problems: []string{"spec.helm.values: " + problem}}
		}
		inline = read
	}
	sources := make([]values.Source, 0, len(helm.ValuesFrom))
	for i := range helm.ValuesFrom {
		from := &helm.ValuesFrom[i]
		ref, key := InputRef{from.Kind, from.Name}, valuesKeyOf(from)
		content, found := contents[ref][key]
		sources = append(sources, values.Source{
			Where:   fmt.Sprintf("%s, key %s (spec.helm.valuesFrom[%d])", ref.In(d.Namespace), key, i),
			Content: content, Missing: !found, TargetPath: from.TargetPath,
		})
	}
	return values.Merge(sources, inline)
}
