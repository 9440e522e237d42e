// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/artifact/packages"
)

// Follower wakes the deployments that a change of a BundleCatalog concerns: all that see it if it is new, deleted, or has another
// priority, labels or readiness, and else those of the packages with another digest.
type Follower struct {
	Reader   client.Reader
	Packages *packages.Reader
	Shared   string
	Wake     func(key types.NamespacedName, pause time.Duration)

	mu     sync.Mutex
	traits map[catalogKey]traits
	// digests are those that deployments have looked at, or were woken for.
	digests map[packageOf]string
}

// catalogKey is the namespace and name of a BundleCatalog; memory of deployments is keyed by types.NamespacedName.
type catalogKey types.NamespacedName

type packageOf struct {
	catalog types.NamespacedName
	name    string
}

// traits are what of a catalog concerns all packages.
type traits struct {
	priority int32
	labels   map[string]string
	serves   bool
	trusted  bool
}

func traitsOf(c *v1alpha1.BundleCatalog) traits {
	return traits{
		priority: c.Spec.Priority, labels: c.Labels, serves: c.Status.Content != nil,
		trusted: !conditions.IsFalse(c, v1alpha1.SourceVerifiedCondition),
	}
}

func (t traits) equal(other traits) bool {
	return t.priority == other.priority && t.serves == other.serves && t.trusted == other.trusted && maps.Equal(t.labels, other.labels)
}

// SetupWithManager registers the follower, if the process reads packages.
func (f *Follower) SetupWithManager(mgr ctrl.Manager) error {
	if f.Packages == nil {
		return nil
	}
	return ctrl.NewControllerManagedBy(mgr).Named("bundlecatalog-follower").
		For(&v1alpha1.BundleCatalog{}, builder.WithPredicates(changed())).
		Complete(f)
}

// changed passes what may concern a deployment.
func changed() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.BundleCatalog)
		after, fine := e.ObjectNew.(*v1alpha1.BundleCatalog)
		if !ok || !fine {
			return true
		}
		return !traitsOf(before).equal(traitsOf(after)) || contentOf(before) != contentOf(after)
	}}
}

func contentOf(c *v1alpha1.BundleCatalog) string {
	if c.Status.Content == nil {
		return ""
	}
	return c.Status.Content.Digest
}

// Saw notes the digest of a package that a deployment looked at, unless one is known: then only Reconcile replaces it.
func (f *Follower) Saw(catalog types.NamespacedName, name, digest string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.digests == nil {
		f.digests = map[packageOf]string{}
	}
	if _, known := f.digests[packageOf{catalog, name}]; !known {
		f.digests[packageOf{catalog, name}] = digest
	}
}

// Reconcile wakes the deployments that a catalog concerns.
func (f *Follower) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	key := request.NamespacedName
	var c v1alpha1.BundleCatalog
	err := f.Reader.Get(ctx, key, &c)
	gone := apierrors.IsNotFound(err)
	if err != nil && !gone {
		return ctrl.Result{}, fmt.Errorf("reading bundlecatalog %s: %w", key, err)
	}
	users, err := f.users(ctx, key)
	if err != nil {
		return ctrl.Result{}, err
	}
	if gone {
		f.forget(key)
		f.wakeAll(users)
		return ctrl.Result{}, f.Packages.Forget(key.Namespace, key.Name)
	}
	if f.newTraits(key, traitsOf(&c)) || c.Status.Content == nil || c.Status.URLs == nil {
		f.wakeAll(users)
	}
	return ctrl.Result{}, f.wakeMoved(ctx, &c, users)
}

// users are the deployments that may see a catalog, by package. Those that name other catalogs are left out.
func (f *Follower) users(ctx context.Context, key types.NamespacedName) (map[string][]types.NamespacedName, error) {
	var list v1alpha1.BundleDeploymentList
	options := []client.ListOption{client.UnsafeDisableDeepCopy}
	if key.Namespace != f.Shared {
		options = append(options, client.InNamespace(key.Namespace))
	}
	if err := f.Reader.List(ctx, &list, options...); err != nil {
		return nil, fmt.Errorf("listing the deployments of bundlecatalog %s: %w", key, err)
	}
	users := map[string][]types.NamespacedName{}
	for i := range list.Items {
		of := list.Items[i].Spec.Catalog
		if of == nil || len(of.Catalogs) > 0 && !contains(of.Catalogs, key.Name) {
			continue
		}
		users[of.Package] = append(users[of.Package], client.ObjectKeyFromObject(&list.Items[i]))
	}
	return users, nil
}

// newTraits notes the traits of a catalog, and tells whether they are new.
func (f *Follower) newTraits(key types.NamespacedName, now traits) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.traits == nil {
		f.traits = map[catalogKey]traits{}
	}
	was, known := f.traits[catalogKey(key)]
	f.traits[catalogKey(key)] = now
	return !known || !was.equal(now)
}

// wakeMoved wakes the deployments of the packages that changed. A package that cannot be read wakes its deployments, too: they say why.
func (f *Follower) wakeMoved(ctx context.Context, c *v1alpha1.BundleCatalog, users map[string][]types.NamespacedName) error {
	if c.Status.Content == nil || c.Status.URLs == nil {
		return nil
	}
	for name, keys := range users {
		found, err := f.Packages.Read(ctx, advertised(c), name)
		if err == nil && !f.moved(packageOf{client.ObjectKeyFromObject(c), name}, found.Digest) {
			continue
		}
		f.wakeAll(map[string][]types.NamespacedName{name: keys})
	}
	return ctx.Err()
}

// moved notes the digest of a package, and tells whether it is another one than deployments have looked at.
func (f *Follower) moved(of packageOf, digest string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.digests == nil {
		f.digests = map[packageOf]string{}
	}
	was, known := f.digests[of]
	f.digests[of] = digest
	return !known || was != digest
}

func (f *Follower) forget(key types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.traits, catalogKey(key))
	for of := range f.digests {
		if of.catalog == key {
			delete(f.digests, of)
		}
	}
}

func (f *Follower) wakeAll(users map[string][]types.NamespacedName) {
	for _, keys := range users {
		for _, key := range keys {
			f.Wake(key, 0)
		}
	}
}
