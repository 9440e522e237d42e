// SPDX-License-Identifier: Apache-2.0

package install

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

// The controllers, by the names of their Deployments, ServiceAccounts and images.
const (
	SourceController     = "bundle-source-controller"
	DeploymentController = "bundle-deployment-controller"
)

// Controllers are both.
var Controllers = []string{SourceController, DeploymentController}

const (
	// DefaultNamespace is where config/default puts the controllers.
	DefaultNamespace = "satchel-system"
	// PlaceholderRegistry is the registry in config/default, where no images are published.
	PlaceholderRegistry = "registry.example.org/satchel"
	// placeholderTag is the tag in config/default.
	placeholderTag = "dev"
)

// Options say how an installation differs from config/default, which is what the zero value means.
type Options struct {
	// Namespace is where the controllers run; default satchel-system.
	Namespace string `json:"namespace,omitempty"`
	// Registry is what the references of both images begin with, such as registry.example.org/satchel.
	Registry string `json:"registry,omitempty"`
	// Tag is the tag of both images.
	Tag string `json:"tag,omitempty"`
	// Images are references in full, by the name of the controller; they take precedence over Registry and Tag.
	Images map[string]string `json:"images,omitempty"`
	// PullSecrets are names of Secrets in the controllers' namespace, with which their images are pulled.
	PullSecrets []string `json:"pullSecrets,omitempty"`
	// Replicas of each controller, one of them the leader; default 1. More than one needs ephemeral storage.
	Replicas int64 `json:"replicas,omitempty"`
	// EphemeralStorage keeps artifacts and caches with the Pods instead of in PersistentVolumeClaims.
	EphemeralStorage bool `json:"ephemeralStorage,omitempty"`
	// StorageClass is that of the claims; default: the default class of the cluster.
	StorageClass string `json:"storageClass,omitempty"`
	// StorageSizes are the sizes of the claims, by the name of the controller.
	StorageSizes map[string]string `json:"storageSizes,omitempty"`
	// Selector limits the controllers to objects with matching labels.
	Selector string `json:"selector,omitempty"`
	// WithoutNetworkPolicies leaves the NetworkPolicies out.
	WithoutNetworkPolicies bool `json:"withoutNetworkPolicies,omitempty"`
	// AuthenticatedArtifacts has the artifact server ask for tokens, as config/overlays/authenticated-artifacts does.
	AuthenticatedArtifacts bool `json:"authenticatedArtifacts,omitempty"`
	// TenantNamespaces, if not empty, are the only namespaces in which the controllers may impersonate ServiceAccounts and
	// read Secrets, as in config/overlays/namespaced-impersonation.
	TenantNamespaces []string `json:"tenantNamespaces,omitempty"`
}

// namespace is where the controllers run.
func (o Options) namespace() string { return cmp.Or(o.Namespace, DefaultNamespace) }

// Image is the reference of a controller's image.
func (o Options) Image(controller string) string {
	if image := o.Images[controller]; image != "" {
		return image
	}
	return cmp.Or(o.Registry, PlaceholderRegistry) + "/" + controller + ":" + cmp.Or(o.Tag, placeholderTag)
}

// HasPlaceholders tells whether an image reference is a placeholder, which is not published.
func (o Options) HasPlaceholders() bool {
	return slices.ContainsFunc(Controllers, func(c string) bool { return strings.HasPrefix(o.Image(c), PlaceholderRegistry+"/") })
}

// Validate lists all problems of the options, sorted.
func (o Options) Validate() error {
	var problems []string
	complain := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	for _, namespace := range append([]string{o.namespace()}, o.TenantNamespaces...) {
		for _, problem := range validation.IsDNS1123Label(namespace) {
			complain("the namespace %q: %s", namespace, problem)
		}
	}
	for _, controller := range Controllers {
		if _, err := name.ParseReference(o.Image(controller)); err != nil {
			complain("the image of %s: %v", controller, err)
		}
	}
	for _, secret := range o.PullSecrets {
		for _, problem := range validation.IsDNS1123Subdomain(secret) {
			complain("the pull secret %q: %s", secret, problem)
		}
	}
	if _, err := labels.Parse(o.Selector); err != nil {
		complain("the selector %q: %v", o.Selector, err)
	}
	problems = append(problems, o.storageProblems()...)
	for _, named := range []map[string]string{o.Images, o.StorageSizes} {
		for controller := range named {
			if !slices.Contains(Controllers, controller) {
				complain("there is no controller %q: choose from %s", controller, strings.Join(Controllers, ", "))
			}
		}
	}
	if len(problems) == 0 {
		return nil
	}
	slices.Sort(problems)
	return errors.New(strings.Join(problems, "; "))
}

func (o Options) storageProblems() []string {
	var problems []string
	switch {
	case o.Replicas < 0:
		problems = append(problems, fmt.Sprintf("%d replicas are too few", o.Replicas))
	case o.Replicas > 1 && !o.EphemeralStorage:
		problems = append(problems, fmt.Sprintf("%d replicas cannot share a volume that is mounted once: choose ephemeral storage, or one replica", o.Replicas))
	}
	if o.EphemeralStorage && (o.StorageClass != "" || len(o.StorageSizes) > 0) {
		problems = append(problems, "ephemeral storage has neither class nor size: use only one of the two")
	}
	for _, controller := range slices.Sorted(maps.Keys(o.StorageSizes)) {
		if size, err := resource.ParseQuantity(o.StorageSizes[controller]); err != nil || size.Sign() <= 0 {
			problems = append(problems, fmt.Sprintf("the storage size %q of %s is no quantity such as 10Gi", o.StorageSizes[controller], controller))
		}
	}
	return problems
}
