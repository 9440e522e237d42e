// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"slices"
	"testing"
)

// TestOwnInputs has the spec of a cluster read copies of what only that cluster has: each content has a name of its own.
func TestOwnInputs(t *testing.T) {
	data := fullData(t)
	data.Template.Spec.Raw = []byte(`{"serviceAccountName":"deployer","helm":{"valuesFrom":[{"kind":"ConfigMap","name":"values-$(cluster)"},{"kind":"Secret","name":"shared"},
		{"kind":"ConfigMap","name":"values-$(cluster)","optional":true}]},"processors":[{"variables":{"valuesFrom":[{"kind":"Secret","name":"of-$(region)","optional":true}]}}]}`)
	if !data.HasOwnInputs() {
		t.Fatal("it has inputs of single clusters")
	}
	renderer, err := NewRenderer("apps", "7f3a91c2de", data, nil)
	if err != nil {
		t.Fatal(err)
	}
	with := func(digests ...string) (values, vars []string) {
		t.Helper()
		child, err := renderer.Render(canary())
		if err != nil {
			t.Fatal(err)
		}
		if want := []FrozenInput{{Kind: "ConfigMap", Name: "values-dc1", Required: true}, {Kind: "Secret", Name: "of-us"}}; !slices.Equal(child.Inputs, want) {
			t.Fatalf("the inputs are %v", child.Inputs)
		}
		if err := child.UseInputs(digests); err != nil {
			t.Fatal(err)
		}
		for _, one := range child.Spec.Helm.ValuesFrom {
			values = append(values, one.Name)
		}
		for _, one := range child.Spec.Processors[0].Variables.ValuesFrom {
			vars = append(vars, one.Name)
		}
		return values, vars
	}
	one, vars := with("sha256:1", "")
	if len(one) != 3 || one[0] != one[2] || one[1] != "apps-7f3a91c2de-0" || len(vars) != 0 {
		t.Errorf("an optional one that does not exist is left out: %v, %v", one, vars)
	}
	again, _ := with("sha256:1", "")
	other, vars := with("sha256:2", "sha256:3")
	if !slices.Equal(one, again) || other[0] == one[0] || len(vars) != 1 {
		t.Errorf("each content has a name: %v, %v, %v, %v", one, again, other, vars)
	}
	child, err := renderer.Render(canary())
	if err != nil || child.UseInputs([]string{"sha256:1"}) == nil {
		t.Errorf("one digest for two inputs: %v", err)
	}
	for _, digests := range [][]string{nil, {""}, {"sha256:1", "", "sha256:2"}} {
		if got := DecodeDigests(EncodeDigests(digests)); !slices.Equal(got, digests) {
			t.Errorf("%v became %v", digests, got)
		}
	}
}
