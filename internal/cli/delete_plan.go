// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/apply/plan"
)

// departure is what becomes of one object, and why.
type departure struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Why       string `json:"why,omitempty"`
}

func (d departure) kind() string { return schema.GroupKind{Group: d.Group, Kind: d.Kind}.String() }

func (d departure) place() string {
	if d.Namespace == "" {
		return inline(d.Name)
	}
	return inline(d.Namespace + "/" + d.Name)
}

// farewell is what the deletion of a deployment takes along, and what it leaves.
type farewell struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Cluster names the Secret with the kubeconfig of the cluster that holds the objects, where that is another one.
	Cluster string `json:"cluster,omitempty"`
	// Source is the BundleSource of an inline spec.source, which goes as well.
	Source string      `json:"source,omitempty"`
	Goes   []departure `json:"goes"`
	Stays  []departure `json:"stays"`
	// Unknown could not be looked at.
	Unknown []departure `json:"unknown,omitempty"`
	// Resources are the custom resources of others, of the kinds that the bundle defines.
	Resources []population `json:"customResources,omitempty"`
	// Needed are the deployments that depend on this one.
	Needed []string `json:"neededBy,omitempty"`
}

// leaving says how objects are let go: as the spec says, or as the flags do.
type leaving struct {
	orphan      bool
	definitions bool // CRDs go, and the custom resources of others with them
}

// leavingOf is what a spec and the flags together say.
func leavingOf(spec *v1alpha1.BundleDeploymentSpec, o deleteOptions) leaving {
	return leaving{
		orphan:      o.orphan || spec.DeletionPolicy == v1alpha1.DeletionOrphan,
		definitions: o.definitions || spec.DeletesDefinitions(),
	}
}

// farewellOf decides as the controller will, from what the user may read.
func (x *explorer) farewellOf(ctx context.Context, d *v1alpha1.BundleDeployment, how leaving, force bool) (farewell, error) {
	listed, err := inventory.Decode(d.Status.Inventory)
	if err != nil {
		return farewell{}, fmt.Errorf("the status of %s %s cannot be read: %w", deployments.name, d.Name, err)
	}
	in := plan.Input{
		Owner: inventory.Owner{Namespace: d.Namespace, Name: d.Name}, Previous: listed,
		Live: map[inventory.ID]plan.Live{}, Unreadable: map[inventory.ID]string{}, Kinds: map[schema.GroupKind]plan.Kind{},
		Pruning: plan.Pruning{Orphan: how.orphan, Definitions: how.definitions},
	}
	f := farewell{Namespace: d.Namespace, Name: d.Name, Goes: []departure{}, Stays: []departure{}}
	if d.Spec.Source != nil {
		f.Source = d.Name
	}
	if d.Spec.KubeConfig != nil {
		f.Cluster = d.Spec.KubeConfig.SecretRef.Name
		believe(&in)
	} else {
		x.lookAtAll(ctx, &in)
		f.Resources = x.populations(ctx, listed)
	}
	for _, stage := range plan.Removal(in) {
		for _, deletion := range stage.Deletions {
			f.sort(deletion)
		}
	}
	if !force {
		f.keepUsed()
	}
	return f, context.Cause(ctx)
}

// believe takes the inventory at its word, where the objects are out of reach.
func believe(in *plan.Input) {
	for _, entry := range in.Previous.Entries {
		in.Live[entry.ID] = plan.Live{Owner: in.Owner, Fields: entry.Fields}
		in.Kinds[entry.GroupKind()] = plan.Kind{Namespaced: entry.Namespace != ""}
	}
}

// lookAtAll reads the metadata of all objects of the inventory.
func (x *explorer) lookAtAll(ctx context.Context, in *plan.Input) {
	type look struct {
		live *plan.Live
		kind plan.Kind
		why  string
	}
	for at, found := range parallel.Each(ctx, atOnce, in.Previous.Entries, func(ctx context.Context, entry inventory.Entry) look {
		mapping, err := x.mapper.RESTMapping(entry.GroupKind())
		if apimeta.IsNoMatchError(err) {
			return look{}
		}
		if err != nil {
			return look{why: err.Error()}
		}
		kind := plan.Kind{Resource: mapping.Resource, Namespaced: mapping.Scope.Name() == apimeta.RESTScopeNameNamespace}
		object, err := x.one(ctx, mapping.Resource, entry.Namespace, entry.Name, false)
		switch {
		case apierrors.IsNotFound(err):
			return look{kind: kind}
		case apierrors.IsForbidden(err):
			return look{kind: kind, why: "you may not get it"}
		case err != nil:
			return look{kind: kind, why: err.Error()}
		}
		live := plan.LiveOf(object, in.Owner)
		return look{kind: kind, live: &live}
	}) {
		entry := in.Previous.Entries[at]
		in.Kinds[entry.GroupKind()] = found.kind
		switch {
		case found.why != "":
			in.Unreadable[entry.ID] = found.why
		case found.live != nil:
			in.Live[entry.ID] = *found.live
		}
	}
}

// sort puts one object where it belongs.
func (f *farewell) sort(deletion plan.Deletion) {
	d := departure{Group: deletion.Group, Kind: deletion.ID.Kind, Namespace: deletion.Namespace, Name: deletion.Name, Why: deletion.Reason}
	switch deletion.How {
	case plan.Delete, plan.DeleteEmpty, plan.DeleteUnused, plan.Await:
		f.Goes = append(f.Goes, d)
	case plan.Release:
		f.Stays = append(f.Stays, d)
	case plan.Keep:
		f.Unknown = append(f.Unknown, d)
	case plan.Forget:
		if deletion.Note != "" {
			f.Stays = append(f.Stays, d)
		}
	}
}

// keepUsed moves the CRDs of which others have resources to what stays: the controller does not delete them.
func (f *farewell) keepUsed() {
	f.Goes = slices.DeleteFunc(f.Goes, func(d departure) bool {
		if !d.isDefinition() {
			return false
		}
		at := slices.IndexFunc(f.Resources, func(p population) bool { return p.Definition == d.Name && p.Count > 0 })
		if at >= 0 {
			d.Why = "is kept, for others have resources of its kind"
			f.Stays = append(f.Stays, d)
		}
		return at >= 0
	})
}

func (d departure) isDefinition() bool {
	return plan.IsDefinition(inventory.ID{Group: d.Group, Kind: d.Kind, Name: d.Name})
}

// print writes it for people.
func (f farewell) print(s style) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s %s/%s is to be deleted", deployments.name, f.Namespace, s.paint(bold, f.Name))
	if f.Cluster != "" {
		fmt.Fprintf(&out, "; its objects are on the cluster of the Secret %s, and are listed as the inventory has them", inline(f.Cluster))
	}
	fmt.Fprintf(&out, "\n")
	if f.Source != "" {
		fmt.Fprintf(&out, "%s the BundleSource %s (spec.source)\n", s.paint(red, "Goes with it:"), f.Source)
	}
	writeDepartures(&out, s.paint(red, "Goes"), f.Goes)
	writeDepartures(&out, s.paint(green, "Stays"), f.Stays)
	writeDepartures(&out, s.paint(yellow, "Could not be looked at"), f.Unknown)
	for _, p := range f.Resources {
		if p.Count > 0 || p.Problem != "" {
			fmt.Fprintf(&out, "%s %s\n", s.paint(yellow, "Custom resources of others:"), p)
		}
	}
	if len(f.Needed) > 0 {
		fmt.Fprintf(&out, "%s %s\n", s.paint(yellow, "Needed by (spec.dependsOn):"), wordList(f.Needed))
	}
	return out.String()
}

// namedOfKind is how many objects of one kind are named.
const namedOfKind = 5

// writeDepartures writes objects, a line for each kind and reason.
func writeDepartures(out *strings.Builder, title string, all []departure) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(out, "%s (%s):\n", title, plural(len(all), "object"))
	type line struct{ kind, why string }
	var order []line
	names := map[line][]string{}
	for _, d := range all {
		l := line{d.kind(), d.Why}
		if names[l] == nil {
			order = append(order, l)
		}
		names[l] = append(names[l], d.place())
	}
	for _, l := range order {
		shown := names[l][:min(namedOfKind, len(names[l]))]
		fmt.Fprintf(out, "  %s %s", inline(l.kind), strings.Join(shown, ", "))
		if more := len(names[l]) - len(shown); more > 0 {
			fmt.Fprintf(out, " and %d more", more)
		}
		if l.why != "" {
			fmt.Fprintf(out, ": %s", oneLine(l.why, 0))
		}
		fmt.Fprintln(out)
	}
}
