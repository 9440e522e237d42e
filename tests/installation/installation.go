// SPDX-License-Identifier: Apache-2.0

// Package installation puts Satchel's CRDs and RBAC on a cluster, and
// gives configurations with exactly the permissions of a controller or a tenant,
// so that tests run with what users will have.
package installation

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/manager"
)

// Namespace is where the controllers live.
const Namespace = "satchel-system"

// Install applies the CRDs, the RBAC and the admission policies of config/ and waits until the kinds are
// served. It does not start anything.
func Install(ctx context.Context, admin *rest.Config) error {
	c, err := Client(admin)
	if err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}
	if err := c.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating namespace %s: %w", Namespace, err)
	}
	for _, folder := range []string{"crd", "rbac", "admission"} {
		objects, err := Render(filepath.Join(Root(), "config", folder))
		if err != nil {
			return err
		}
		for _, object := range objects {
			if err := apply(ctx, c, object); err != nil {
				return err
			}
		}
	}
	return served(ctx, admin, v1alpha1.BundleSourceKind, v1alpha1.BundleDeploymentKind, v1alpha1.BundleApprovalKind, v1alpha1.BundleCatalogKind, v1alpha1.BundleImagePolicyKind)
}

// InstallRollouts adds the kind BundleRollout and the permissions of its controller to an installation.
func InstallRollouts(ctx context.Context, admin *rest.Config) error {
	c, err := Client(admin)
	if err != nil {
		return err
	}
	objects, err := Render(filepath.Join(Root(), "config", "rollouts"))
	if err != nil {
		return err
	}
	for _, object := range objects {
		if object.GetKind() == "Deployment" {
			continue // tests start the controllers themselves
		}
		if err := apply(ctx, c, object); err != nil {
			return err
		}
	}
	return served(ctx, admin, v1alpha1.BundleRolloutKind)
}

// apply puts an object of config/ on the cluster; those of a namespace go to
// Namespace, as config/default has it.
func apply(ctx context.Context, c client.Client, object *unstructured.Unstructured) error {
	namespaced, err := c.IsObjectNamespaced(object)
	if err != nil {
		return fmt.Errorf("looking at %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	if namespaced {
		object.SetNamespace(Namespace)
	}
	err = c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("installation"), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// served waits until the API server serves some of Satchel's kinds.
func served(ctx context.Context, admin *rest.Config, kinds ...string) error {
	c, err := discovery.NewDiscoveryClientForConfig(admin)
	if err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		list, err := c.ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String())
		return err == nil && !slices.ContainsFunc(kinds, func(kind string) bool { return !serves(list, kind) }), nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the CRDs to be served: %w", err)
	}
	return nil
}

// serves tells whether a kind is among the resources.
func serves(list *metav1.APIResourceList, kind string) bool {
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind })
}

// Render builds a kustomization of the repository.
func Render(folder string) ([]*unstructured.Unstructured, error) {
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, fmt.Errorf("building %s: %w", folder, err)
	}
	var objects []*unstructured.Unstructured
	for _, resource := range resources.Resources() {
		content, err := resource.Map()
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", folder, err)
		}
		objects = append(objects, &unstructured.Unstructured{Object: content})
	}
	return objects, nil
}

// Root is the folder of the repository.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}

// Client is a client that knows Satchel's kinds.
func Client(config *rest.Config) (client.Client, error) {
	c, err := client.New(config, client.Options{Scheme: manager.Scheme()})
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	return c, nil
}

// AccountConfig is a configuration that acts as a service account, by a token of it.
func AccountConfig(ctx context.Context, admin *rest.Config, namespace, name string) (*rest.Config, error) {
	clients, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return nil, err
	}
	hours := int64(12 * 3600)
	token, err := clients.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &hours}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("requesting a token of %s/%s: %w", namespace, name, err)
	}
	config := rest.AnonymousClientConfig(admin)
	config.BearerToken, config.QPS, config.Burst = token.Status.Token, -1, -1
	return config, nil
}

// Admin creates a ServiceAccount with all permissions, for tests that are not about the
// permissions of a bundle.
func Admin(ctx context.Context, c client.Client, namespace, name string) error {
	return Account(ctx, c, namespace, name, "cluster-admin", "")
}

// Account makes a service account bound to a ClusterRole: in the given
// namespace, or in all of them where it is empty.
func Account(ctx context.Context, c client.Client, namespace, name, role, in string) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := c.Create(ctx, account); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating service account %s/%s: %w", namespace, name, err)
	}
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: name}}
	roleRef := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	meta := metav1.ObjectMeta{Namespace: in, Name: namespace + "-" + name}
	var binding client.Object = &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: roleRef}
	if in != "" {
		binding = &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: roleRef}
	}
	if err := c.Create(ctx, binding); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("binding service account %s/%s: %w", namespace, name, err)
	}
	return nil
}
