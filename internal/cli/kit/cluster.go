// SPDX-License-Identifier: Apache-2.0

package kit

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
	"github.com/satchel-dev/satchel/internal/cli/spelling"
	"github.com/satchel-dev/satchel/internal/view"
)

// Cluster is the cluster and namespace that the flags and the kubeconfig mean.
type Cluster struct {
	Client    client.WithWatch
	Namespace string
}

// Connect returns the cluster of the flags. It sends no request: the kinds are known without discovery.
func (a *App) Connect() (*Cluster, error) {
	config, err := a.RestConfig()
	if err != nil {
		return nil, err
	}
	namespace, _, err := a.Config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.WarningHandler = rest.NewWarningWriter(a.Streams.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	scheme := NewScheme()
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: StaticMapper()})
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to the cluster: %w", err)
	}
	return &Cluster{Client: c, Namespace: namespace}, nil
}

// RestConfig returns what the flags and the kubeconfig say. Where they say nothing, there would be a guess, localhost:8080,
// which is an error here.
func (a *App) RestConfig() (*rest.Config, error) {
	config, err := a.Config.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	raw, err := a.Config.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if len(raw.Clusters) == 0 && config.Host == clientcmd.ClusterDefaults.Server && os.Getenv("KUBERNETES_MASTER") == "" && *a.Config.APIServer == "" {
		return nil, clientcmd.ErrEmptyConfig
	}
	return config, nil
}

// NewScheme knows Satchel's kinds.
func NewScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	// Adding types that are compiled in cannot fail.
	_ = v1alpha1.AddToScheme(scheme)
	return scheme
}

// StaticMapper maps the kinds to their resources.
func StaticMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1alpha1.GroupVersion})
	for _, k := range Known {
		mapper.Add(v1alpha1.GroupVersion.WithKind(k.Name), meta.RESTScopeNamespace)
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

// Get reads one object. Where it does not exist, the error names those that do.
func (c *Cluster) Get(ctx context.Context, t Target) (view.Object, error) {
	raw, err := c.getRaw(ctx, t)
	if err != nil {
		return nil, err
	}
	return Typed(t.Kind, raw)
}

// getRaw is get with the object as the cluster has it, fields of later versions included.
func (c *Cluster) getRaw(ctx context.Context, t Target) (*unstructured.Unstructured, error) {
	raw := new(unstructured.Unstructured)
	raw.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(t.Kind.Name))
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: t.Name}, raw)
	if IsObjectNotFound(err) {
		return nil, c.NotFound(ctx, t)
	}
	if err != nil {
		return nil, &AccessError{Verb: "get", Resource: t.Kind.Resource, Namespace: c.Namespace, Err: err}
	}
	return raw, nil
}

// List reads all objects of a kind as the cluster has them; everywhere means in all namespaces.
func (c *Cluster) List(ctx context.Context, k Kind, everywhere bool, selector string) ([]*unstructured.Unstructured, error) {
	options := &client.ListOptions{Raw: &metav1.ListOptions{LabelSelector: selector}}
	if !everywhere {
		options.Namespace = c.Namespace
	}
	list := new(unstructured.UnstructuredList)
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(k.Name + "List"))
	if err := c.Client.List(ctx, list, options); err != nil {
		return nil, &AccessError{Verb: "list", Resource: k.Resource, Namespace: options.Namespace, Err: err}
	}
	items := make([]*unstructured.Unstructured, 0, len(list.Items))
	for i := range list.Items {
		items = append(items, &list.Items[i])
	}
	return items, nil
}

// Typed converts an object to its Go type.
func Typed(k Kind, raw *unstructured.Unstructured) (view.Object, error) {
	o := k.Empty()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw.Object, o); err != nil {
		return nil, fmt.Errorf("reading %s %s/%s: %w", k.Name, raw.GetNamespace(), raw.GetName(), err)
	}
	return o, nil
}

// NotFound returns an error that names the objects with similar names.
func (c *Cluster) NotFound(ctx context.Context, t Target) error {
	missing := &NotFoundError{Kind: t.Kind, Name: t.Name, Namespace: c.Namespace}
	here, err := c.List(ctx, t.Kind, false, "")
	if err != nil {
		return missing // the user may get but not list: nothing to suggest
	}
	missing.known = true
	missing.near = spelling.Nearest(t.Name, names(here))
	if len(missing.near) > 0 {
		return missing
	}
	// Often the namespace is the wrong one. A user who may not list all namespaces gets no suggestion.
	if all, err := c.List(ctx, t.Kind, true, ""); err == nil {
		missing.elsewhere = namespacesOf(t.Name, all)
	}
	return missing
}

// IsObjectNotFound tells a missing object from a missing API.
func IsObjectNotFound(err error) bool {
	return apierrors.IsNotFound(err) && !IsAPIMissing(err)
}

// GivenNamespace is the namespace of the flags and the kubeconfig, without a request; "default" where they name none or cannot be read.
func (a *App) GivenNamespace() string {
	namespace, _, err := a.Config.ToRawKubeConfigLoader().Namespace()
	if err != nil || namespace == "" {
		return metav1.NamespaceDefault
	}
	return namespace
}
