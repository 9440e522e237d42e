// SPDX-License-Identifier: Apache-2.0

// Package convert turns the files of a bundle into the objects to apply. It is pure: the same files and options give the
// same bytes, on every machine, at every time; there is no network, cluster, clock or environment in it.
package convert

import (
	"fmt"
	"io/fs"
	"path"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/satchel-dev/satchel/internal/convert/helm"
	"github.com/satchel-dev/satchel/internal/convert/kustomize"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/internal/convert/overlay"
	"github.com/satchel-dev/satchel/internal/convert/plain"
	"github.com/satchel-dev/satchel/internal/convert/registryv1"
	"github.com/satchel-dev/satchel/internal/convert/registryv1/bundle"
)

// Format names a kind of bundle.
type Format string

// Formats that Convert knows.
const (
	PlainV0    Format = "plain+v0"
	RegistryV1 Format = "registry+v1"
	Kustomize  Format = "kustomize"
	Helm       Format = "helm"
)

// Limits bound what a bundle's manifests may be.
type Limits = manifest.Limits

// DefaultLimits are the limits that apply by default.
func DefaultLimits() Limits { return manifest.DefaultLimits() }

// Problem is one reason why a bundle is refused; see there for what it may quote.
type Problem = manifest.Problem

// Error holds all reasons at once, sorted. It is the type of every error of Convert.
type Error = manifest.Error

// Certificate is one that the objects mount and trust without containing it.
type Certificate = registryv1.Certificate

// Requirement is something that a bundle needs of the cluster.
type Requirement = bundle.Requirement

// Package is what a bundle is a version of.
type Package = bundle.Package

// Hook is an object of a chart that runs at points in the life of a deployment instead of being part of it.
type Hook struct {
	Object *unstructured.Unstructured
	// Events at which it runs: pre-install, post-install, pre-upgrade, post-upgrade, pre-delete, post-delete; at least one.
	Events []string
	// Weight orders the hooks of an event; the lowest runs first.
	Weight int
	// DeletePolicies say when it is deleted: before-hook-creation, hook-succeeded, hook-failed; at least one.
	DeletePolicies []string
}

// Options say how a bundle becomes objects.
type Options struct {
	// Format of the bundle; empty: it is detected, and refused where the tree leaves a doubt.
	Format Format
	// Path is the folder inside the tree that holds the bundle; empty: the tree itself, or the only folder in it (see Unwrap).
	// A kustomization may be based on folders beside it, within the tree. Of a chart it may also be the package.
	Path string
	// InstallNamespace is where objects go that carry no namespace. Required.
	InstallNamespace string
	// RegistryV1 are the options of that format; its InstallNamespace is taken from here.
	RegistryV1 registryv1.Options
	// Helm are the options of that format.
	Helm helm.Options
	// ValuesFiles are files of the bundle with values for a chart, relative to its root, not to Path. They are merged in this order
	// over the values of the chart, and those of Helm over them.
	ValuesFiles []string
	// Overlay adapts what a bundle of any format becomes.
	Overlay overlay.Options
	// Limits that are zero take their defaults.
	Limits Limits
}

// Result is what a bundle becomes.
type Result struct {
	Format Format
	// Objects in a stable order: plain+v0 as written (file, document), registry+v1 by family, kustomize as it gives them,
	// helm with crds/ first, then by file and document. Each has apiVersion, kind and
	// name; no status and no metadata that a server fills in. Namespaced ones have a namespace, cluster-scoped ones none.
	Objects []*unstructured.Unstructured
	// Hooks of a chart, none of them among Objects, normalised like them (Undecided may hold their objects), in the order in
	// which Helm runs those of an event: by weight, name and kind.
	Hooks []Hook
	// Ranks say in which order the Objects of plain+v0 are to be applied, one each: the numbers that the names of their files
	// begin with. Those without one come last. Other formats have none.
	Ranks []int
	// Origins are the files that the Objects were read or made from, one each, as seen from the root of the tree; "" where that is not
	// one file. Kustomize has none. Root is the folder, or package, that all files of the bundle are in; "." is the tree itself.
	Origins []string
	Root    string
	// Undecided are the Objects without a namespace of kinds that neither Kubernetes nor the bundle defines: the caller,
	// which knows the cluster, sets InstallNamespace on them where their kind is namespaced.
	Undecided []*unstructured.Unstructured
	// Warnings say what was left out or inferred; sorted.
	Warnings []string
	// RequiredNamespaces must exist before the objects are applied: those the objects live in, watch namespaces too, without
	// those that the bundle itself contains; sorted.
	RequiredNamespaces []string
	// Certificates that the caller issues before it applies the objects, sorted by Secret: those of self-signed webhooks.
	Certificates []Certificate
	// Requirements that the cluster has to meet for the bundle to work, sorted.
	Requirements []Requirement
	// Package that the bundle is a version of; of other formats nothing is known.
	Package Package
	// Version of the bundle: that of the package, or of the chart; "" for the other formats.
	Version string
}

// Convert reads a bundle and returns its objects. It fails with an *Error that lists every problem found.
func Convert(files fs.FS, o Options) (Result, error) {
	e, problem := enter(files, o.Path)
	if problem != nil {
		return Result{}, manifest.AsError([]Problem{*problem})
	}
	if problems := checkNamespace(o.InstallNamespace); problems != nil {
		return Result{}, manifest.AsError(problems)
	}
	format, problem := formatOf(e, o)
	if problem != nil {
		return Result{}, manifest.AsError([]Problem{*problem})
	}
	result, err := e.convert(format, o)
	result.Root = e.place()
	for i, file := range result.Origins {
		if file != "" {
			result.Origins[i] = path.Join(result.Root, file)
		}
	}
	return result, err
}

func (e entered) convert(format Format, o Options) (Result, error) {
	switch format {
	case PlainV0:
		return convertPlain(e.root, o)
	case Kustomize:
		return convertKustomize(e, o)
	case Helm:
		return convertHelm(e, o)
	}
	return convertRegistryV1(e.root, o)
}

func checkNamespace(name string) []Problem {
	var problems []Problem
	for _, message := range validation.IsDNS1123Label(name) {
		problems = append(problems, Problem{Rule: "namespace", Message: fmt.Sprintf("the install namespace %q is not valid: %s", name, message),
			Remedy: "correct spec.target.namespace"})
	}
	return problems
}

func convertPlain(files fs.FS, o Options) (Result, error) {
	bundle, problems := plain.Parse(files, o.Limits)
	adapted, problems := overlaid(bundle.Manifests, problems, o, registryv1.Rendered{})
	n := normalizer{namespace: o.InstallNamespace, limits: o.Limits}
	problems = append(problems, n.run(adapted.Manifests)...)
	if err := manifest.AsError(problems); err != nil {
		return Result{}, err
	}
	result := n.result()
	result.Format, result.Warnings, result.Ranks = PlainV0, warnings(bundle.Warnings, adapted.Warnings, n.warnings), ranks(adapted.Manifests)
	return result, nil
}

func convertKustomize(e entered, o Options) (Result, error) {
	built, problems := kustomize.Convert(e.base, e.folder, o.Limits)
	adapted, problems := overlaid(built.Manifests, problems, o, registryv1.Rendered{})
	n := normalizer{namespace: o.InstallNamespace, limits: o.Limits}
	problems = append(problems, n.run(adapted.Manifests)...)
	if err := manifest.AsError(problems); err != nil {
		return Result{}, err
	}
	result := n.result()
	result.Format, result.Warnings, result.Origins = Kustomize, warnings(adapted.Warnings, n.warnings), nil
	return result, nil
}

func convertRegistryV1(files fs.FS, o Options) (Result, error) {
	options := o.RegistryV1
	options.InstallNamespace = o.InstallNamespace
	rendered, err := registryv1.Convert(files, options, o.Limits)
	if err != nil {
		return Result{}, err
	}
	problems := manifest.Identities(rendered.Manifests) // some names are made of others
	adapted, problems := overlaid(rendered.Manifests, problems, o, rendered)
	n := normalizer{namespace: o.InstallNamespace, limits: o.Limits}
	if err := manifest.AsError(append(problems, n.run(adapted.Manifests)...)); err != nil {
		return Result{}, err
	}
	result := n.result(rendered.Namespaces...)
	result.Format = RegistryV1
	result.Warnings = warnings(rendered.Warnings, adapted.Warnings, n.warnings)
	result.Certificates = served(rendered.Certificates, adapted)
	result.Requirements = rendered.Requirements
	result.Package = rendered.Package
	result.Version = rendered.Package.Version
	return result, nil
}
