// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// TestTargetIsConverted: the inlined reference to a cluster survives the conversion to and from unstructured objects, which allocates
// inlined pointers, and drops the fields beside one that is nil.
func TestTargetIsConverted(t *testing.T) {
	secret := v1alpha1.KubeConfigReference{SecretRef: v1alpha1.KubeConfigSecretReference{Name: "prod"}}
	for name, tc := range map[string]struct {
		target   v1alpha1.DeploymentTarget
		isRemote bool
	}{
		"nothing":     {},
		"namespace":   {target: v1alpha1.DeploymentTarget{Namespace: "shop", CreateNamespace: true}},
		"kubeconfig":  {target: v1alpha1.DeploymentTarget{Namespace: "shop", ClusterReference: v1alpha1.ClusterReference{KubeConfig: secret}}, isRemote: true},
		"profile":     {target: v1alpha1.DeploymentTarget{ClusterReference: v1alpha1.ClusterReference{ClusterProfileRef: &v1alpha1.ClusterProfileReference{Name: "prod"}}}, isRemote: true},
		"its account": {target: v1alpha1.DeploymentTarget{ServiceAccountName: "deployer", ClusterReference: v1alpha1.ClusterReference{KubeConfig: secret}}, isRemote: true},
	} {
		t.Run(name, func(t *testing.T) {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1alpha1.BundleDeploymentSpec{Target: tc.target})
			if err != nil {
				t.Fatal(err)
			}
			var read v1alpha1.BundleDeploymentSpec
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &read); err != nil {
				t.Fatal(err)
			}
			if !equality.Semantic.DeepEqual(read.Target, tc.target) || effective.IsRemote(read.Target.ClusterReference) != tc.isRemote {
				t.Errorf("got %+v from %v", read.Target, content["target"])
			}
		})
	}
}
