// SPDX-License-Identifier: Apache-2.0

// Package registryv1 renders OLM's registry+v1 bundles to plain objects, without OLM.
//
// Two tables define the format: validators look for what is wrong with a bundle, generators make the objects, family by
// family. All are pure functions, each in the file of its family. Names, contents and omissions follow OLM v1, so that a
// user can move between the two; where that has faults, the documentation lists what is done differently.
//
// Problems name rules by the letters of the rule book: P parsing, C what is supported, N namespaces, V validity, O the
// objects in common, S service accounts, R permissions, A other objects, K custom resource definitions, D deployments,
// W webhooks and their certificates.
package registryv1

import (
	"fmt"
	"io/fs"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// Bundle is a registry+v1 tree as it was read.
type Bundle struct {
	// Package is the name of the OLM package, from the annotations.
	Package string
	// CSV describes the operator; its annotations hold the merged properties.
	CSV v1alpha1.ClusterServiceVersion
	// CRDs are apiextensions.k8s.io/v1, whatever they were written in, without status.
	CRDs []manifest.Manifest
	// Others are all other objects, as written.
	Others []manifest.Manifest
	// Requirements are what the bundle needs and does not bring itself, sorted.
	Requirements []Requirement
	// Warnings say what was left out or inferred.
	Warnings []string

	properties []property // of the CSV and of the file

	csv    manifest.Manifest            // where the CSV was read
	read   bool                         // the CSV could be read
	byName map[string]manifest.Manifest // CRDs, made when first asked for
}

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
	Requirements []Requirement
	// Package that the bundle is a version of.
	Package Package
	// Secrets are those of the install namespace that serving certificates are in, for every provider.
	Secrets []string
	// RelatedImages are those that the bundle says it uses, in the order of the ClusterServiceVersion.
	RelatedImages []string
}

// Convert reads, validates and renders a bundle. Its error is a *manifest.Error with all problems that could be found: of
// a bundle that cannot be read in full that part is validated which can, and one that is not valid is not rendered.
func Convert(files fs.FS, o Options, limits manifest.Limits) (Rendered, error) {
	bundle, problems := Parse(files, limits)
	if len(problems) > 0 {
		return Rendered{}, manifest.AsError(append(problems, validatePart(bundle, problems)...))
	}
	return Render(bundle, o)
}

// Render makes the objects of a bundle; it takes ownership of it.
func Render(bundle *Bundle, o Options) (Rendered, error) {
	problems := Validate(bundle)
	targets, more := targetNamespaces(bundle, o)
	config, wrong := ReadDeploymentConfig(o.DeploymentConfig)
	problems = slices.Concat(problems, more, checkOptions(bundle, o), wrong)
	if err := manifest.AsError(problems); err != nil {
		return Rendered{}, err
	}
	in := newInput(bundle, o, targets)
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
	slices.Sort(bundle.Warnings)
	return Rendered{
		Manifests: made, Warnings: slices.Compact(bundle.Warnings), Namespaces: in.namespaces(), Certificates: in.certificates(),
		Requirements: bundle.Requirements, Package: bundle.identify(), RelatedImages: bundle.relatedImages(), Secrets: in.secrets(),
	}, nil
}

// Validate runs all validators and returns all that they find.
func Validate(bundle *Bundle) []manifest.Problem {
	var problems []manifest.Problem
	for _, v := range validators {
		problems = append(problems, v.check(bundle)...)
	}
	return problems
}

// problem is one of the CSV.
func (b *Bundle) problem(rule, remedy, message string, args ...any) manifest.Problem {
	return b.csv.Problem(rule, fmt.Sprintf(message, args...), remedy)
}

func (b *Bundle) warn(message string, args ...any) {
	b.Warnings = append(b.Warnings, fmt.Sprintf(message, args...))
}

// deployments are what the CSV installs.
func (b *Bundle) deployments() []v1alpha1.StrategyDeploymentSpec {
	return b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
}

// webhooks of the given types, all without any, in the order of the CSV.
func (b *Bundle) webhooks(types ...v1alpha1.WebhookAdmissionType) []v1alpha1.WebhookDescription {
	if len(types) == 0 {
		return b.CSV.Spec.WebhookDefinitions
	}
	var out []v1alpha1.WebhookDescription
	for _, w := range b.CSV.Spec.WebhookDefinitions {
		if slices.Contains(types, w.Type) {
			out = append(out, w)
		}
	}
	return out
}

func (b *Bundle) relatedImages() []string {
	var images []string
	for _, related := range b.CSV.Spec.RelatedImages {
		images = append(images, related.Image)
	}
	return images
}
