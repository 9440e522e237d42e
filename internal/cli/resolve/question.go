// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/manifests"
	"github.com/satchel-dev/satchel/internal/resolver"
)

// question is what is resolved, and for whom.
type question struct {
	query resolver.Query
	// deployment is the BundleDeployment with the spec.catalog; nil for a package of the command line.
	deployment *v1alpha1.BundleDeployment
	// bundle and image are what the deployment is at now: its lock, or what its status says; empty if that is not known.
	bundle, image string
	// unversioned says that upgrades start from the bundle of the lock. Only a catalog knows its version.
	unversioned bool
}

// readFunc reads a question.
type readFunc func(ctx context.Context, a *kit.App) (*question, error)

// reader checks the arguments. What it returns reads files, or the cluster.
func (o *options) reader(cmd *cobra.Command, args []string) (readFunc, error) {
	installed, err := parseInstalled(o.installed)
	if err != nil {
		return nil, kit.UsageError(cmd, "%v", err)
	}
	var read readFunc
	switch target, isDeployment := deploymentOf(args); {
	case len(o.files) > 0 && len(args) > 1:
		return nil, kit.UsageError(cmd, "with -f, resolve takes the name of one BundleDeployment, got %s", kit.Given(args))
	case len(o.files) > 0:
		read = o.declared(strings.Join(args, ""))
	case isDeployment:
		read = ofCluster(target)
	case len(args) != 1 || args[0] == "" || strings.Contains(args[0], "/"):
		return nil, kit.UsageError(cmd, "resolve needs one package, -f with a BundleDeployment, or deployment/NAME, got %s", kit.Given(args))
	default:
		return func(context.Context, *kit.App) (*question, error) {
			return o.ofPackage(args[0], installed), nil
		}, nil
	}
	for _, flag := range []string{"version", "channel", "upgrade-policy", "downgrade"} {
		if cmd.Flag(flag).Changed {
			return nil, kit.UsageError(cmd, "--%s is about a package of the command line, not about a BundleDeployment with its spec.catalog", flag)
		}
	}
	return func(ctx context.Context, a *kit.App) (*question, error) {
		asked, err := read(ctx, a)
		if err == nil && installed != nil {
			asked.query.Installed, asked.unversioned = installed, false
		}
		return asked, err
	}, nil
}

// deploymentOf reads deployment/NAME and deployment NAME. A single word is a package.
func deploymentOf(args []string) (t kit.Target, isDeployment bool) {
	if len(args) == 1 && !strings.Contains(args[0], "/") {
		return t, false
	}
	targets := kit.ParseTargets(args)
	if len(targets) != 1 || targets[0].Name == "" || targets[0].Kind.Name != kit.Deployments.Name {
		return t, false
	}
	return targets[0], true
}

// ofPackage is what the flags ask for.
func (o *options) ofPackage(name string, installed *resolver.Installed) *question {
	return &question{query: resolver.Query{
		Package: name, Range: o.version, Channels: o.channels,
		UpgradePolicy: resolver.UpgradePolicy(o.upgradePolicy), Downgrade: resolver.Downgrade(o.downgrade), Installed: installed,
	}}
}

// declared reads a BundleDeployment of the files. Upgrades start from its lock.
func (o *options) declared(name string) readFunc {
	return func(ctx context.Context, a *kit.App) (*question, error) {
		set, err := manifests.Read(o.files, a.Streams.In)
		if err != nil {
			return nil, err
		}
		d, err := set.Deployment(ctx, name, "")
		if err != nil {
			return nil, err
		}
		asked, err := questionFromSpec(d)
		if err != nil || d.Spec.Catalog.Lock == nil {
			return asked, err
		}
		lock := d.Spec.Catalog.Lock
		asked.bundle, asked.image = lock.Bundle, lock.Image
		if known := asked.query.Installed; known == nil || known.Bundle != lock.Bundle {
			asked.query.Installed, asked.unversioned = &resolver.Installed{Bundle: lock.Bundle}, true
		}
		return asked, nil
	}
}

// ofCluster reads a BundleDeployment of the cluster. Upgrades start from what its status says is installed.
func ofCluster(t kit.Target) readFunc {
	return func(ctx context.Context, a *kit.App) (*question, error) {
		c, err := a.Connect()
		if err != nil {
			return nil, err
		}
		d, err := c.Deployment(ctx, t)
		if err != nil {
			return nil, err
		}
		asked, err := questionFromSpec(d)
		if err != nil || d.Status.Catalog == nil {
			return asked, err
		}
		if installed := d.Status.Catalog.Installed; installed != nil {
			asked.query.Installed = &resolver.Installed{Bundle: installed.Bundle, Version: installed.Version}
		}
		if resolved := d.Status.Catalog.Resolved; resolved != nil {
			asked.bundle, asked.image = resolved.Bundle, resolved.Image
		}
		return asked, nil
	}
}

// questionFromSpec is the question of spec.catalog.
func questionFromSpec(d *v1alpha1.BundleDeployment) (*question, error) {
	wanted := d.Spec.Catalog
	if wanted == nil {
		return nil, fmt.Errorf("BundleDeployment %s has no spec.catalog, so there is nothing to resolve: its bundle is that of its source", d.Name)
	}
	asked := &question{deployment: d, query: resolver.Query{
		Package: wanted.Package, Range: wanted.Version, Channels: wanted.Channels,
		UpgradePolicy: resolver.UpgradePolicy(wanted.UpgradePolicy), Downgrade: resolver.Downgrade(wanted.Downgrade),
	}}
	if known := wanted.Installed; known != nil {
		asked.query.Installed = &resolver.Installed{Bundle: known.Bundle, Version: known.Version}
	}
	return asked, nil
}

// start finds the version that upgrades start from, where only the name of the bundle is known.
func (q *question) start(all []resolver.Catalog) error {
	if !q.unversioned {
		return nil
	}
	for _, c := range all {
		if c.Package == nil {
			continue
		}
		for _, b := range c.Package.Bundles {
			if b.Name == q.bundle && b.VersionProblem == "" {
				q.query.Installed = &resolver.Installed{Bundle: b.Name, Version: b.Version}
				return nil
			}
		}
	}
	return fmt.Errorf("no catalog has the bundle %s of package %s, from which upgrades start, so its version is not known: give --installed %s@VERSION",
		q.bundle, q.query.Package, q.bundle)
}

// change says how the answer differs from what the deployment is at; "" if it does not, or if nothing is known of it.
func (q *question) change(answer resolver.Answer) string {
	switch {
	case q.bundle == "":
		return ""
	case q.bundle != answer.Bundle:
		return q.bundle + " -> " + answer.Bundle
	case !sameImage(answer.Image, q.image):
		return answer.Bundle + " has another image: " + q.image + " -> " + answer.Image
	}
	return ""
}

// sameImage tells whether a catalog names an image by the same digest. An image that it names by a tag may be the same.
func sameImage(listed, now string) bool {
	_, digest, byDigest := strings.Cut(listed, "@")
	_, nowDigest, known := strings.Cut(now, "@")
	return !byDigest || !known || digest == nowDigest
}

// notes are what else the deployment does with the answer.
func (q *question) notes(answer resolver.Answer) []string {
	d := q.deployment
	if d == nil || d.Status.Rejected.Revision == "" || q.bundle != answer.Bundle {
		return nil
	}
	return []string{fmt.Sprintf("BundleDeployment %s was rolled back from %s, and does not install it again until its spec is changed or a reconcile is requested", d.Name, answer.Bundle)}
}
