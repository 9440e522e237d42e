// SPDX-License-Identifier: Apache-2.0

// Package inputs keeps copies of the Secrets and ConfigMaps that the BundleDeployments of a rollout read: of those that all clusters share one
// set a revision, of those that only one cluster has one set a start. It reads and writes them as the ServiceAccount of the template: the
// controller has no permission on any Secret.
package inputs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/rollout/revision"
)

// Kinds of inputs. All that are no Secrets are ConfigMaps.
const (
	secretKind    = "Secret"
	configMapKind = "ConfigMap"
)

// MissingError says that an input could not be read, or its copy not be written, until a user changes something.
type MissingError struct{ err error }

// Error implements error.
func (m *MissingError) Error() string { return m.err.Error() }

// Unwrap returns the cause.
func (m *MissingError) Unwrap() error { return m.err }

func missing(format string, args ...any) error { return &MissingError{fmt.Errorf(format, args...)} }

// Input is an input as it was read.
type Input struct {
	revision.FrozenInput
	// object is nil if it does not exist.
	object *unstructured.Unstructured
}

// Keeper reads and copies inputs as a ServiceAccount.
type Keeper struct {
	Tenants *tenant.Pool
	Account tenant.Identity
	Manager string
}

// Read reads inputs, with their digests. Missing: one that is required does not exist, or the ServiceAccount may not read it.
//
// The digest of a ConfigMap is that of its content. That of a Secret is of its UID and version, since a digest of its content in a
// ControllerRevision would tell it to those who can guess it.
func (k Keeper) Read(ctx context.Context, wanted []revision.FrozenInput) ([]Input, error) {
	as, err := k.client(ctx)
	if err != nil {
		return nil, err
	}
	var all []Input
	for _, one := range wanted {
		read, err := k.readOne(ctx, as, one)
		if err != nil {
			return nil, err
		}
		all = append(all, read)
	}
	return all, nil
}

func (k Keeper) readOne(ctx context.Context, as *tenant.Client, one revision.FrozenInput) (Input, error) {
	object, err := as.Get(ctx, k.ref(one.Kind, one.Name))
	switch {
	case apierrors.IsNotFound(err) && !one.Required:
		return Input{FrozenInput: one}, nil
	case apierrors.IsNotFound(err):
		return Input{}, missing("%s does not exist, which spec.template or spec.overrides name: create it, or make it optional", k.named(one.Kind, one.Name))
	case apierrors.IsForbidden(err):
		return Input{}, missing("serviceaccount %s may not get %s, which spec.template or spec.overrides name: grant it", k.Account, k.named(one.Kind, one.Name))
	case err != nil:
		return Input{}, fmt.Errorf("reading %s: %w", k.named(one.Kind, one.Name), err)
	}
	if one.Digest, err = digestOf(object); err != nil {
		return Input{}, fmt.Errorf("computing the digest of %s: %w", k.named(one.Kind, one.Name), err)
	}
	return Input{FrozenInput: one, object: object}, nil
}

// digestOf identifies the content of an input.
func digestOf(object *unstructured.Unstructured) (string, error) {
	if object.GetKind() == secretKind {
		return revision.DigestOf(map[string]any{"uid": string(object.GetUID()), "version": object.GetResourceVersion()})
	}
	return revision.DigestOf(map[string]any{"data": object.Object["data"], "binaryData": object.Object["binaryData"]})
}

// Frozen are inputs as revisions have them.
func Frozen(all []Input) []revision.FrozenInput {
	var frozen []revision.FrozenInput
	for i := range all {
		frozen = append(frozen, all[i].FrozenInput)
	}
	return frozen
}

// Copy writes the copies of a revision, which cannot be changed afterwards.
func (k Keeper) Copy(ctx context.Context, rollout, name string, all []Input) error {
	what := "revision " + name
	return k.copyAll(ctx, rollout, what, all, map[string]string{v1alpha1.RolloutLabel: rollout}, func(i int) string {
		return revision.InputName(rollout, name, i)
	})
}

// CopyOwn writes the copies of what only one cluster has, before its BundleDeployment is written. They cannot be changed afterwards.
func (k Keeper) CopyOwn(ctx context.Context, rollout, cluster string, child *revision.Child, all []Input) error {
	labels := map[string]string{v1alpha1.RolloutLabel: rollout, v1alpha1.ClusterLabel: cluster}
	return k.copyAll(ctx, rollout, "cluster "+cluster, all, labels, func(i int) string {
		return revision.OwnInputName(child.Name, all[i].FrozenInput)
	})
}

// copyAll writes copies with the given names. what is for messages.
func (k Keeper) copyAll(ctx context.Context, rollout, what string, all []Input, labels map[string]string, nameOf func(index int) string) error {
	as, err := k.client(ctx)
	if err != nil {
		return err
	}
	as = as.For(rollout)
	for i := range all {
		one := &all[i]
		if one.object == nil {
			continue
		}
		copied := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": one.Kind, "immutable": true}}
		for _, field := range []string{"data", "binaryData"} {
			if content, has := one.object.Object[field]; has {
				copied.Object[field] = content
			}
		}
		copied.SetNamespace(k.Account.Namespace)
		copied.SetName(nameOf(i))
		copied.SetLabels(labels)
		_, err := as.Apply(ctx, k.ref(one.Kind, copied.GetName()), copied, tenant.ApplyOptions{Manager: k.Manager})
		switch {
		case apierrors.IsForbidden(err):
			return missing("serviceaccount %s may not create and patch %s, the copy of %s for %s: grant it, and delete for its removal",
				k.Account, k.named(one.Kind, copied.GetName()), k.named(one.Kind, one.Name), what)
		case apierrors.IsConflict(err), apierrors.IsInvalid(err):
			return missing("%s exists, and is not the copy of %s for %s: delete or rename it", k.named(one.Kind, copied.GetName()), k.named(one.Kind, one.Name), what)
		case err != nil:
			return fmt.Errorf("copying %s to %s: %w", k.named(one.Kind, one.Name), k.named(one.Kind, copied.GetName()), err)
		}
	}
	return nil
}

// Copied names a copy.
type Copied struct{ kind, name string }

// CopyNamed is the copy of a kind that a BundleDeployment names.
func CopyNamed(kind, name string) Copied {
	if kind != secretKind {
		kind = configMapKind
	}
	return Copied{kind, name}
}

// OwnCopies lists the copies of inputs that only one cluster has. MissingError: the ServiceAccount may not list them.
func (k Keeper) OwnCopies(ctx context.Context, rollout string) ([]Copied, error) {
	as, err := k.client(ctx)
	if err != nil {
		return nil, err
	}
	var all []Copied
	for _, kind := range []string{configMapKind, secretKind} {
		options := metav1.ListOptions{LabelSelector: v1alpha1.RolloutLabel + "=" + rollout + "," + v1alpha1.ClusterLabel, Limit: tenant.PageSize}
		for {
			page, err := as.ListMetadata(ctx, k.ref(kind, ""), options)
			switch {
			case apierrors.IsForbidden(err):
				return nil, missing("serviceaccount %s may not list %ss in namespace %s, where copies for single clusters are: grant it, or delete those that no BundleDeployment names",
					k.Account, strings.ToLower(kind), k.Account.Namespace)
			case err != nil:
				return nil, fmt.Errorf("listing copies of inputs in namespace %s: %w", k.Account.Namespace, err)
			}
			for i := range page.Items {
				all = append(all, Copied{kind, page.Items[i].Name})
			}
			if options.Continue = page.Continue; options.Continue == "" {
				break
			}
		}
	}
	return all, nil
}

// DeleteCopies deletes copies. Those that the ServiceAccount may not delete stay: MissingError names the first of them.
func (k Keeper) DeleteCopies(ctx context.Context, rollout string, copies []Copied) error {
	as, err := k.client(ctx)
	if err != nil {
		return err
	}
	as = as.For(rollout)
	var problems []error
	for _, one := range copies {
		switch _, err := as.Delete(ctx, k.ref(one.kind, one.name), "", ""); {
		case apierrors.IsNotFound(err):
		case apierrors.IsForbidden(err):
			problems = append(problems, missing("serviceaccount %s may not delete %s, which nothing needs any more: delete it", k.Account, k.named(one.kind, one.name)))
		case err != nil:
			return fmt.Errorf("deleting %s: %w", k.named(one.kind, one.name), err)
		}
	}
	return errors.Join(problems...)
}

// Delete deletes the copies of a revision. Those that the ServiceAccount may not delete stay: Missing names the first of them.
func (k Keeper) Delete(ctx context.Context, rollout, name string, frozen []revision.FrozenInput) error {
	var copies []Copied
	for i, one := range frozen {
		if one.Digest != "" {
			copies = append(copies, CopyNamed(one.Kind, revision.InputName(rollout, name, i)))
		}
	}
	return k.DeleteCopies(ctx, rollout, copies)
}

// client impersonates the ServiceAccount.
func (k Keeper) client(ctx context.Context) (*tenant.Client, error) {
	if k.Account.ServiceAccount == "" {
		return nil, missing("spec.template.spec.serviceAccountName is missing or no text, and Secrets and ConfigMaps are read as that ServiceAccount: set it")
	}
	exists, err := k.Tenants.AccountExisted(ctx, k.Account)
	if err != nil {
		return nil, err
	}
	if !exists {
		return nil, missing("serviceaccount %s does not exist: Secrets and ConfigMaps are read as the ServiceAccount of spec.template; create it", k.Account)
	}
	return k.Tenants.Client(k.Account)
}

func (k Keeper) ref(kind, name string) tenant.Ref {
	resource := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	if kind == secretKind {
		resource.Resource = "secrets"
	}
	return tenant.Ref{Resource: resource, Namespace: k.Account.Namespace, Name: name}
}

// named is an input in messages.
func (k Keeper) named(kind, name string) string {
	if kind == secretKind {
		return "secret " + k.Account.Namespace + "/" + name
	}
	return "configmap " + k.Account.Namespace + "/" + name
}
