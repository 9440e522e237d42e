// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"io/fs"
	"slices"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/internal/convert/registryv1/bundle"
	"github.com/satchel-dev/satchel/internal/convert/registryv1/deploymentconfig"
	"github.com/satchel-dev/satchel/internal/convert/registryv1/validate"
)

// Rendered is what a bundle becomes.
type Rendered struct {
	// Manifests in the order of their families, each with the file it comes from.
	Manifests []manifest.Manifest
	Warnings  []string
	// Namespaces that must exist: where the operator runs and what it watches.
	Namespaces []string
	// Certificates to issue, sorted by Secret: under SelfSigned one for each Deployment that serves webhooks.
	Certificates []Certificate
	// Requirements that the cluster has to meet, sorted.
	Requirements []bundle.Requirement
	// Package that the bundle is a version of.
	Package bundle.Package
	// Secrets are those of the install namespace that serving certificates are in, for every provider.
	Secrets []string
	// RelatedImages are those that the bundle says it uses, in the order of the ClusterServiceVersion.
	RelatedImages []string
}

// Convert reads, validates and renders a bundle. Its error is a *manifest.Error with all problems that could be found: of
// a bundle that cannot be read in full that part is validated which can, and one that is not valid is not rendered.
func Convert(files fs.FS, o Options, limits manifest.Limits) (Rendered, error) {
	b, problems := bundle.Parse(files, limits, o.LastKeys)
	if o.RequirementsOptional {
		problems = warnRequirements(b, problems)
	}
	if len(problems) > 0 {
		return Rendered{}, manifest.AsError(append(problems, validate.CheckPart(b, problems)...))
	}
	return Render(b, o)
}

// warnRequirements makes warnings of the problems with requirements (P13), and returns the others.
func warnRequirements(b *bundle.Bundle, problems []manifest.Problem) []manifest.Problem {
	return slices.DeleteFunc(problems, func(p manifest.Problem) bool {
		if p.Rule != bundle.RuleRequirements {
			return false
		}
		b.Warn("%s: %s; it is ignored, since requirements are not enforced", p.File, p.Message)
		return true
	})
}

// Render makes the objects of a bundle; it takes ownership of it.
func Render(b *bundle.Bundle, o Options) (Rendered, error) {
	problems := validate.Check(b)
	targets, more := targetNamespaces(b, o)
	config, wrong := deploymentconfig.Read(o.DeploymentConfig)
	problems = slices.Concat(problems, more, checkOptions(b, o), wrong)
	if err := manifest.AsError(problems); err != nil {
		return Rendered{}, err
	}
	in := newInput(b, o, targets)
	in.config = config
	var products []product
	for _, g := range generators {
		objects, more := g.generate(in)
		problems = append(problems, more...)
		for _, m := range objects {
			products = append(products, product{Manifest: m, bundled: g.bundled})
		}
	}
	made, more := in.mergeDuplicates(products)
	more = append(more, in.refuseSecrets()...)
	if err := manifest.AsError(append(problems, more...)); err != nil {
		return Rendered{}, err
	}
	slices.Sort(b.Warnings)
	return Rendered{
		Manifests: made, Warnings: slices.Compact(b.Warnings), Namespaces: in.namespaces(), Certificates: in.certificates(),
		Requirements: b.Requirements, Package: b.Identify(), RelatedImages: b.RelatedImages(), Secrets: in.secrets(),
	}, nil
}
