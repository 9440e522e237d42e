// SPDX-License-Identifier: Apache-2.0

package remove

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/view"
)

// Labels of objects that the command run creates: the name of the run, and the namespace of its BundleDeployment.
const (
	RunLabel          = "satchel.dev/run"
	RunNamespaceLabel = "satchel.dev/run-namespace"
)

// RunResources are the kinds of objects that the command run creates.
var RunResources = map[string]schema.GroupVersionResource{
	v1alpha1.BundleDeploymentKind: v1alpha1.GroupVersion.WithResource(kit.Deployments.Resource),
	v1alpha1.BundleSourceKind:     v1alpha1.GroupVersion.WithResource(kit.Sources.Resource),
	"Namespace":                   {Version: "v1", Resource: "namespaces"},
	"ServiceAccount":              {Version: "v1", Resource: "serviceaccounts"},
	"Role":                        {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
	"RoleBinding":                 {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
	"ClusterRole":                 {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
	"ClusterRoleBinding":          {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
}

// RunObjects are the objects that the command run created beside a BundleDeployment.
type RunObjects struct {
	*kit.App
	*kit.Explorer

	Name             string
	InstallNamespace string // where roles are looked for if the user may not list all namespaces; "" if it is not known
}

// IsOfRun tells whether an object was created by the run with the name of a deployment.
func IsOfRun(o metav1.Object, name string) bool { return o.GetLabels()[RunLabel] == name }

// Run deletes a deployment that the command run created, without asking, and then all that run created beside it.
func Run(ctx context.Context, a *kit.App, x *kit.Explorer, name, installNamespace string, timeout time.Duration) error {
	waiting, cancel := context.WithTimeoutCause(ctx, timeout, kit.ErrTooLong)
	defer cancel()
	o := DeleteOptions{Yes: true, Wait: true, Timeout: timeout}
	d, err := x.Deployment(waiting, kit.Target{Kind: kit.Deployments, Name: name})
	var missing *kit.NotFoundError
	switch {
	case errors.As(err, &missing):
	case err != nil:
		return err
	case IsOfRun(d, name):
		if err := removeAndWait(waiting, a, x, o, d); err != nil {
			return err
		}
	default:
		return nil // of another user, who created it in the meantime
	}
	_, err = RunObjects{App: a, Explorer: x, Name: name, InstallNamespace: installNamespace}.Remove(waiting, timeout)
	return err
}

// removeAndWait deletes a deployment, waits until it is gone, and names what stays.
func removeAndWait(ctx context.Context, a *kit.App, x *kit.Explorer, o DeleteOptions, d *v1alpha1.BundleDeployment) error {
	f, err := RemovalPlanOf(ctx, x, d, RemovalPolicyOf(&d.Spec, o), false)
	if err != nil {
		return err
	}
	if err := BeginDeletion(ctx, a, x, o, d, f); err != nil {
		return err
	}
	if err := AwaitGone(ctx, a, x, o, kit.Target{Kind: kit.Deployments, Name: d.Name}); err != nil {
		return err
	}
	for _, kept := range slices.Concat(f.Stays, f.Unknown) {
		fmt.Fprintf(a.Streams.Out, "Kept: %s %s: %s\n", kept.KindText(), kept.Place(), view.Inline(kept.Why))
	}
	return nil
}

// Remove deletes the BundleSource, the ServiceAccount and its RBAC, after their deployment is gone, which needs them. It
// returns how many objects it deleted. Namespaces stay, because others may use them by now; they are named.
func (r RunObjects) Remove(ctx context.Context, timeout time.Duration) (removed int, err error) {
	gone, err := r.removeSource(ctx, timeout)
	if err != nil {
		return 0, err
	}
	if gone {
		removed++
	}
	others, stays, err := r.removeOthers(ctx)
	if err != nil {
		return removed, err
	}
	for _, line := range stays {
		fmt.Fprintf(r.Streams.Out, "Kept: %s\n", line)
	}
	r.NoteOmitted(r.Omitted.List())
	return removed + others, nil
}

// removeSource deletes the BundleSource of the run and waits; it tells whether there was one.
func (r RunObjects) removeSource(ctx context.Context, timeout time.Duration) (bool, error) {
	t := kit.Target{Kind: kit.Sources, Name: r.Name}
	s := new(v1alpha1.BundleSource)
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: t.Name}, s)
	switch {
	case kit.IsObjectNotFound(err), err == nil && !IsOfRun(s, r.Name):
		return false, nil
	case err != nil:
		return false, &kit.AccessError{Verb: "get", Resource: t.Kind.Resource, Namespace: r.Namespace, Err: err}
	}
	if err := client.IgnoreNotFound(r.Client.Delete(ctx, s, client.Preconditions{UID: &s.UID})); err != nil {
		return true, &kit.AccessError{Verb: "delete", Resource: kit.Sources.Resource, Namespace: r.Namespace, Err: err}
	}
	return true, r.WaitFor(ctx, t, timeout, func() (kit.WaitState, error) {
		err := r.Client.Get(ctx, client.ObjectKeyFromObject(s), new(v1alpha1.BundleSource))
		if kit.IsObjectNotFound(err) {
			return kit.WaitState{Done: true, Text: "gone"}, nil
		}
		return kit.WaitState{Text: "it is being deleted"}, err
	})
}

// accountKinds are the kinds of the ServiceAccount and its RBAC, in the order in which they are deleted.
var accountKinds = []string{"ClusterRoleBinding", "RoleBinding", "ClusterRole", "Role", "ServiceAccount"}

// removeOthers deletes the ServiceAccount and its RBAC. Namespaces stay, because others may use them by now.
func (r RunObjects) removeOthers(ctx context.Context) (removed int, stays []string, err error) {
	for _, kind := range accountKinds {
		for _, o := range r.labelledObjects(ctx, kind) {
			uid := o.GetUID()
			err := r.Bodies.Resource(RunResources[kind]).Namespace(o.GetNamespace()).Delete(ctx, o.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
			if err != nil && !apierrors.IsNotFound(err) {
				return removed, nil, fmt.Errorf("deleting %s %s: %w", kind, PlaceOf(&o), err)
			}
			removed++
			fmt.Fprintf(r.Streams.Out, "%s %s: gone\n", kind, PlaceOf(&o))
		}
	}
	for _, o := range r.labelledObjects(ctx, "Namespace") {
		stays = append(stays, fmt.Sprintf("Namespace %s, which run made and others may use by now: kubectl delete namespace %s", o.GetName(), o.GetName()))
	}
	return removed, stays, nil
}

// labelledObjects are the objects of a kind that this run created: in all namespaces, or in the known ones where the user may
// not list all.
func (r RunObjects) labelledObjects(ctx context.Context, kind string) []unstructured.Unstructured {
	resource := RunResources[kind]
	options := metav1.ListOptions{LabelSelector: RunLabel + "=" + r.Name + "," + RunNamespaceLabel + "=" + r.Namespace}
	list, err := r.Bodies.Resource(resource).List(ctx, options)
	if err == nil {
		return list.Items
	}
	namespaced := kind == "Role" || kind == "RoleBinding" || kind == "ServiceAccount"
	if !apierrors.IsForbidden(err) || !namespaced {
		if !apierrors.IsForbidden(err) || strings.HasSuffix(kind, "Binding") {
			r.Unreadable("list", resource, "", err)
		}
		return nil
	}
	var items []unstructured.Unstructured
	var failures []error
	for _, namespace := range slices.Compact([]string{r.Namespace, r.InstallNamespace}) {
		if namespace == "" {
			continue
		}
		list, err := r.Bodies.Resource(resource).Namespace(namespace).List(ctx, options)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		items = append(items, list.Items...)
	}
	if failed := errors.Join(failures...); failed != nil {
		r.Unreadable("list", resource, r.Namespace, failed)
	}
	return items
}

// PlaceOf is the name of an object with its namespace.
func PlaceOf(o *unstructured.Unstructured) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}
