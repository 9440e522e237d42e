// SPDX-License-Identifier: Apache-2.0

package remove

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/crds"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/plan/pruning"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/internal/view"
)

// AffectedObject is an object that is deleted or stays, and why.
type AffectedObject struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Why       string `json:"why,omitempty"`
}

// KindText is the kind with its group.
func (d AffectedObject) KindText() string {
	return schema.GroupKind{Group: d.Group, Kind: d.Kind}.String()
}

// Place is the name with its namespace.
func (d AffectedObject) Place() string {
	if d.Namespace == "" {
		return view.Inline(d.Name)
	}
	return view.Inline(d.Namespace + "/" + d.Name)
}

// RemovalPlan lists which objects are deleted with a deployment, and which stay.
type RemovalPlan struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Cluster names the Secret or ClusterProfile of the cluster that holds the objects, where that is a remote one.
	Cluster string `json:"cluster,omitempty"`
	// Source is the BundleSource of an inline spec.source, which is deleted as well.
	Source string           `json:"source,omitempty"`
	Goes   []AffectedObject `json:"goes"`
	Stays  []AffectedObject `json:"stays"`
	// Unknown could not be read.
	Unknown []AffectedObject `json:"unknown,omitempty"`
	// Resources are the custom resources of others, of the kinds that the bundle defines.
	Resources []Population `json:"customResources,omitempty"`
	// Needed are the deployments that depend on this one.
	Needed []string `json:"neededBy,omitempty"`
	// Required are the deployments that require the package of this one, and find it nowhere else.
	Required []string `json:"requiredBy,omitempty"`
}

// RemovalPolicy says whether objects are orphaned, and whether CRDs are deleted.
type RemovalPolicy struct {
	orphan      bool
	definitions bool // CRDs are deleted, and the custom resources of others with them
}

// RemovalPolicyOf combines a spec and the flags.
func RemovalPolicyOf(spec *v1alpha1.BundleDeploymentSpec, o DeleteOptions) RemovalPolicy {
	return RemovalPolicy{
		orphan:      o.orphan || spec.DeletionPolicy == v1alpha1.DeletionOrphan,
		definitions: o.definitions || effective.DeletesCRDs(spec),
	}
}

// RemovalPlanOf plans the removal as the controller does, from the objects that the user may read.
func RemovalPlanOf(ctx context.Context, x *kit.Explorer, d *v1alpha1.BundleDeployment, how RemovalPolicy, force bool) (RemovalPlan, error) {
	listed, err := inventory.Decode(d.Status.Inventory)
	if err != nil {
		return RemovalPlan{}, fmt.Errorf("the status of %s %s cannot be read: %w", kit.Deployments.Name, d.Name, err)
	}
	in := plan.Input{
		Owner: inventory.Owner{Namespace: d.Namespace, Name: d.Name}, Previous: listed,
		Observed: plan.Observed{
			Live:       map[inventory.ID]ownership.Live{},
			Unreadable: map[inventory.ID]string{},
			Kinds:      map[schema.GroupKind]plan.Kind{},
		},
		Rules: plan.Rules{Pruning: pruning.Policy{Orphan: how.orphan, Definitions: how.definitions}},
	}
	f := RemovalPlan{Namespace: d.Namespace, Name: d.Name, Goes: []AffectedObject{}, Stays: []AffectedObject{}}
	if effective.OwnsSource(d) {
		f.Source = d.Name
	}
	if effective.IsRemote(d.Spec.Target.ClusterReference) {
		f.Cluster = spec.KubeConfigHolder(effective.RemoteCluster(d.Spec.Target.ClusterReference))
		assumeInventory(&in)
	} else {
		lookAtAll(ctx, x, &in)
		f.Resources = populations(ctx, x, listed)
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

// assumeInventory takes the objects from the inventory, where the cluster of the objects is out of reach.
func assumeInventory(in *plan.Input) {
	for _, entry := range in.Previous.Entries {
		in.Live[entry.ID] = ownership.Live{Owner: in.Owner, Fields: entry.Fields}
		in.Kinds[entry.GroupKind()] = plan.Kind{Namespaced: entry.Namespace != ""}
	}
}

// lookAtAll reads the metadata of all objects of the inventory.
func lookAtAll(ctx context.Context, x *kit.Explorer, in *plan.Input) {
	type look struct {
		live *ownership.Live
		kind plan.Kind
		why  string
	}
	for at, found := range parallel.Each(ctx, kit.AtOnce, in.Previous.Entries, func(ctx context.Context, entry inventory.Entry) look {
		mapping, err := x.Mapper.RESTMapping(entry.GroupKind())
		if apimeta.IsNoMatchError(err) {
			return look{}
		}
		if err != nil {
			return look{why: err.Error()}
		}
		kind := plan.Kind{Resource: mapping.Resource, Namespaced: mapping.Scope.Name() == apimeta.RESTScopeNameNamespace}
		object, err := x.One(ctx, mapping.Resource, entry.Namespace, entry.Name, false)
		switch {
		case apierrors.IsNotFound(err):
			return look{kind: kind}
		case apierrors.IsForbidden(err):
			return look{kind: kind, why: "you may not get it"}
		case err != nil:
			return look{kind: kind, why: err.Error()}
		}
		live := ownership.LiveOf(object, in.Owner)
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

// sort adds one object to the list that it belongs to.
func (f *RemovalPlan) sort(deletion plan.Deletion) {
	d := AffectedObject{Group: deletion.Group, Kind: deletion.ID.Kind, Namespace: deletion.Namespace, Name: deletion.Name, Why: deletion.Reason}
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

// keepUsed moves CRDs with custom resources of others to the objects that stay: the controller does not delete them.
func (f *RemovalPlan) keepUsed() {
	f.Goes = slices.DeleteFunc(f.Goes, func(d AffectedObject) bool {
		if !d.isDefinition() {
			return false
		}
		at := slices.IndexFunc(f.Resources, func(p Population) bool { return p.Definition == d.Name && p.Count > 0 })
		if at >= 0 {
			d.Why = "is kept, because others have resources of its kind"
			f.Stays = append(f.Stays, d)
		}
		return at >= 0
	})
}

func (d AffectedObject) isDefinition() bool {
	return crds.IsCRD(inventory.ID{Group: d.Group, Kind: d.Kind, Name: d.Name})
}

// Print writes the plan for people.
func (f RemovalPlan) Print(s printer.Style) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s %s/%s is to be deleted", kit.Deployments.Name, f.Namespace, s.Paint(printer.Bold, f.Name))
	if f.Cluster != "" {
		fmt.Fprintf(&out, "; its objects are on the cluster of the %s, and are listed as the inventory has them", view.Inline(f.Cluster))
	}
	fmt.Fprintf(&out, "\n")
	if f.Source != "" {
		fmt.Fprintf(&out, "%s the BundleSource %s (spec.source)\n", s.Paint(printer.Red, "Deleted with it:"), f.Source)
	}
	WriteAffected(&out, s.Paint(printer.Red, "To delete"), f.Goes)
	WriteAffected(&out, s.Paint(printer.Green, "To keep"), f.Stays)
	WriteAffected(&out, s.Paint(printer.Yellow, "Could not be read"), f.Unknown)
	for _, p := range f.Resources {
		if p.Count > 0 || p.Problem != "" {
			fmt.Fprintf(&out, "%s %s\n", s.Paint(printer.Yellow, "Custom resources of others:"), p)
		}
	}
	if len(f.Needed) > 0 {
		fmt.Fprintf(&out, "%s %s\n", s.Paint(printer.Yellow, "Needed by (spec.dependsOn):"), view.WordList(f.Needed))
	}
	if len(f.Required) > 0 {
		fmt.Fprintf(&out, "%s %s\n", s.Paint(printer.Yellow, "Its package is required by (status.healthy.requires):"), view.WordList(f.Required))
	}
	return out.String()
}

// namedOfKind is how many objects of one kind are named.
const namedOfKind = 5

// WriteAffected writes objects, a line for each kind and reason.
func WriteAffected(out *strings.Builder, title string, all []AffectedObject) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(out, "%s (%s):\n", title, view.Plural(len(all), "object"))
	type line struct{ kind, why string }
	var order []line
	names := map[line][]string{}
	for _, d := range all {
		l := line{d.KindText(), d.Why}
		if names[l] == nil {
			order = append(order, l)
		}
		names[l] = append(names[l], d.Place())
	}
	for _, l := range order {
		shown := names[l][:min(namedOfKind, len(names[l]))]
		fmt.Fprintf(out, "  %s %s", view.Inline(l.kind), strings.Join(shown, ", "))
		if more := len(names[l]) - len(shown); more > 0 {
			fmt.Fprintf(out, " and %d more", more)
		}
		if l.why != "" {
			fmt.Fprintf(out, ": %s", view.OneLine(l.why, 0))
		}
		fmt.Fprintln(out)
	}
}
