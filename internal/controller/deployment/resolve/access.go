// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/apply/tenant/clusterprofile"
	"github.com/satchel-dev/satchel/internal/apply/tenant/connection"
	"github.com/satchel-dev/satchel/internal/controller/deployment/approval"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// Accounts find the clients that impersonate the ServiceAccounts of deployments.
type Accounts struct {
	Tenants *tenant.Pool
	Remotes *tenant.Remotes
	// OwnCluster permits kubeconfigs that lead to the cluster of the controller itself.
	OwnCluster bool
}

// Find gets the client that impersonates the deployment's ServiceAccount, which must
// exist: the API server would also impersonate a missing one. If the target is another
// cluster, that ServiceAccount reads the kubeconfig, and the client is for that
// cluster. If that fails, both clients are for this cluster.
func (r Accounts) Find(ctx context.Context, d *v1alpha1.BundleDeployment) (stage.Access, error) {
	if err := r.exists(ctx, d, r.Tenants.AccountExisted); err != nil {
		return stage.Access{}, err
	}
	return r.impersonate(ctx, d)
}

// FindToRemove is Find for a removal: a ServiceAccount that does not exist any more is
// impersonated all the same, with the permissions that bindings still give it, if the objects
// were applied as this ServiceAccount. That is known from the proven record of the executed
// plan; nil if there is none. Any other missing name, or another kubeconfig than the recorded
// one, is refused: a change of the spec never leads to the permissions of another missing name.
func (r Accounts) FindToRemove(ctx context.Context, d *v1alpha1.BundleDeployment, record *v1alpha1.ExecutedPlan) (stage.Access, error) {
	missing := r.exists(ctx, d, r.Tenants.AccountExists)
	if missing != nil && (failure.Of(missing).Reason != v1alpha1.ReasonAccountNotFound || record == nil || len(approval.Elsewhere(record, &d.Spec)) > 0) {
		return stage.Access{}, missing
	}
	access, err := r.impersonate(ctx, d)
	access.Gone = missing != nil
	return access, err
}

// exists returns an error if the deployment's ServiceAccount does not exist.
func (r Accounts) exists(ctx context.Context, d *v1alpha1.BundleDeployment, look func(context.Context, tenant.Identity) (bool, error)) error {
	identity := tenant.Identity{Namespace: d.Namespace, ServiceAccount: d.Spec.ServiceAccountName}
	exists, err := look(ctx, identity)
	switch {
	case err != nil && identity.Validate() != nil:
		return failure.Error{Reason: v1alpha1.ReasonAccountNotFound, Stalled: true, Err: err}
	case err != nil:
		return err
	case !exists:
		return failure.Error{Reason: v1alpha1.ReasonAccountNotFound, Err: fmt.Errorf(
			"serviceaccount %s/%s does not exist: create it, or correct spec.serviceAccountName", identity.Namespace, identity.ServiceAccount)}
	}
	return nil
}

// impersonate makes the clients.
func (r Accounts) impersonate(ctx context.Context, d *v1alpha1.BundleDeployment) (stage.Access, error) {
	local, err := r.Tenants.Client(tenant.Identity{Namespace: d.Namespace, ServiceAccount: d.Spec.ServiceAccountName})
	if err != nil {
		return stage.Access{}, err
	}
	local = local.For(d.Name)
	a := stage.Access{Client: local, Local: local}
	if !effective.IsRemote(d.Spec.Target.ClusterReference) {
		return a, nil
	}
	parsed, named, err := r.remoteCluster(ctx, local, d)
	if err != nil {
		return a, err
	}
	remote, err := r.Remotes.Client(parsed, d.Namespace, d.Spec.Target.ServiceAccountName)
	if err != nil {
		return a, fmt.Errorf("%s: %w", named, err)
	}
	a.Client, a.Remote, a.Reach = remote.For(d.Name), named, parsed.Reach()
	return a, nil
}

// remoteCluster reads the kubeconfig of spec.target. The Secret is read on
// this cluster each time, impersonating the deployment's ServiceAccount: a changed
// kubeconfig makes another client.
func (r Accounts) remoteCluster(ctx context.Context, local *tenant.Client, d *v1alpha1.BundleDeployment) (parsed *tenant.Kubeconfig, named string, err error) {
	named = holderName(d)
	data, err := kubeconfig(ctx, local, d, named)
	if err != nil {
		return nil, "", err
	}
	parsed, err = tenant.ParseKubeconfig(data)
	var refused *tenant.KubeconfigError
	if errors.As(err, &refused) {
		return nil, "", failure.Error{Reason: v1alpha1.ReasonKubeConfigRefused, Stalled: true, Err: fmt.Errorf("%s: %w", named, err)}
	}
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", named, err)
	}
	return parsed, named, nil
}

// holderName names what leads to the other cluster, as messages do.
func holderName(d *v1alpha1.BundleDeployment) string {
	if ref := d.Spec.Target.ClusterReference.ClusterProfileRef; ref != nil {
		return fmt.Sprintf("clusterprofile %s/%s", d.Namespace, ref.Name)
	}
	return fmt.Sprintf("secret %s/%s", d.Namespace, d.Spec.Target.ClusterReference.KubeConfig.SecretRef.Name)
}

// kubeconfigOfProfile reads a ClusterProfile and the Secret that it names.
func kubeconfigOfProfile(ctx context.Context, local *tenant.Client, d *v1alpha1.BundleDeployment, named string) ([]byte, error) {
	data, err := clusterprofile.Read(ctx, local, d.Namespace, d.Spec.Target.ClusterReference.ClusterProfileRef)
	var unusable *clusterprofile.Error
	switch {
	case errors.As(err, &unusable) && unusable.Missing:
		return nil, failure.Error{Reason: v1alpha1.ReasonKubeConfigNotFound, Err: fmt.Errorf("%s: %w", named, err)}
	case errors.As(err, &unusable):
		return nil, failure.Error{Reason: v1alpha1.ReasonKubeConfigRefused, Stalled: true, Err: fmt.Errorf("%s: %w", named, err)}
	case err != nil:
		return nil, fmt.Errorf("%s: %w", named, err)
	}
	return data, nil
}

// kubeconfig reads the Secret, or the ClusterProfile.
func kubeconfig(ctx context.Context, local *tenant.Client, d *v1alpha1.BundleDeployment, named string) ([]byte, error) {
	if d.Spec.Target.ClusterReference.ClusterProfileRef != nil {
		return kubeconfigOfProfile(ctx, local, d, named)
	}
	ref := d.Spec.Target.ClusterReference.KubeConfig.SecretRef
	secret, err := local.Get(ctx, tenant.Ref{Resource: secretResource, Namespace: d.Namespace, Name: ref.Name})
	switch {
	case apierrors.IsNotFound(err):
		return nil, failure.Error{Reason: v1alpha1.ReasonKubeConfigNotFound, Err: fmt.Errorf("%s does not exist: create it, or correct spec.target.kubeConfig", named)}
	case apierrors.IsForbidden(err):
		return nil, failure.Error{Reason: v1alpha1.ReasonKubeConfigNotFound, Err: fmt.Errorf(
			"serviceaccount %s may not get %s, which holds the kubeconfig: grant it", local.Identity(), named)}
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", named, err)
	}
	keys := []string{ref.Key}
	if ref.Key == "" {
		keys = []string{"value", "value.yaml"}
	}
	for _, key := range keys {
		if text, found, _ := unstructured.NestedString(secret.Object, "data", key); found {
			return base64.StdEncoding.DecodeString(text)
		}
	}
	return nil, failure.Error{Reason: v1alpha1.ReasonKubeConfigNotFound, Err: fmt.Errorf("%s has no key %q: add it, or correct spec.target.kubeConfig.secretRef.key", named, keys[0])}
}

// Identify returns the ID of the cluster that the client of a deployment reaches.
func (r Accounts) Identify(ctx context.Context, a stage.Access) (string, error) {
	own, err := r.Tenants.Target(ctx)
	if err != nil || a.Remote == "" {
		return own, err
	}
	there, err := a.Client.Target(ctx)
	if err != nil {
		return "", remoteFailure(a, err)
	}
	if there == own && !r.OwnCluster {
		return "", failure.Error{Reason: v1alpha1.ReasonKubeConfigRefused, Stalled: true, Err: fmt.Errorf(
			"%s: the server %s is the cluster that the controller runs in: remove kubeConfig or clusterProfileRef from spec.target to install there", a.Remote, a.Client.Identity().Host)}
	}
	return there, nil
}

// remoteFailure classifies the error of a remote cluster that could not be identified.
// The first line that holds decides.
//
//	the address lists forbid the server         KubeConfigRefused
//	no answer                                   ClusterUnreachable
//	unauthenticated, or not permitted to impersonate or to get the cluster's ID   ClusterDenied
//	any other answer                            ClusterUnreachable
func remoteFailure(a stage.Access, err error) error {
	id := a.Client.Identity()
	var unreachable *connection.UnreachableError
	switch {
	case fetch.ReasonOf(err) == fetch.Refused && errors.As(err, &unreachable):
		return failure.Error{Reason: v1alpha1.ReasonKubeConfigRefused, Stalled: true, Err: fmt.Errorf("%s: %w", a.Remote, unreachable)}
	case errors.As(err, &unreachable):
		return failure.Error{Reason: v1alpha1.ReasonClusterUnreachable, Err: fmt.Errorf("%s: %w", a.Remote, unreachable)}
	case apierrors.IsUnauthorized(err):
		return failure.Error{Reason: v1alpha1.ReasonClusterDenied, Err: fmt.Errorf(
			"%s: the API server %s does not accept the credentials: renew them", a.Remote, id.Host)}
	case apierrors.IsForbidden(err):
		return failure.Error{Reason: v1alpha1.ReasonClusterDenied, Err: fmt.Errorf(
			"%s: %s has to be allowed to get the namespace kube-system there, which identifies the cluster%s: %w", a.Remote, id, orImpersonate(a), err)}
	}
	return failure.Error{Reason: v1alpha1.ReasonClusterUnreachable, Err: fmt.Errorf("%s: the API server %s: %w", a.Remote, id.Host, err)}
}

func orImpersonate(a stage.Access) string {
	if a.Client.Identity().ServiceAccount == "" {
		return ""
	}
	return ", and the user of the kubeconfig to impersonate it"
}

// AsRemoteFailure reports a step that failed because a remote cluster did not answer as
// unreachable.
func AsRemoteFailure(a stage.Access, err error) error {
	var unreachable *connection.UnreachableError
	var known failure.Error
	var failed *pipeline.StepError
	if a.Remote != "" && errors.As(err, &failed) && !errors.As(err, &known) && errors.As(err, &unreachable) {
		return &pipeline.StepError{Step: failed.Step, Err: remoteFailure(a, err)}
	}
	return err
}

// WayOut says what the user can do if the objects of a deployment are out of reach.
func WayOut(d *v1alpha1.BundleDeployment) string {
	if d.DeletionTimestamp.IsZero() {
		return "create another BundleDeployment"
	}
	return "annotate this one with " + v1alpha1.AbandonAnnotation + "=now"
}
