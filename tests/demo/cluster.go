// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// fieldManager is the field manager of what the demo applies.
const fieldManager = "satchel-demo"

// cluster is where the demo happens, seen as its administrator.
type cluster struct {
	client.Client
	config     *rest.Config
	kubeconfig string
	binDir     string // with kubectl; empty on an existing cluster
}

// connect makes a client for a kubeconfig.
func connect(kubeconfig string) (*cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig %s: %w", kubeconfig, err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster of %s: %w", kubeconfig, err)
	}
	return &cluster{Client: c, config: config, kubeconfig: kubeconfig}, nil
}

// apply writes objects as `kubectl apply --server-side` does.
func (c *cluster) apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(o.DeepCopy()), client.FieldOwner(fieldManager), client.ForceOwnership)
		if err != nil {
			return fmt.Errorf("applying %s: %w", describe(o), err)
		}
	}
	return nil
}

// find returns the live object, or nil when there is none or its kind does not exist.
func (c *cluster) find(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(o.GroupVersionKind())
	err := c.Get(ctx, client.ObjectKeyFromObject(o), live)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	return live, err
}

// existing names the first of the objects that exists already.
func (c *cluster) existing(ctx context.Context, objects []*unstructured.Unstructured) (string, error) {
	for _, o := range objects {
		live, err := c.find(ctx, o)
		if err != nil {
			return "", fmt.Errorf("looking for %s: %w", describe(o), err)
		}
		if live != nil {
			return describe(o), nil
		}
	}
	return "", nil
}

// remove deletes objects in reverse order, each before the next, and returns when they are gone.
func (c *cluster) remove(ctx context.Context, objects []*unstructured.Unstructured) error {
	var errs []error
	for i := len(objects) - 1; i >= 0; i-- {
		o := objects[i].DeepCopy()
		if err := c.Delete(ctx, o); client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
			errs = append(errs, fmt.Errorf("deleting %s: %w", describe(o), err))
			continue
		}
		errs = append(errs, c.awaitGone(ctx, o))
	}
	return errors.Join(errs...)
}

// awaitGone returns when the object does not exist any more.
func (c *cluster) awaitGone(ctx context.Context, o *unstructured.Unstructured) error {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		live, err := c.find(ctx, o)
		if err == nil && live == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s to go: %w", describe(o), errors.Join(err, ctx.Err()))
		case <-ticker.C:
		}
	}
}

// object makes a reference to an object.
func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// describe names an object for people.
func describe(o client.Object) string {
	kind := o.GetObjectKind().GroupVersionKind().Kind
	if o.GetNamespace() == "" {
		return kind + " " + o.GetName()
	}
	return kind + " " + o.GetNamespace() + "/" + o.GetName()
}
