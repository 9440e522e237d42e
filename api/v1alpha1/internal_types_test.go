// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
)

// The state is one string, in JSON and in unstructured objects.
func TestInternalStatus(t *testing.T) {
	for name, want := range map[string]InternalStatus{
		"empty":    {},
		"a key":    {HashKey: "hash-key/1:a.b"},
		"all":      {HashKey: "k", Server: `"quoted" <é>`, Executed: &ExecutedPlan{Plan: "p", Proof: "q"}, Artifact: &KeptArtifact{URL: "u"}},
		"executed": {Executed: &ExecutedPlan{Cluster: &ClusterReference{ClusterProfileRef: &ClusterProfileReference{Name: "c"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			status := BundleDeploymentStatus{Internal: want}
			text, err := json.Marshal(status)
			if err != nil {
				t.Fatal(err)
			}
			var shape map[string]any
			if err := json.Unmarshal(text, &shape); err != nil {
				t.Fatal(err)
			}
			if found, has := shape["internal"]; has != (name != "empty") || has && !strings.HasPrefix(found.(string), `{"`) {
				t.Errorf("internal is %v", found)
			}
			var read, converted BundleDeploymentStatus
			if err := json.Unmarshal(text, &read); err != nil {
				t.Fatal(err)
			}
			object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
			if err != nil {
				t.Fatal(err)
			}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &converted); err != nil {
				t.Fatal(err)
			}
			for how, got := range map[string]InternalStatus{"JSON": read.Internal, "unstructured": converted.Internal, "copy": *want.DeepCopy()} {
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", how, diff)
				}
			}
		})
	}
}

// Whatever is stored there, the object can be read: a list of all of them must not fail.
func TestInternalStatusThatCannotBeRead(t *testing.T) {
	for name, text := range map[string]string{
		"null": `null`, "number": `7`, "object": `{"hashKey":"k"}`, "empty": `""`, "no JSON": `"{"`, "a list": `"[]"`,
		"another type": `"{\"hashKey\":[]}"`, "half of it": `"{\"hashKey\":\"k\""`,
	} {
		t.Run(name, func(t *testing.T) {
			status := BundleDeploymentStatus{Internal: InternalStatus{HashKey: "before"}}
			if err := json.Unmarshal([]byte(`{"observedGeneration":3,"internal":`+text+`}`), &status); err != nil {
				t.Fatal(err)
			}
			if status.ObservedGeneration != 3 || name != "null" && status.Internal != (InternalStatus{}) {
				t.Errorf("read %+v", status)
			}
		})
	}
}
