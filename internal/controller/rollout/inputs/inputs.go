// SPDX-License-Identifier: Apache-2.0

// Package inputs keeps copies of the Secrets and ConfigMaps that all clusters of a rollout share, one set a revision. It reads and
// writes them as the ServiceAccount of the template: the controller has no permission on any Secret.
package inputs

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/rollout/revision"
)

// secretKind is the kind of Secrets. All other inputs are ConfigMaps.
const secretKind = "Secret"

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
		object, err := as.Get(ctx, k.ref(one.Kind, one.Name))
		switch {
		case apierrors.IsNotFound(err) && !one.Required:
			all = append(all, Input{FrozenInput: one})
			continue
		case apierrors.IsNotFound(err):
			return nil, missing("%s does not exist, which spec.template or spec.overrides name: create it, or make it optional", k.named(one.Kind, one.Name))
		case apierrors.IsForbidden(err):
			return nil, missing("serviceaccount %s may not get %s, which spec.template or spec.overrides name: grant it", k.Account, k.named(one.Kind, one.Name))
		case err != nil:
			return nil, fmt.Errorf("reading %s: %w", k.named(one.Kind, one.Name), err)
		}
		if one.Digest, err = digestOf(object); err != nil {
			return nil, fmt.Errorf("computing the digest of %s: %w", k.named(one.Kind, one.Name), err)
		}
		all = append(all, Input{FrozenInput: one, object: object})
	}
	return all, nil
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
		copied.SetName(revision.InputName(rollout, name, i))
		copied.SetLabels(map[string]string{v1alpha1.RolloutLabel: rollout})
		_, err := as.Apply(ctx, k.ref(one.Kind, copied.GetName()), copied, tenant.ApplyOptions{Manager: k.Manager})
		switch {
		case apierrors.IsForbidden(err):
			return missing("serviceaccount %s may not create and patch %s, the copy of %s for revision %s: grant it, and delete for its removal",
				k.Account, k.named(one.Kind, copied.GetName()), k.named(one.Kind, one.Name), name)
		case apierrors.IsConflict(err), apierrors.IsInvalid(err):
			return missing("%s exists, and is not the copy of %s for revision %s: delete or rename it", k.named(one.Kind, copied.GetName()), k.named(one.Kind, one.Name), name)
		case err != nil:
			return fmt.Errorf("copying %s to %s: %w", k.named(one.Kind, one.Name), k.named(one.Kind, copied.GetName()), err)
		}
	}
	return nil
}

// Delete deletes the copies of a revision. Those that the ServiceAccount may not delete stay: Missing names the first of them.
func (k Keeper) Delete(ctx context.Context, rollout, name string, frozen []revision.FrozenInput) error {
	as, err := k.client(ctx)
	if err != nil {
		return err
	}
	as = as.For(rollout)
	var problems []error
	for i, one := range frozen {
		if one.Digest == "" {
			continue
		}
		copied := revision.InputName(rollout, name, i)
		switch _, err := as.Delete(ctx, k.ref(one.Kind, copied), "", ""); {
		case apierrors.IsNotFound(err):
		case apierrors.IsForbidden(err):
			problems = append(problems, missing("serviceaccount %s may not delete %s, which no revision needs any more: delete it", k.Account, k.named(one.Kind, copied)))
		case err != nil:
			return fmt.Errorf("deleting %s: %w", k.named(one.Kind, copied), err)
		}
	}
	return errors.Join(problems...)
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
