// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/crds"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/completion"
	"github.com/satchel-dev/satchel/internal/apply/plan/ignore"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/plan/requirement"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/apply/tenant/discovery"
	"github.com/satchel-dev/satchel/internal/pattern"
)

// Request is the input of Observe.
type Request struct {
	Owner            inventory.Owner
	Desired          []*unstructured.Unstructured // as rendered; they are not changed, also not afterwards
	Hooks            []plan.Hook                  // as rendered; they are not changed either
	Previous         inventory.Inventory
	InstallNamespace string               // for namespaced objects that carry no namespace
	CreateNamespace  bool                 // of InstallNamespace, when it is absent
	Optional         []schema.GroupKind   // of Desired, those of which objects are left out while their kind is not served
	Ranks            map[inventory.ID]int // of Desired, as it is rendered: see plan.Object
	HashKey          []byte               // see inventory.NewHasher; may be empty
	Ignore           ignore.Rules         // fields that other managers may change
	Parallelism      int                  // 16

	Keeping bool // see plan.Input
	plan.Rules
	Judge    Judge                 // of CRDs; without it their changes remain unjudged
	Packages []requirement.Package // that are installed and may meet Requirements
}

// Cluster gathers what a plan depends on: how the desired kinds are served and which
// objects exist, from one metadata LIST a kind and namespace; whether changes of CRDs
// are safe, from one GET each; and which requirements the
// cluster meets, from discovery and its version. All is read as the tenant. An error
// means that something could not be read; what the tenant may not read is part
// of the input.
func Cluster(ctx context.Context, client *tenant.Client, o Request) (plan.Input, error) {
	in := plan.Input{
		Owner:    o.Owner,
		Previous: o.Previous,
		Keeping:  o.Keeping,
		Rules:    o.Rules,
		Observed: plan.Observed{
			Live:        make(map[inventory.ID]ownership.Live, len(o.Desired)),
			Free:        map[inventory.ID]bool{},
			Unreadable:  map[inventory.ID]string{},
			Unconfirmed: map[inventory.ID]string{},
			Kinds:       map[schema.GroupKind]plan.Kind{},
			Namespaces:  map[string]plan.Presence{},
			Facts:       requirement.Facts{Packages: o.Packages},
		},
	}
	if o.CreateNamespace {
		in.CreateNamespace = o.InstallNamespace
	}
	if o.Parallelism <= 0 {
		o.Parallelism = parallel.Default
	}
	if err := o.complete(ctx, client.Kinds(), &in); err != nil {
		return plan.Input{}, err
	}
	if err := previousKinds(ctx, client, &in); err != nil {
		return plan.Input{}, err
	}
	if err := readLive(ctx, client, &in, o.Parallelism); err != nil {
		return plan.Input{}, err
	}
	if err := readNamespaces(ctx, client, &in, o.Parallelism); err != nil {
		return plan.Input{}, err
	}
	if err := judgeDefinitions(ctx, client, o.Judge, &in); err != nil {
		return plan.Input{}, err
	}
	if err := o.askFacts(ctx, client, &in); err != nil {
		return plan.Input{}, err
	}
	return in, nil
}

// complete looks up how each desired kind is served, by the bundle's own CRDs first,
// and completes the objects.
func (o Request) complete(ctx context.Context, kinds *discovery.Cache, in *plan.Input) error {
	c := completing{
		observing: o, kinds: kinds, definitions: crds.Definitions(o.Desired),
		completion: completion.Settings{Owner: o.Owner, InstallNamespace: o.InstallNamespace, Hasher: inventory.NewHasher(o.HashKey), Ignore: o.Ignore},
	}
	in.Desired = make([]plan.Object, 0, len(o.Desired))
	for _, object := range o.Desired {
		completed, found, err := c.object(ctx, object, in)
		if err != nil {
			return err
		}
		if found {
			completed.Rank = o.Ranks[inventory.IDOf(object)]
			in.Desired = append(in.Desired, completed)
		}
	}
	for _, hook := range o.Hooks {
		completed, found, err := c.object(ctx, hook.Object, in)
		if err != nil {
			return err
		}
		if found {
			in.Hooks = append(in.Hooks, plan.HookObject{HookTerms: hook.HookTerms, Object: completed})
		}
	}
	return nil
}

// completing completes objects.
type completing struct {
	observing   Request
	kinds       *discovery.Cache
	definitions map[schema.GroupKind]crds.Definition
	completion  completion.Settings
}

// object completes one object; one that cannot be is noted in the input.
func (c completing) object(ctx context.Context, object *unstructured.Unstructured, in *plan.Input) (completed plan.Object, found bool, err error) {
	gvk, id := object.GroupVersionKind(), inventory.IDOf(object)
	kind, err := findKind(ctx, c.kinds, c.definitions, gvk)
	var none *discovery.NoKindError
	switch {
	case errors.As(err, &none) && len(none.Served) == 0 && slices.Contains(c.observing.Optional, gvk.GroupKind()):
		in.Skipped = append(in.Skipped, id)
		return plan.Object{}, false, nil
	case errors.As(err, &none):
		in.Missing = append(in.Missing, plan.MissingKind{ID: id, Version: gvk.Version, Served: none.Served})
		return plan.Object{}, false, nil
	case err != nil && c.observing.Keeping && ctx.Err() == nil:
		in.Invalid = append(in.Invalid, unreachable(id, err))
		return plan.Object{}, false, nil
	case err != nil:
		return plan.Object{}, false, fmt.Errorf("observing %s: %w", id, err)
	}
	completed, err = c.completion.Complete(object, kind)
	var costly *pattern.Error
	switch {
	case errors.As(err, &costly):
		return plan.Object{}, false, err // it is about all objects
	case err != nil:
		in.Invalid = append(in.Invalid, violation.Violation{Rule: violation.Invalid, Object: id, Message: err.Error()})
		return plan.Object{}, false, nil
	}
	in.Kinds[gvk.GroupKind()] = kind
	return completed, true, nil
}

// unreachable says why an object could not be read.
func unreachable(id inventory.ID, err error) violation.Violation {
	return violation.Violation{Rule: violation.Unreachable, Object: id, Message: fmt.Sprintf("%s cannot be looked at: %s", id, objecterror.OneLine(err.Error()))}
}

func findKind(ctx context.Context, kinds *discovery.Cache, definitions map[schema.GroupKind]crds.Definition, gvk schema.GroupVersionKind) (plan.Kind, error) {
	if definition, found := definitions[gvk.GroupKind()]; found {
		kind, served := plan.KindOf(definition, gvk.Version)
		if !served {
			return plan.Kind{}, &discovery.NoKindError{Kind: gvk, Served: definition.Served}
		}
		return kind, nil
	}
	served, err := kinds.Find(ctx, gvk)
	if err != nil {
		return plan.Kind{}, err
	}
	return plan.Kind{Resource: served.Resource, Namespaced: served.Namespaced}, nil
}

// previousKinds looks up how the remaining kinds of the inventory are served.
// A kind that is certainly not served, which discovery
// alone does not prove, is left out: its objects are gone.
func previousKinds(ctx context.Context, client *tenant.Client, in *plan.Input) error {
	unknown := map[schema.GroupKind]error{}
	for _, entry := range in.Previous.Entries {
		kind := entry.GroupKind()
		if _, known := in.Kinds[kind]; known {
			continue
		}
		err, asked := unknown[kind]
		if !asked {
			var found plan.Kind
			if found, err = previousKind(ctx, client, in.Previous, kind); err == nil {
				in.Kinds[kind] = found
				continue
			}
			if discovery.IsNoKind(err) {
				err = client.Gone(ctx, kind, EntryRef(entry))
			}
			unknown[kind] = err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		noteUnknown(in, entry.ID, err)
	}
	return nil
}

// noteUnknown notes that the kind of an inventory object could not be looked up;
// nothing when the kind is gone.
func noteUnknown(in *plan.Input, id inventory.ID, err error) {
	switch {
	case discovery.IsUnconfirmed(err):
		in.Unconfirmed[id] = objecterror.OneLine(err.Error())
	case err != nil:
		in.Unreadable[id] = objecterror.OneLine(err.Error())
	}
}

// EntryRef refers to an object of the inventory when only the name of its kind is known.
func EntryRef(entry inventory.Entry) tenant.Ref {
	resource := schema.GroupVersionResource{Group: entry.Group, Version: entry.Version}
	return tenant.Ref{Resource: resource, Namespace: entry.Namespace, Name: entry.Name}
}

// previousKind asks discovery and, because that lags behind, the CRDs of the
// inventory: a kind that counts as gone is removed from the inventory.
func previousKind(ctx context.Context, client *tenant.Client, previous inventory.Inventory, kind schema.GroupKind) (plan.Kind, error) {
	served, err := client.Kinds().Preferred(ctx, kind)
	if err == nil {
		return plan.Kind{Resource: served.Resource, Namespaced: served.Namespaced}, nil
	}
	if !discovery.IsNoKind(err) {
		return plan.Kind{}, err
	}
	for _, entry := range previous.Entries {
		if !crds.IsCRD(entry.ID) || !strings.HasSuffix(entry.Name, "."+kind.Group) {
			continue
		}
		crd, err := client.Get(ctx, tenant.Ref{Resource: crds.Resource, Name: entry.Name})
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return plan.Kind{}, err
		}
		definition, found := crds.Definitions([]*unstructured.Unstructured{crd})[kind]
		if found && len(definition.Served) > 0 {
			of, _ := plan.KindOf(definition, definition.Served[0])
			return of, nil
		}
	}
	return plan.Kind{}, err
}
