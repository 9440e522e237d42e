// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/fetch"
)

// kubeconfigPause is the pause before an unusable kubeconfig is read again.
const kubeconfigPause = 5 * time.Second

// remoteClient gets the client for the cluster of spec.kubeConfig. The Secret is read on
// this cluster each time, impersonating the deployment's ServiceAccount: a changed
// kubeconfig makes another client.
func (r *Reconciler) remoteClient(ctx context.Context, s *state) error {
	named := fmt.Sprintf("secret %s/%s", s.object.Namespace, s.object.Spec.KubeConfig.SecretRef.Name)
	data, err := r.kubeconfig(ctx, s, named)
	if err != nil {
		return err
	}
	parsed, err := tenant.ParseKubeconfig(data)
	var refused *tenant.KubeconfigError
	if errors.As(err, &refused) {
		return failure{reason: v1alpha1.ReasonKubeConfigRefused, stalled: true, err: fmt.Errorf("%s: %w", named, err)}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", named, err)
	}
	client, err := r.Remotes.Client(parsed, s.object.Namespace, s.object.Spec.RemoteServiceAccountName)
	if err != nil {
		return fmt.Errorf("%s: %w", named, err)
	}
	s.resolved.client = client.For(s.object.Name)
	s.resolved.remote = named
	return nil
}

// kubeconfig reads the Secret.
func (r *Reconciler) kubeconfig(ctx context.Context, s *state, named string) ([]byte, error) {
	ref := s.object.Spec.KubeConfig.SecretRef
	secret, err := s.resolved.client.Get(ctx, tenant.Ref{Resource: secrets, Namespace: s.object.Namespace, Name: ref.Name})
	switch {
	case apierrors.IsNotFound(err):
		return nil, failure{reason: v1alpha1.ReasonKubeConfigNotFound, err: fmt.Errorf("%s does not exist: create it, or correct spec.kubeConfig", named)}
	case apierrors.IsForbidden(err):
		return nil, failure{reason: v1alpha1.ReasonKubeConfigNotFound, err: fmt.Errorf(
			"serviceaccount %s may not get %s, which holds the kubeconfig: grant it", s.resolved.client.Identity(), named)}
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
	return nil, failure{reason: v1alpha1.ReasonKubeConfigNotFound, err: fmt.Errorf("%s has no key %q: add it, or correct spec.kubeConfig.secretRef.key", named, keys[0])}
}

// identify returns the ID of the cluster that the deployment's client reaches.
func (r *Reconciler) identify(ctx context.Context, s *state) (string, error) {
	own, err := r.Tenants.Target(ctx)
	if err != nil || s.resolved.remote == "" {
		return own, err
	}
	there, err := s.resolved.client.Target(ctx)
	if err != nil {
		return "", s.remoteFailure(err)
	}
	if there == own && !r.OwnCluster {
		return "", failure{reason: v1alpha1.ReasonKubeConfigRefused, stalled: true, err: fmt.Errorf(
			"%s: the server %s is the cluster that the controller runs in: leave spec.kubeConfig out to install there", s.resolved.remote, s.resolved.client.Identity().Host)}
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
func (s *state) remoteFailure(err error) error {
	id := s.resolved.client.Identity()
	var unreachable *tenant.UnreachableError
	switch {
	case fetch.ReasonOf(err) == fetch.Refused && errors.As(err, &unreachable):
		return failure{reason: v1alpha1.ReasonKubeConfigRefused, stalled: true, err: fmt.Errorf("%s: %w", s.resolved.remote, unreachable)}
	case errors.As(err, &unreachable):
		return failure{reason: v1alpha1.ReasonClusterUnreachable, err: fmt.Errorf("%s: %w%s", s.resolved.remote, unreachable, s.goneForGood())}
	case apierrors.IsUnauthorized(err):
		return failure{reason: v1alpha1.ReasonClusterDenied, err: fmt.Errorf(
			"%s: the API server %s does not accept the credentials: renew them", s.resolved.remote, id.Host)}
	case apierrors.IsForbidden(err):
		return failure{reason: v1alpha1.ReasonClusterDenied, err: fmt.Errorf(
			"%s: %s has to be allowed to get the namespace kube-system there, which identifies the cluster%s: %w", s.resolved.remote, id, s.orImpersonate(), err)}
	}
	return failure{reason: v1alpha1.ReasonClusterUnreachable, err: fmt.Errorf("%s: the API server %s: %w", s.resolved.remote, id.Host, err)}
}

// goneForGood says what to do about a removal when its cluster is gone for good.
func (s *state) goneForGood() string {
	if s.object.DeletionTimestamp.IsZero() {
		return ""
	}
	return "; if that cluster is gone for good, " + s.wayOut()
}

func (s *state) orImpersonate() string {
	if s.resolved.client.Identity().ServiceAccount == "" {
		return ""
	}
	return ", and the user of the kubeconfig to impersonate it"
}

// asRemoteFailure reports a step that failed because a remote cluster did not answer as
// unreachable.
func (s *state) asRemoteFailure(err error) error {
	var unreachable *tenant.UnreachableError
	var known failure
	var failed *pipeline.StepError
	if s.resolved.remote != "" && errors.As(err, &failed) && !errors.As(err, &known) && errors.As(err, &unreachable) {
		return &pipeline.StepError{Step: failed.Step, Err: s.remoteFailure(err)}
	}
	return err
}

// unusable tells whether a failure needs another kubeconfig or other permissions.
func unusable(reason string) bool {
	switch reason {
	case v1alpha1.ReasonKubeConfigNotFound, v1alpha1.ReasonKubeConfigRefused, v1alpha1.ReasonClusterDenied:
		return true
	}
	return false
}

// crowdPause is the pause of a deployment when all places for remote clusters are
// taken.
const crowdPause = 500 * time.Millisecond

// turn takes a turn for a deployment, so that many deployments or reconcile requests of one
// namespace do not block other namespaces. Without a turn the reconcile ends, and is repeated
// after the pause; if that is zero it is queued when its turn has come.
func (r *Reconciler) turn(d *v1alpha1.BundleDeployment) (done func(), pause time.Duration, ok bool) {
	share, ok := r.shares.Take(client.ObjectKeyFromObject(d))
	if !ok {
		return nil, 0, false
	}
	pass, pause, ok := r.remoteTurn(d)
	if !ok {
		share()
		return nil, pause, false
	}
	return func() { pass(); share() }, 0, true
}

// remoteTurn takes a second turn for a deployment to another cluster, so that clusters that do
// not answer never block all workers, nor those of one namespace half of them. Other
// deployments need none.
func (r *Reconciler) remoteTurn(d *v1alpha1.BundleDeployment) (done func(), pause time.Duration, ok bool) {
	key := client.ObjectKeyFromObject(d)
	if d.Spec.KubeConfig == nil {
		r.turns.Drop(key)
		return func() {}, 0, true
	}
	pass, ok := r.turns.Take(key)
	switch {
	case !ok:
		return nil, 0, false
	case r.remotely == nil:
		return pass, 0, true
	case !r.remotely.TryAcquire(1):
		pass()
		return nil, crowdPause, false
	}
	return func() { r.remotely.Release(1); pass() }, 0, true
}
