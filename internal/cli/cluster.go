// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// cluster is the cluster and namespace that the flags and the kubeconfig mean.
type cluster struct {
	client    client.WithWatch
	namespace string
}

// connect returns the cluster of the flags. It sends no request: the two kinds are known without discovery.
func (a *app) connect() (*cluster, error) {
	config, err := a.restConfig()
	if err != nil {
		return nil, err
	}
	namespace, _, err := a.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.WarningHandler = rest.NewWarningWriter(a.streams.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	scheme := newScheme()
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: staticMapper()})
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to the cluster: %w", err)
	}
	return &cluster{client: c, namespace: namespace}, nil
}

// restConfig returns what the flags and the kubeconfig say. Where they say nothing, there would be a guess, localhost:8080,
// which is an error here.
func (a *app) restConfig() (*rest.Config, error) {
	config, err := a.config.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	raw, err := a.config.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if len(raw.Clusters) == 0 && config.Host == clientcmd.ClusterDefaults.Server && os.Getenv("KUBERNETES_MASTER") == "" && *a.config.APIServer == "" {
		return nil, clientcmd.ErrEmptyConfig
	}
	return config, nil
}

// newScheme knows Satchel's kinds.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	// Adding types that are compiled in cannot fail.
	_ = v1alpha1.AddToScheme(scheme)
	return scheme
}

// staticMapper maps the kinds to their resources.
func staticMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1alpha1.GroupVersion})
	for _, k := range kinds {
		mapper.Add(v1alpha1.GroupVersion.WithKind(k.name), meta.RESTScopeNamespace)
	}
	mapper.Add(v1alpha1.GroupVersion.WithKind(v1alpha1.BundleApprovalKind), meta.RESTScopeNamespace)
	return mapper
}

// namespaceKind is the kind Namespace.
var namespaceKind = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}

// namespaceMapper maps namespaces to their resource.
func namespaceMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(namespaceKind, meta.RESTScopeRoot)
	return mapper
}

// get reads one object. Where it does not exist, the error names those that do.
func (c *cluster) get(ctx context.Context, t target) (object, error) {
	raw, err := c.getRaw(ctx, t)
	if err != nil {
		return nil, err
	}
	return typed(t.kind, raw)
}

// getRaw is get with the object as the cluster has it, fields of later versions included.
func (c *cluster) getRaw(ctx context.Context, t target) (*unstructured.Unstructured, error) {
	raw := new(unstructured.Unstructured)
	raw.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(t.kind.name))
	err := c.client.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: t.name}, raw)
	if isObjectNotFound(err) {
		return nil, c.notFound(ctx, t)
	}
	if err != nil {
		return nil, &accessError{verb: "get", resource: t.kind.resource, namespace: c.namespace, err: err}
	}
	return raw, nil
}

// list reads all objects of a kind as the cluster has them; everywhere means in all namespaces.
func (c *cluster) list(ctx context.Context, k kind, everywhere bool, selector string) ([]*unstructured.Unstructured, error) {
	options := &client.ListOptions{Raw: &metav1.ListOptions{LabelSelector: selector}}
	if !everywhere {
		options.Namespace = c.namespace
	}
	list := new(unstructured.UnstructuredList)
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(k.name + "List"))
	if err := c.client.List(ctx, list, options); err != nil {
		return nil, &accessError{verb: "list", resource: k.resource, namespace: options.Namespace, err: err}
	}
	items := make([]*unstructured.Unstructured, 0, len(list.Items))
	for i := range list.Items {
		items = append(items, &list.Items[i])
	}
	return items, nil
}

// typed converts an object to its Go type.
func typed(k kind, raw *unstructured.Unstructured) (object, error) {
	o := k.empty()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw.Object, o); err != nil {
		return nil, fmt.Errorf("reading %s %s/%s: %w", k.name, raw.GetNamespace(), raw.GetName(), err)
	}
	return o, nil
}

// notFound returns an error that names the objects with similar names.
func (c *cluster) notFound(ctx context.Context, t target) error {
	missing := &notFoundError{kind: t.kind, name: t.name, namespace: c.namespace}
	here, err := c.list(ctx, t.kind, false, "")
	if err != nil {
		return missing // the user may get but not list: nothing to suggest
	}
	missing.known = true
	missing.near = nearest(t.name, names(here))
	if len(missing.near) > 0 {
		return missing
	}
	// Often the namespace is the wrong one. A user who may not list all namespaces gets no suggestion.
	if all, err := c.list(ctx, t.kind, true, ""); err == nil {
		missing.elsewhere = namespacesOf(t.name, all)
	}
	return missing
}

// isObjectNotFound tells a missing object from a missing API.
func isObjectNotFound(err error) bool {
	return apierrors.IsNotFound(err) && !isAPIMissing(err)
}
