// SPDX-License-Identifier: Apache-2.0

package clusterprofile

import (
	"context"
	"encoding/base64"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

var secretResource = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// Read reads a ClusterProfile and the Secret with its credentials with a client, and returns the kubeconfig that they make together.
// Each time both are read: a change has an effect at once. An *Error says what is missing or refused, to be read after the name of the
// ClusterProfile and ": ".
func Read(ctx context.Context, as *tenant.Client, namespace string, ref *v1alpha1.ClusterProfileReference) ([]byte, error) {
	object, err := as.Get(ctx, tenant.Ref{Resource: Resource, Namespace: namespace, Name: ref.Name})
	switch {
	case apierrors.IsNotFound(err):
		return nil, missing("it does not exist, or its kind is not installed: create it, or correct spec.target.clusterProfileRef")
	case apierrors.IsForbidden(err):
		return nil, missing("%s may not get it: grant that", as.Identity())
	case err != nil:
		return nil, fmt.Errorf("reading it: %w", err)
	}
	profile, err := Decode(object)
	if err != nil {
		return nil, err
	}
	access, err := Choose(profile, ref.AccessProvider)
	if err != nil {
		return nil, err
	}
	secret, err := as.Get(ctx, tenant.Ref{Resource: secretResource, Namespace: namespace, Name: access.Secret})
	switch {
	case apierrors.IsNotFound(err):
		return nil, missing("secret %s/%s, which holds its credentials, does not exist", namespace, access.Secret)
	case apierrors.IsForbidden(err):
		return nil, missing("%s may not get secret %s/%s, which holds its credentials: grant that", as.Identity(), namespace, access.Secret)
	case err != nil:
		return nil, fmt.Errorf("reading secret %s/%s, which holds its credentials: %w", namespace, access.Secret, err)
	}
	kubeconfig, err := access.Kubeconfig(dataOf(secret))
	if e, isOurs := err.(*Error); isOurs { //nolint:errorlint // it is returned as it is
		e.text = fmt.Sprintf("secret %s/%s: %s", namespace, access.Secret, e.text)
	}
	return kubeconfig, err
}

// dataOf is the content of a Secret. What is not base64 is left out: the API server stores none.
func dataOf(secret *unstructured.Unstructured) map[string][]byte {
	texts, _, _ := unstructured.NestedStringMap(secret.Object, "data")
	data := make(map[string][]byte, len(texts))
	for key, text := range texts {
		if content, err := base64.StdEncoding.DecodeString(text); err == nil {
			data[key] = content
		}
	}
	return data
}
