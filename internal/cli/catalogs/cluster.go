// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/runtime/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/check"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/view"
)

// Seen is a BundleCatalog that a namespace sees.
type Seen struct {
	*v1alpha1.BundleCatalog

	Shared   bool // it is one of all namespaces
	Shadowed bool // a catalog of the namespace has the same name
}

// clusterReader reads catalogs of the cluster. It connects when it is first used.
type clusterReader struct {
	app      *kit.App
	flags    *Flags
	searcher *v1alpha1.BundleDeployment // that the catalogs are read for; nil for none
	explorer *kit.Explorer
	// namespace that sees the catalogs; "" for that of the searcher, or of the command.
	namespace string
	seen      []Seen
	looked    bool
}

// all opens all catalogs that the namespace sees and that serve something.
func (r *clusterReader) all(ctx context.Context, set *Set) error {
	seen, err := r.visible(ctx)
	if errors.Is(err, clientcmd.ErrEmptyConfig) {
		return errors.New("no catalog is given: use --catalog NAME=PATH, or choose a cluster with --kubeconfig to read its BundleCatalogs")
	}
	if err != nil {
		return err
	}
	selects, err := r.selection()
	if err != nil {
		return err
	}
	for _, s := range seen {
		switch {
		case s.Shadowed || !selects(s):
		case r.withdrawn(s):
			return servesNothing(s)
		case s.Status.Content == nil:
			r.app.Note([]string{fmt.Sprintf("BundleCatalog %s/%s is left out, since it serves nothing: see the command status catalog %s", s.Namespace, s.Name, s.Name)})
		default:
			if err := r.add(set, s); err != nil {
				return err
			}
		}
	}
	if len(set.catalogs) == 0 {
		return r.nothing(len(seen) > 0)
	}
	return nil
}

// withdrawn tells whether a catalog serves nothing any more because its signature is not trusted: a deployment waits for it.
func (r *clusterReader) withdrawn(s Seen) bool {
	return r.searcher != nil && s.Status.Content == nil && conditions.IsFalse(s, v1alpha1.SourceVerifiedCondition)
}

// nothing says why no catalog is searched.
func (r *clusterReader) nothing(seen bool) error {
	if seen && r.searcher != nil && r.searcher.Spec.Catalog.CatalogSelector != nil {
		return fmt.Errorf("no BundleCatalog that the namespace %q sees serves something and has the labels of spec.catalog.catalogSelector: create one, or correct the labels", r.explorer.Namespace)
	}
	return fmt.Errorf("the namespace %q sees no BundleCatalog that serves something: create one, or give --catalog NAME=PATH", r.explorer.Namespace)
}

// one opens the catalog with a name. One that serves nothing is an error, not a catalog without packages.
func (r *clusterReader) one(ctx context.Context, set *Set, name string) error {
	seen, err := r.visible(ctx)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(seen, func(s Seen) bool { return s.Name == name && !s.Shadowed })
	if at < 0 {
		missing := r.explorer.NotFound(ctx, kit.Target{Kind: kit.Catalogs, Name: name})
		return fmt.Errorf("%w; a folder or image is given as --catalog %s=PATH", missing, name)
	}
	if seen[at].Status.Content == nil {
		return servesNothing(seen[at])
	}
	return r.add(set, seen[at])
}

func servesNothing(s Seen) error {
	return fmt.Errorf("BundleCatalog %s/%s serves nothing: %s", s.Namespace, s.Name, view.OneLine(view.Summarize(s.BundleCatalog).Text(), 0))
}

// add opens a catalog that serves something.
func (r *clusterReader) add(set *Set, s Seen) error {
	served, err := newServed(r.app, r.explorer.Config, s.BundleCatalog)
	if err != nil {
		return err
	}
	set.cluster = r.explorer
	set.catalogs = append(set.catalogs, opened{name: s.Name, priority: s.Spec.Priority, content: served})
	return nil
}

// visible lists the catalogs that the namespace sees, once.
func (r *clusterReader) visible(ctx context.Context) ([]Seen, error) {
	if r.looked {
		return r.seen, nil
	}
	x, err := r.app.Explore()
	if err != nil {
		return nil, err
	}
	r.explorer, r.looked = x, true
	if r.searcher != nil {
		x.Namespace = cmp.Or(r.searcher.Namespace, x.Namespace)
	}
	x.Namespace = cmp.Or(r.namespace, x.Namespace)
	shared, err := r.flags.sharedNamespace(ctx, x)
	if err != nil {
		r.app.Note([]string{err.Error()})
	}
	r.seen, err = Visible(ctx, x.Cluster, shared)
	return r.seen, err
}

// Visible lists the catalogs that the namespace of the cluster sees, in order of name; those of the shared namespace behind its
// own ones. Without a shared namespace ("") these are its own.
func Visible(ctx context.Context, c *kit.Cluster, shared string) ([]Seen, error) {
	own, err := catalogsOf(ctx, c, c.Namespace)
	if err != nil {
		return nil, err
	}
	var seen []Seen
	for i := range own {
		seen = append(seen, Seen{BundleCatalog: &own[i], Shared: c.Namespace == shared})
	}
	if shared != "" && shared != c.Namespace {
		all, err := catalogsOf(ctx, c, shared)
		if err != nil {
			return nil, err
		}
		for i := range all {
			shadowed := slices.ContainsFunc(own, func(o v1alpha1.BundleCatalog) bool { return o.Name == all[i].Name })
			seen = append(seen, Seen{BundleCatalog: &all[i], Shared: true, Shadowed: shadowed})
		}
	}
	slices.SortStableFunc(seen, func(a, b Seen) int { return strings.Compare(a.Name, b.Name) })
	return seen, nil
}

func catalogsOf(ctx context.Context, c *kit.Cluster, namespace string) ([]v1alpha1.BundleCatalog, error) {
	var list v1alpha1.BundleCatalogList
	if err := c.Client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, &kit.AccessError{Verb: "list", Resource: kit.Catalogs.Resource, Namespace: namespace, Err: err}
	}
	return list.Items, nil
}

// List lists the catalogs that the namespace sees, and with everywhere those of all namespaces. A Warning says if shared ones are
// not known.
func (f *Flags) List(ctx context.Context, a *kit.App, everywhere bool) ([]Seen, error) {
	r := &clusterReader{app: a, flags: f}
	if !everywhere {
		return r.visible(ctx)
	}
	x, err := a.Explore()
	if err != nil {
		return nil, err
	}
	shared, err := f.sharedNamespace(ctx, x)
	if err != nil {
		a.Note([]string{err.Error()})
	}
	all, err := catalogsOf(ctx, x.Cluster, metav1.NamespaceAll)
	if err != nil {
		return nil, err
	}
	var seen []Seen
	for i := range all {
		seen = append(seen, Seen{BundleCatalog: &all[i], Shared: all[i].Namespace == shared})
	}
	return seen, nil
}

// sharedFlag is the flag of the source controller.
const sharedFlag = "--shared-catalog-namespace="

// sharedNamespace is the namespace with shared catalogs; "" for none. The flag of the command decides, or else that of the source
// controller.
func (f *Flags) sharedNamespace(ctx context.Context, x *kit.Explorer) (string, error) {
	if f.shared != "" {
		return f.shared, nil
	}
	list, err := x.Bodies.Resource(check.WorkloadsResource).Namespace(f.system).List(ctx, metav1.ListOptions{LabelSelector: check.PartOfSatchel})
	switch {
	case apierrors.IsForbidden(err):
		return "", fmt.Errorf("catalogs that all namespaces share are not known, since you may not list the Deployments of the namespace %s: name their namespace with --shared-catalog-namespace", f.system)
	case err != nil:
		return "", fmt.Errorf("catalogs that all namespaces share are not known: listing the Deployments of the namespace %s: %w", f.system, err)
	}
	for i := range list.Items {
		if strings.HasPrefix(list.Items[i].GetLabels()["app.kubernetes.io/name"], check.ControllerNames[0]) {
			if shared := argument(&list.Items[i], sharedFlag); shared != "" {
				return shared, nil
			}
		}
	}
	return "", nil
}

// argument is the value of a flag of a Deployment's containers.
func argument(workload *unstructured.Unstructured, flag string) string {
	containers, _, _ := unstructured.NestedSlice(workload.Object, "spec", "template", "spec", "containers")
	for _, c := range containers {
		one, _ := c.(map[string]any)
		arguments, _, _ := unstructured.NestedStringSlice(one, "args")
		for _, argument := range arguments {
			if value, found := strings.CutPrefix(argument, flag); found {
				return value
			}
		}
	}
	return ""
}
