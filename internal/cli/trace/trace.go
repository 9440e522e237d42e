// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/cli/tree"
	"github.com/satchel-dev/satchel/internal/view"
)

// Command returns the command trace.
func Command(a *kit.App) *cobra.Command {
	var o printer.Output
	cmd := &cobra.Command{
		Use:     "trace KIND/NAME",
		GroupID: kit.GroupSee,
		Short:   "Say where an object comes from: deployment, bundle, digest and signer",
		Long: `Follows any object, such as a Pod, up through its owners to the BundleDeployment that installed it, and from there to
the source of its bundle: the current revision, the digest of the artifact, the digest of what was fetched upstream,
and the accepted signer; and to the Kustomization or HelmRelease of Flux or the Application of Argo CD that delivered
it. KIND is as in kubectl: pod, deploy, deployment.apps, a CustomResourceDefinition.

Labels are easily copied or removed, so they are only hints: an object belongs to a deployment if the inventory in the
deployment's status lists it. The output says if labels and inventories disagree, or if an owner is gone.

Exit codes:

    0    the object was traced to a BundleDeployment
    1    no BundleDeployment installed it
    2    failed: not found, no access
    130  interrupted by Ctrl-C`,
		Example: a.Example(`
# Which bundle does this Pod run, and who signed it?
satchel trace pod/podinfo-5d8b7c-x2x9x -n demo

# Which deployment owns this CRD?
satchel trace crd/gadgets.example.org

# For a script: the digest of what was fetched
satchel trace deployment/podinfo -o json | jq -r '.source.upstreams[].digest'`),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			return completeObjects(a, cmd, args, begun)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, name, found := oneObject(args)
			if !found {
				return kit.UsageError(cmd, "trace needs one object as KIND/NAME, got %s", kit.Given(args))
			}
			return runTrace(cmd.Context(), a, o, kind, name)
		},
	}
	a.OutputFlag(cmd, &o, printer.OutputText, printer.OutputJSON, printer.OutputYAML, printer.OutputName)
	return cmd
}

// oneObject reads KIND/NAME or KIND NAME.
func oneObject(args []string) (kind, name string, found bool) {
	switch len(args) {
	case 1:
		kind, name, _ = strings.Cut(args[0], "/")
	case 2:
		kind, name = args[0], args[1]
	}
	return kind, name, kind != "" && name != "" && !strings.Contains(name, "/")
}

func runTrace(ctx context.Context, a *kit.App, o printer.Output, kind, name string) error {
	x, err := a.Explore()
	if err != nil {
		return err
	}
	found, err := trace(ctx, x, kind, name)
	if err != nil {
		return err
	}
	a.NoteOmitted(found.Omitted)
	switch {
	case o == printer.OutputText:
		fmt.Fprint(a.Streams.Out, found.Print(printer.StyleFor(a.Streams.Out), a.Now()))
	case o != printer.OutputName:
		err = printer.PrintValue(a.Streams.Out, o, found)
	case found.Deployment != nil:
		fmt.Fprintf(a.Streams.Out, "%s.%s/%s\n", strings.ToLower(v1alpha1.BundleDeploymentKind), v1alpha1.GroupVersion.Group, view.Inline(found.Deployment.Name))
	}
	if err == nil && found.Deployment == nil {
		return kit.ErrNo
	}
	return err
}

// mappingOf finds the kind of a word of the user, as kubectl does: a resource, a short name or a kind, with a group or
// without. This program's words for its own kinds count if the cluster has no kind of that name.
func mappingOf(x *kit.Explorer, word string) (*meta.RESTMapping, error) {
	versioned, resource := schema.ParseResourceArg(strings.ToLower(word))
	kind := schema.GroupVersionKind{}
	var err error
	if versioned != nil {
		kind, err = x.Mapper.KindFor(*versioned)
	}
	if kind.Empty() {
		kind, err = x.Mapper.KindFor(resource.WithVersion(""))
	}
	if kind.Empty() {
		if named, known := kit.KindNamed(word); known {
			kind, err = v1alpha1.GroupVersion.WithKind(named.Name), nil
		}
	}
	if err == nil {
		var mapping *meta.RESTMapping
		if mapping, err = x.Mapper.RESTMapping(kind.GroupKind(), kind.Version); err == nil {
			return mapping, nil
		}
	}
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("the cluster knows no kind %q: see kubectl api-resources for those that it has", word)
	}
	return nil, fmt.Errorf("looking for the kind %q: %w", word, err)
}

// within is the namespace in which objects of a kind are, for those of the cluster none.
func within(mapping *meta.RESTMapping, namespace string) string {
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return ""
	}
	return namespace
}

// asked reads the object that the user named.
func asked(ctx context.Context, x *kit.Explorer, word, name string) (*meta.RESTMapping, kit.Sighting, error) {
	mapping, err := mappingOf(x, word)
	if err != nil {
		return nil, kit.Sighting{}, err
	}
	if !IsName(name) {
		return nil, kit.Sighting{}, fmt.Errorf("%q is not the name of an object", name)
	}
	namespace := within(mapping, x.Namespace)
	found, err := x.One(ctx, mapping.Resource, namespace, name, false)
	resource := mapping.Resource.GroupResource()
	where := ""
	if namespace != "" {
		where = fmt.Sprintf(" in the namespace %q", namespace)
	}
	switch {
	case apierrors.IsNotFound(err):
		hint := ""
		if mapping.GroupVersionKind.GroupKind() == tree.DeploymentKind.GroupKind() {
			hint = "; for a BundleDeployment write bundledeployment/" + name
		}
		return nil, kit.Sighting{}, fmt.Errorf("there is no %s %q%s%s", mapping.GroupVersionKind.Kind, name, where, hint)
	case apierrors.IsForbidden(err):
		return nil, kit.Sighting{}, fmt.Errorf("you may not get %s%s: ask an administrator for that permission (the cluster says: %w)", resource, where, err)
	case err != nil:
		return nil, kit.Sighting{}, fmt.Errorf("reading the %s %q%s: %w", mapping.GroupVersionKind.Kind, name, where, err)
	}
	return mapping, found, nil
}

// tracedKinds are suggested where a kind is to be named.
var tracedKinds = []string{"pod/", "deployment/", "statefulset/", "daemonset/", "job/", "service/", "configmap/", "customresourcedefinition/"}

// completeObjects completes KIND/NAME with the kinds that are asked for most, and the names of any kind.
func completeObjects(a *kit.App, cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	word, _, named := strings.Cut(begun, "/")
	switch {
	case len(args) > 1:
		return nil, cobra.ShellCompDirectiveNoFileComp
	case len(args) == 1:
		return namesOf(cmd.Context(), a, args[0], ""), cobra.ShellCompDirectiveNoFileComp
	case !named:
		return tracedKinds, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	return namesOf(cmd.Context(), a, word, word+"/"), cobra.ShellCompDirectiveNoFileComp
}

// namesOf returns names of any kind, each after a prefix; none when the cluster does not answer in time.
func namesOf(ctx context.Context, a *kit.App, word, prefix string) []string {
	ctx, cancel := context.WithTimeout(ctx, kit.CompletionTimeout)
	defer cancel()
	x, err := a.Explore()
	if err != nil {
		return nil
	}
	mapping, err := mappingOf(x, word)
	if err != nil {
		return nil
	}
	var words []string
	l := kit.Listing{Resource: mapping.Resource, Namespace: within(mapping, x.Namespace), Limit: tree.MostScanned}
	if _, err := x.Each(ctx, l, func(found kit.Sighting) { words = append(words, prefix+found.GetName()) }); err != nil {
		return nil
	}
	slices.Sort(words)
	return words
}
