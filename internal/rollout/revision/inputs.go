// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// InputName is the name of the copy of a shared input of a revision, by its index in Data.Inputs.
func InputName(rollout, revision string, index int) string {
	return fmt.Sprintf("%s-%s-%d", rollout, revision, index)
}

// OwnInputName is the name of the copy of an input that only one cluster has. Another content has another name, so that it changes the
// spec of the BundleDeployment.
func OwnInputName(child string, input FrozenInput) string {
	sum := sha256.Sum256([]byte(input.Kind + "/" + input.Name + "/" + input.Digest))
	return child + "-" + hex.EncodeToString(sum[:])[:digitsOfName]
}

// SharedInputs are the Secrets and ConfigMaps that the template and the overrides name without a variable, each once, in their order:
// a revision has copies of these. The digests are empty.
func SharedInputs(spec *v1alpha1.BundleRolloutSpec) []FrozenInput {
	var found []FrozenInput
	add := func(input FrozenInput) {
		at := slices.IndexFunc(found, func(known FrozenInput) bool { return known.Kind == input.Kind && known.Name == input.Name })
		switch {
		case input.Name == "" || hasVariable(input.Name):
		case at < 0:
			found = append(found, input)
		default:
			found[at].Required = found[at].Required || input.Required
		}
	}
	for _, input := range allInputs(spec.Template, spec.Overrides) {
		add(input)
	}
	return found
}

// HasOwnInputs tells whether clusters may have Secrets or ConfigMaps of their own: the template, or an override, has one with a variable in
// its name.
func (r Data) HasOwnInputs() bool {
	return slices.ContainsFunc(allInputs(r.Template, r.Overrides), func(i FrozenInput) bool { return hasVariable(i.Name) })
}

// allInputs are the Secrets and ConfigMaps that the template and the overrides name, in their order.
func allInputs(template v1alpha1.RolloutTemplate, overrides []v1alpha1.RolloutOverride) []FrozenInput {
	texts := [][]byte{template.Spec.Raw}
	for i := range overrides {
		texts = append(texts, overrides[i].Patch.Raw)
	}
	var found []FrozenInput
	for _, text := range texts {
		var read v1alpha1.BundleDeploymentSpec
		if err := json.Unmarshal(text, &read); err != nil {
			continue // CheckTemplate reports it
		}
		found = append(found, InputsOf(&read)...)
	}
	return found
}

// InputsOf are the Secrets and ConfigMaps that a spec names, in its order.
func InputsOf(spec *v1alpha1.BundleDeploymentSpec) []FrozenInput {
	var found []FrozenInput
	if spec.Helm != nil {
		for i := range spec.Helm.ValuesFrom {
			one := &spec.Helm.ValuesFrom[i]
			found = append(found, FrozenInput{Kind: one.Kind, Name: one.Name, Required: !one.Optional})
		}
	}
	for _, variables := range effective.Variables(spec) {
		for i := range variables.ValuesFrom {
			one := &variables.ValuesFrom[i]
			found = append(found, FrozenInput{Kind: one.Kind, Name: one.Name, Required: !one.Optional})
		}
	}
	return found
}

// replaceInputs replaces the names of Secrets and ConfigMaps in a spec; one with an empty name is left out.
func replaceInputs(spec *v1alpha1.BundleDeploymentSpec, by func(kind, name string) string) {
	if spec.Helm != nil {
		from := spec.Helm.ValuesFrom
		for i := range from {
			from[i].Name = by(from[i].Kind, from[i].Name)
		}
		spec.Helm.ValuesFrom = slices.DeleteFunc(from, func(v v1alpha1.ValuesReference) bool { return v.Name == "" })
	}
	for _, variables := range effective.Variables(spec) {
		from := variables.ValuesFrom
		for i := range from {
			from[i].Name = by(from[i].Kind, from[i].Name)
		}
		variables.ValuesFrom = slices.DeleteFunc(from, func(s v1alpha1.VariablesReference) bool { return s.Name == "" })
	}
}

// useCopies replaces shared inputs by the copies that the revision has. An optional one that did not exist is left out, so that it
// does not get into a cluster later.
func (r *Renderer) useCopies(spec *v1alpha1.BundleDeploymentSpec) {
	replaceInputs(spec, func(kind, name string) string {
		at := indexOf(r.data.Inputs, kind, name)
		switch {
		case at < 0:
			return name
		case r.data.Inputs[at].Digest == "":
			return ""
		}
		return InputName(r.rollout, r.revision, at)
	})
}

func indexOf(all []FrozenInput, kind, name string) int {
	return slices.IndexFunc(all, func(i FrozenInput) bool { return i.Kind == kind && i.Name == name })
}

// ownInputs are the inputs with a variable in their names, each once, by their names before and after variables were replaced.
func ownInputs(before, after []FrozenInput) []FrozenInput {
	var own []FrozenInput
	for i, one := range after {
		if !hasVariable(before[i].Name) {
			continue
		}
		if at := indexOf(own, one.Kind, one.Name); at >= 0 {
			own[at].Required = own[at].Required || one.Required
			continue
		}
		own = append(own, one)
	}
	return own
}

// UseInputs has the spec read the copies of Inputs with these digests, in their order. One with an empty digest does not exist, and is
// left out, so that it does not get into the cluster later.
func (c *Child) UseInputs(digests []string) error {
	if len(digests) != len(c.Inputs) {
		return fmt.Errorf("%d inputs of bundledeployment %s have %d digests", len(c.Inputs), c.Name, len(digests))
	}
	replaceInputs(&c.Spec, func(kind, name string) string {
		at := indexOf(c.Inputs, kind, name)
		switch {
		case at < 0:
			return name
		case digests[at] == "":
			return ""
		}
		frozen := c.Inputs[at]
		frozen.Digest = digests[at]
		return OwnInputName(c.Name, frozen)
	})
	return nil
}

// absentInput stands for the digest of an input that does not exist in the annotation of a BundleDeployment.
const absentInput = "none"

// EncodeDigests is the value of the annotation satchel.dev/rollout-inputs; empty if there are no digests.
func EncodeDigests(digests []string) string {
	texts := slices.Clone(digests)
	for i := range texts {
		if texts[i] == "" {
			texts[i] = absentInput
		}
	}
	return strings.Join(texts, ",")
}

// DecodeDigests reads the value of that annotation.
func DecodeDigests(text string) []string {
	if text == "" {
		return nil
	}
	digests := strings.Split(text, ",")
	for i := range digests {
		if digests[i] == absentInput {
			digests[i] = ""
		}
	}
	return digests
}
