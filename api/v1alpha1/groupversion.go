// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of Satchel's kinds.
var GroupVersion = schema.GroupVersion{Group: "satchel.dev", Version: "v1alpha1"}

// SchemeBuilder collects the functions that AddToScheme runs.
var SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

// AddToScheme registers Satchel's kinds.
var AddToScheme = SchemeBuilder.AddToScheme

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&BundleSource{}, &BundleSourceList{},
		&BundleDeployment{}, &BundleDeploymentList{},
		&BundleApproval{}, &BundleApprovalList{},
		&BundleRollout{}, &BundleRolloutList{},
		&BundleCatalog{}, &BundleCatalogList{},
		&BundleImagePolicy{}, &BundleImagePolicyList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
