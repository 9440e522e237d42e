// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AskFunc returns an object of the core API from a cluster; nil if it does not exist.
type AskFunc func(ctx context.Context, kind, namespace, name string) (*unstructured.Unstructured, error)

// reader implements client.Reader for single objects.
type reader struct {
	set *Set
	ask AskFunc
}

// Get implements client.Reader.
func (r reader) Get(ctx context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	kind, err := kindOf(into)
	if err != nil {
		return err
	}
	found := r.set.find(kind, key.Namespace, key.Name)
	if found == nil && r.ask != nil {
		if found, err = r.ask(ctx, kind, key.Namespace, key.Name); err != nil {
			return err
		}
	}
	if found == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: kind}, key.Name)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, into); err != nil {
		return fmt.Errorf("reading %s %s: %w", kind, key.Name, err)
	}
	if secret, isSecret := into.(*corev1.Secret); isSecret { // what an API server does when it stores one
		for name, text := range secret.StringData {
			if secret.Data == nil {
				secret.Data = map[string][]byte{}
			}
			secret.Data[name] = []byte(text)
		}
		secret.StringData = nil
	}
	return nil
}

// List implements client.Reader. Sources refer to single objects only.
func (reader) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return fmt.Errorf("manifests are not listed")
}

func kindOf(into client.Object) (string, error) {
	switch into.(type) {
	case *corev1.Secret:
		return "Secret", nil
	case *corev1.ConfigMap:
		return "ConfigMap", nil
	case *corev1.ServiceAccount:
		return "ServiceAccount", nil
	}
	return "", fmt.Errorf("no manifests of %T are read", into)
}
