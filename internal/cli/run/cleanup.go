// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/remove"
	"github.com/satchel-dev/satchel/internal/view"
)

// cleanupTimeout is how long removing may take without a flag.
const cleanupTimeout = 10 * time.Minute

// cleanupOptions are the flags of cleanup.
type cleanupOptions struct {
	name             string
	timeout          time.Duration
	installNamespace string // known to run; searched where the user may not list all namespaces
}

// CleanupCommand returns the command cleanup.
func CleanupCommand(a *kit.App) *cobra.Command {
	o := cleanupOptions{}
	cmd := &cobra.Command{
		Use:     "cleanup NAME",
		GroupID: kit.GroupAuthor,
		Short:   "Remove what the run command created",
		Long: `Deletes the BundleDeployment that run created, waits until it is gone with all that it installed, and then deletes the
BundleSource, and the ServiceAccount and its RBAC if run created them. It lists what stays, and why: CRDs stay as with
delete, and so do namespaces, which may be in use by now. Objects that run did not create are not changed.

While the BundleDeployment is not gone, its ServiceAccount is kept, because the removal needs it; repeat cleanup then.

Exit codes:

    0    gone, or there was nothing
    1    not gone within --timeout
    2    failed: not created by run, no access
    130  interrupted by Ctrl-C (what was begun goes on)`,
		Example: a.Example(`
# After run greeter
satchel cleanup greeter`),
		ValidArgsFunction: a.CompleteOne(kit.Deployments),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return kit.UsageError(cmd, "cleanup needs the name of one run, got %s", kit.Given(args))
			}
			o.name = args[0]
			x, err := a.Explore()
			if err != nil {
				return err
			}
			return cleanup(cmd.Context(), a, x, o)
		},
	}
	cmd.Flags().DurationVar(&o.timeout, "timeout", cleanupTimeout, "How long to wait.")
	return cmd
}

// cleanup removes what a run created, in the order that the removal needs.
func cleanup(ctx context.Context, a *kit.App, x *kit.Explorer, o cleanupOptions) error {
	r := &run{App: a, Explorer: x, options: runOptions{name: o.name, installNamespace: o.installNamespace}}
	waiting, cancel := context.WithTimeoutCause(ctx, o.timeout, kit.ErrTooLong)
	defer cancel()
	found, err := r.removeDeployment(waiting, o)
	if err != nil {
		return err
	}
	removed, err := r.removeSource(waiting, o)
	if err != nil {
		return err
	}
	others, stays, err := r.removeOthers(waiting)
	if err != nil {
		return err
	}
	if !found && !removed && others == 0 {
		fmt.Fprintf(a.Streams.Out, "Nothing is left of a run %s in the namespace %s.\n", o.name, x.Namespace)
	}
	for _, line := range stays {
		fmt.Fprintf(a.Streams.Out, "Kept: %s\n", line)
	}
	a.NoteOmitted(x.Omitted.List())
	return nil
}

// removeDeployment deletes the BundleDeployment and waits; it tells whether there was one.
func (r *run) removeDeployment(ctx context.Context, o cleanupOptions) (bool, error) {
	t := kit.Target{Kind: kit.Deployments, Name: o.name}
	d := new(v1alpha1.BundleDeployment)
	if there, err := r.made(ctx, t, d); err != nil || !there {
		return false, err
	}
	how := remove.DeleteOptions{Yes: true, Wait: true, Timeout: o.timeout}
	f, err := remove.RemovalPlanOf(ctx, r.Explorer, d, remove.RemovalPolicyOf(&d.Spec, how), false)
	if err != nil {
		return true, err
	}
	if err := remove.BeginDeletion(ctx, r.App, r.Explorer, how, d, f); err != nil {
		return true, err
	}
	if err := remove.AwaitGone(ctx, r.App, r.Explorer, how, t); err != nil {
		return true, err
	}
	for _, kept := range slices.Concat(f.Stays, f.Unknown) {
		fmt.Fprintf(r.Streams.Out, "Kept: %s %s: %s\n", kept.KindText(), kept.Place(), view.Inline(kept.Why))
	}
	return true, nil
}

// removeSource deletes the BundleSource and waits; it tells whether there was one.
func (r *run) removeSource(ctx context.Context, o cleanupOptions) (bool, error) {
	t := kit.Target{Kind: kit.Sources, Name: o.name}
	s := new(v1alpha1.BundleSource)
	if there, err := r.made(ctx, t, s); err != nil || !there {
		return false, err
	}
	if err := client.IgnoreNotFound(r.Client.Delete(ctx, s, client.Preconditions{UID: &s.UID})); err != nil {
		return true, &kit.AccessError{Verb: "delete", Resource: kit.Sources.Resource, Namespace: r.Namespace, Err: err}
	}
	return true, r.WaitFor(ctx, t, o.timeout, func() (kit.WaitState, error) {
		err := r.Client.Get(ctx, client.ObjectKeyFromObject(s), new(v1alpha1.BundleSource))
		if kit.IsObjectNotFound(err) {
			return kit.WaitState{Done: true, Text: "gone"}, nil
		}
		return kit.WaitState{Text: "it is being deleted"}, err
	})
}

// made reads an object of the run, and tells whether it exists. One that run did not make is an error.
func (r *run) made(ctx context.Context, t kit.Target, into view.Object) (bool, error) {
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: t.Name}, into)
	switch {
	case kit.IsObjectNotFound(err):
		return false, nil
	case err != nil:
		return false, &kit.AccessError{Verb: "get", Resource: t.Kind.Resource, Namespace: r.Namespace, Err: err}
	case into.GetLabels()[runLabel] != t.Name:
		return false, fmt.Errorf("the %s %s/%s was not created by run: nothing was deleted; use the command delete to remove it", t.Kind.Name, r.Namespace, t.Name)
	}
	return true, nil
}

// accountKinds are the kinds of the ServiceAccount and its RBAC, in the order in which they are deleted.
var accountKinds = []string{"ClusterRoleBinding", "RoleBinding", "ClusterRole", "Role", "ServiceAccount"}

// removeOthers deletes the ServiceAccount and its RBAC. Namespaces stay, because others may use them by now.
func (r *run) removeOthers(ctx context.Context) (removed int, stays []string, err error) {
	for _, kind := range accountKinds {
		for _, o := range r.labelledObjects(ctx, kind) {
			uid := o.GetUID()
			err := r.Bodies.Resource(resourcesOfRun[kind]).Namespace(o.GetNamespace()).Delete(ctx, o.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
			if err != nil && !apierrors.IsNotFound(err) {
				return removed, nil, fmt.Errorf("deleting %s %s: %w", kind, objectPlace(&o), err)
			}
			removed++
			fmt.Fprintf(r.Streams.Out, "%s %s: gone\n", kind, objectPlace(&o))
		}
	}
	for _, o := range r.labelledObjects(ctx, "Namespace") {
		stays = append(stays, fmt.Sprintf("Namespace %s, which run made and others may use by now: kubectl delete namespace %s", o.GetName(), o.GetName()))
	}
	return removed, stays, nil
}

// labelledObjects are the objects of a kind that this run created: in all namespaces, or in the known ones where the user may
// not list all.
func (r *run) labelledObjects(ctx context.Context, kind string) []unstructured.Unstructured {
	resource := resourcesOfRun[kind]
	options := metav1.ListOptions{LabelSelector: runLabel + "=" + r.options.name + "," + runNamespaceLabel + "=" + r.Namespace}
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
	for _, namespace := range slices.Compact([]string{r.Namespace, r.options.installNamespace}) {
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
