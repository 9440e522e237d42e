// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/rights"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/apply/tenant/discovery"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/preview"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// namesDeployment tells whether the arguments name an object of the cluster: what looks like a path or an image does not.
func namesDeployment(args []string) bool {
	targets := kit.ParseTargets(args)
	return len(args) > 0 && len(targets) == 1 && targets[0].Name != "" && !kit.LooksLikePath(targets[0].Name) && !strings.ContainsAny(targets[0].Name, "/:@")
}

// flagsOfDeployments are the flags that have an effect with the name of a BundleDeployment.
var flagsOfDeployments = map[string]bool{"only": true, "strict": true, "missing": true, "remote": true, "service-account": true}

// ofDeployment prints the RBAC for a deployment of the cluster.
func ofDeployment(cmd *cobra.Command, a *kit.App, o Options, args []string) error {
	t, err := kit.OneDeployment(cmd, args)
	if err != nil {
		return err
	}
	cmd.LocalNonPersistentFlags().VisitAll(func(flag *pflag.Flag) {
		if flag.Changed && !flagsOfDeployments[flag.Name] && err == nil {
			err = kit.UsageError(cmd, "--%s is about folders and images, which also need --install-namespace; for BundleDeployment %s its spec decides", flag.Name, t.Name)
		}
	})
	if err != nil {
		return err
	}
	if o.missing {
		if o.only != "" || o.remote || cmd.Flag("service-account").Changed {
			return kit.UsageError(cmd, "--missing is about the ServiceAccount that the spec names; only --strict goes with it")
		}
		return printMissing(cmd.Context(), a, o, t)
	}
	return printNeeded(cmd, a, o, t)
}

// printNeeded finds the ServiceAccount of a deployment, and prints all that it needs.
func printNeeded(cmd *cobra.Command, a *kit.App, o Options, t kit.Target) error {
	p, err := preview.Open(cmd.Context(), a, t)
	if err != nil {
		return err
	}
	if o.remote && !effective.IsRemote(p.Deployment.Spec.Target.ClusterReference) {
		return kit.UsageError(cmd, "BundleDeployment %s has no other cluster in spec.target, so --remote has no effect", t.Name)
	}
	if o.ServiceAccount, err = accountFor(cmd, o, p.Deployment); err != nil {
		return err
	}
	return printDeployment(cmd.Context(), a, o, p)
}

// flagsOfManifests are flags without an effect with -f, because the spec of the BundleDeployment decides.
var flagsOfManifests = []string{"missing", "keep-objects", "delete-crds"}

// ofManifest prints the RBAC for a deployment of the files of -f, without a cluster.
func ofManifest(cmd *cobra.Command, a *kit.App, o Options, args []string) error {
	for _, name := range flagsOfManifests {
		if cmd.Flag(name).Changed {
			return kit.UsageError(cmd, "--%s has no effect with -f: the spec of the BundleDeployment decides, or a cluster", name)
		}
	}
	o.DeclaredName = o.Deployment
	what, err := o.OneBundle(cmd, args)
	if err != nil {
		return err
	}
	if err := o.Read(cmd.Context(), a); err != nil {
		return err
	}
	d := o.Declared().Deployment
	if o.remote && !effective.IsRemote(d.Spec.Target.ClusterReference) {
		return kit.UsageError(cmd, "BundleDeployment %s has no other cluster in spec.target, so --remote has no effect", d.Name)
	}
	o.Deployment = d.Name
	o.Named = true
	o.Namespace = d.Namespace
	if o.ServiceAccount, err = accountFor(cmd, o, d); err != nil {
		return err
	}
	if effective.IsRemote(d.Spec.Target.ClusterReference) && !o.remote {
		return printHere(a, o, d)
	}
	o.InstallNamespace = cmp.Or(o.InstallNamespace, effective.InstallNamespace(d))
	return rbac(cmd.Context(), a, o, what)
}

// accountFor is the ServiceAccount that the spec names for the cluster in question, unless a flag names another one.
func accountFor(cmd *cobra.Command, o Options, d *v1alpha1.BundleDeployment) (string, error) {
	named := o.ServiceAccount
	if !cmd.Flag("service-account").Changed {
		named = d.Spec.ServiceAccountName
		if o.remote {
			named = d.Spec.Target.ServiceAccountName
		}
	}
	if named == "" {
		return "", kit.UsageError(cmd, "the user of the kubeconfig needs the permissions: name a ServiceAccount with --service-account, or set spec.target.serviceAccountName")
	}
	return named, nil
}

// printHere prints what a deployment with objects on another cluster needs on this one: to read the kubeconfig and the values.
func printHere(a *kit.App, o Options, d *v1alpha1.BundleDeployment) error {
	a.Note([]string{fmt.Sprintf("the objects are on the cluster of spec.target: %s rbac %s --remote prints the permissions there", a.Name, d.Name)})
	return printRBAC(a, o, rights.Request{Deployment: o.owner(), ServiceAccount: o.ServiceAccount, Inputs: spec.InputIDs(d)}, nil)
}

// printMissing prints what the ServiceAccount lacks.
func printMissing(ctx context.Context, a *kit.App, o Options, t kit.Target) error {
	account, err := preview.Account(ctx, a, t, o.Strict)
	switch {
	case err != nil:
		return err
	case account.Unchecked != "":
		return fmt.Errorf("the permissions of ServiceAccount %s were not checked: %s; without --missing, %s rbac %s prints all that it needs",
			account.Name, account.Unchecked, a.Name, t.Name)
	case len(account.Missing) == 0:
		fmt.Fprintf(a.Streams.ErrOut, "ServiceAccount %s lacks no permissions.\n", account.Name)
		return nil
	case len(account.Manifests) == 0:
		return fmt.Errorf("ServiceAccount %s lacks permissions that cannot be printed: see %s plan %s", account.Name, a.Name, t.Name)
	}
	if _, err := fmt.Fprint(a.Streams.Out, account.Text()); err != nil {
		return fmt.Errorf("writing the manifests: %w", err)
	}
	return nil
}

// printDeployment prints what the applied and the planned revision of a deployment need together. For objects on another
// cluster that is one account here, which reads the kubeconfig and the values, and another one there.
func printDeployment(ctx context.Context, a *kit.App, o Options, p *preview.Previewer) error {
	d := p.Deployment
	o.Deployment, o.Namespace = d.Name, d.Namespace
	o.Named = true
	if effective.IsRemote(d.Spec.Target.ClusterReference) && !o.remote {
		return printHere(a, o, d)
	}
	o.InstallNamespace = effective.InstallNamespace(d)
	kinds := lookup{target: p.Target}
	o.served = func(gvk schema.GroupVersionKind) (plan.Kind, bool) { return kinds.find(ctx, gvk) }
	planned, err := p.Planned(ctx)
	if err != nil {
		return err
	}
	request, guesses := o.Request(planned)
	request.Pruning = spec.Pruning(&d.Spec)
	if !o.remote {
		request.Inputs = spec.InputIDs(d)
	}
	before, err := p.Applied(ctx)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		a.Note([]string{fmt.Sprintf("the applied revision cannot be read, so permissions that only its roles grant are left out: %v", err)})
	case before != nil:
		was := o.applied(*before)
		request.Applied = was.objects
		guesses = append(guesses, was.guessed...).unique()
	}
	request.Gone = kinds.listed(ctx, p.Previous())
	if kinds.err != nil {
		return kinds.err
	}
	return printRBAC(a, o, request, guesses)
}

// lookup looks kinds up on a cluster, and keeps the first failure: incomplete RBAC is not printed.
type lookup struct {
	target *tenant.Client
	err    error
}

func (l *lookup) find(ctx context.Context, gvk schema.GroupVersionKind) (plan.Kind, bool) {
	return l.found(l.target.Kinds().Find(ctx, gvk))
}

func (l *lookup) found(kind discovery.Kind, err error) (plan.Kind, bool) {
	if err != nil && !discovery.IsNoKind(err) && l.err == nil {
		l.err = err
	}
	return plan.Kind{Resource: kind.Resource, Namespaced: kind.Namespaced}, err == nil
}

// listed are the objects of an inventory. Those of kinds that are not served are gone with their kind.
func (l *lookup) listed(ctx context.Context, applied inventory.Inventory) []plan.Object {
	var objects []plan.Object
	for _, entry := range applied.Entries {
		if kind, served := l.found(l.target.Kinds().Preferred(ctx, entry.GroupKind())); served {
			objects = append(objects, plan.Object{ID: entry.ID, Kind: kind})
		}
	}
	return objects
}
