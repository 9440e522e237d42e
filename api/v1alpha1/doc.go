// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the API of Satchel: BundleSource says where a bundle
// comes from, BundleDeployment where and as which ServiceAccount it is installed.
//
// The comments of the fields are the manual of the API: they become the
// descriptions of the CustomResourceDefinitions and what kubectl explain
// prints. Rules are enforced by the CRD (OpenAPI and CEL), so an object that
// the API server accepted is well-formed.
//
// +kubebuilder:object:generate=true
// +groupName=satchel.dev
package v1alpha1
