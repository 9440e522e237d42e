// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// TestRemote names what leads to the cluster with the objects in the JSON form of a tree.
func TestRemote(t *testing.T) {
	for want, reference := range map[string]*v1alpha1.ClusterReference{
		`"kubeConfigSecret":"dc1"`: {KubeConfig: v1alpha1.KubeConfigReference{SecretRef: v1alpha1.KubeConfigSecretReference{Name: "dc1"}}},
		`"clusterProfile":"prod"`:  {ClusterProfileRef: &v1alpha1.ClusterProfileReference{Name: "prod"}},
		`"objects":[]`:             nil,
	} {
		d := new(v1alpha1.BundleDeployment)
		d.Spec.Target.ClusterReference = effective.ClusterReference(reference)
		text, err := json.Marshal(NewTree(d))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(text); !strings.Contains(got, want) || strings.Contains(got, `"kubeConfigSecret"`) && strings.Contains(got, `"clusterProfile"`) {
			t.Errorf("%s has no %s, or both", got, want)
		}
	}
}
