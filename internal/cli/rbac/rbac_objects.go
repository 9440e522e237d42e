// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/certificate"
	"github.com/satchel-dev/satchel/internal/apply/crds"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/rights"
	"github.com/satchel-dev/satchel/internal/convert"
)

// appliedObjects are the objects of a bundle with the resources they are of.
type appliedObjects struct {
	objects []plan.Object
	hooks   []plan.Object // that run once
	guessed Guesses

	served servedKinds
}

// servedKinds returns how a cluster serves a kind; false without a cluster, or when it does not.
type servedKinds func(schema.GroupVersionKind) (plan.Kind, bool)

// Guesses are what rbac assumed where the bundle does not say it.
type Guesses []guess

// guess is a kind of which only a cluster knows its resource and scope.
type guess struct {
	kind       schema.GroupKind
	resource   schema.GroupResource
	namespaced bool // known from an object of the kind; otherwise that is guessed, too
}

// applied are the objects that a deployment would apply, and the Secrets of
// their certificates.
func (o Options) applied(result convert.Result) appliedObjects {
	found := appliedObjects{served: o.served}
	if found.served == nil {
		found.served = func(schema.GroupVersionKind) (plan.Kind, bool) { return plan.Kind{}, false }
	}
	definitions := crds.Definitions(result.Objects)
	for _, object := range result.Objects {
		found.add(object, definitions, o.InstallNamespace)
	}
	objects := len(found.objects)
	for _, hook := range result.Hooks {
		found.add(hook.Object, definitions, o.InstallNamespace)
	}
	found.objects, found.hooks = found.objects[:objects:objects], found.objects[objects:]
	for _, serving := range result.Certificates {
		found.objects = append(found.objects, rights.Secret(serving.Namespace, serving.Secret))
	}
	if len(result.Certificates) > 0 {
		authority := certificate.AuthorityID(o.owner())
		if o.remote {
			authority = certificate.AuthorityIn(o.owner(), o.InstallNamespace)
		}
		found.objects = append(found.objects, rights.Secret(authority.Namespace, authority.Name))
	}
	return found
}

func (f *appliedObjects) add(object *unstructured.Unstructured, definitions map[schema.GroupKind]crds.Definition, namespace string) {
	gvk := object.GroupVersionKind()
	definition, own := definitions[gvk.GroupKind()]
	scope := convert.ScopeOf(gvk.GroupKind())
	made := plan.Object{ID: inventory.IDOf(object), Desired: object}
	served, known := f.served(gvk)
	switch {
	case own:
		made.Kind, _ = plan.KindOf(definition, gvk.Version)
	case known:
		made.Kind = served
	default:
		made.Kind = plan.Kind{
			Resource:   gvk.GroupVersion().WithResource(rights.Plural(gvk.Kind)),
			Namespaced: scope != convert.Cluster,
		}
	}
	if scope == convert.Unknown && !own && !known {
		f.guessed = append(f.guessed, guess{kind: gvk.GroupKind(), resource: made.Resource.GroupResource(), namespaced: object.GetNamespace() != ""})
	}
	switch {
	case !made.Namespaced:
		made.Namespace = ""
	case made.Namespace == "":
		made.Namespace = namespace
	}
	f.objects = append(f.objects, made)
}

// unique are the guesses, sorted, each once.
func (g Guesses) unique() Guesses {
	slices.SortFunc(g, func(a, b guess) int {
		return cmp.Or(cmp.Compare(a.kind.Group, b.kind.Group), cmp.Compare(a.kind.Kind, b.kind.Kind))
	})
	return slices.CompactFunc(g, func(a, b guess) bool { return a.kind == b.kind })
}

// Notes say what was guessed.
func (g Guesses) Notes() []string {
	var lines []string
	for _, kind := range g {
		line := fmt.Sprintf("neither Kubernetes nor the bundle defines %s: its resource is taken to be %s", kind.kind, kind.resource)
		if !kind.namespaced {
			line += ", in namespaces"
		}
		lines = append(lines, line+"; compare with: kubectl api-resources")
	}
	return lines
}

// Comments say the same above the rules. The resources have been checked to be words.
func (g Guesses) Comments() []string {
	var lines []string
	for _, kind := range g {
		lines = append(lines, "guessed, because neither Kubernetes nor the bundle defines it: "+kind.resource.String())
	}
	return lines
}
