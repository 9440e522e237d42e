// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// Result is the translation of the manifests.
type Result struct {
	// Items are what was migrated, in the order of the files.
	Items []Item
	// Idle are objects that are not translated.
	Idle []Idle
}

// Item is one object that was migrated.
type Item struct {
	// From names it, with file and document.
	From string
	// Objects are its translation: a BundleDeployment, BundleSource, BundleCatalog or BundleImagePolicies.
	Objects []any
	// Notes are fields without counterpart, and what the user has to do.
	Notes []string
	// RBAC are the arguments of the rbac command for the ServiceAccount; nil if it needs no permissions.
	RBAC *RBAC
	// Adopts tells that the installed objects are to be adopted.
	Adopts bool
}

// RBAC are the arguments of the rbac command.
type RBAC struct {
	// Bundle is the image; empty where only the source knows it.
	Bundle string
	// Format of the bundle, where it is known.
	Format string
	// InstallNamespace, Namespace, Name and Account are of the BundleDeployment.
	InstallNamespace, Namespace, Name, Account string
	// Path inside the image.
	Path string
	// WatchNamespaces of the operator.
	WatchNamespaces []string
	// CertificateProvider is what is chosen for the webhooks; empty for the default.
	CertificateProvider string
}

// Idle is an object of which nothing is made, and why.
type Idle struct{ From, Why string }

// Migrate translates manifests. Whatever keeps one from being translated is in the error, a *manifest.Error.
func Migrate(manifests []manifest.Manifest, options Options) (Result, error) {
	in := &input{options: options}
	for _, m := range manifests {
		in.sort(m)
	}
	result := Result{}
	for _, m := range in.items {
		r := &reading{Manifest: m, in: in}
		object := m.Object.DeepCopy().Object
		r.spec, r.status = fieldsOf(r, object, "spec"), fieldsOf(r, object, "status")
		in.checkName(r)
		migrators[kindOf(m.Object)](in, r)
		r.spec.rest()
		in.problems = append(in.problems, r.problems...)
		result.Items = append(result.Items, Item{From: place(m), Objects: r.made, Notes: r.notes, RBAC: r.rights, Adopts: r.adopts})
	}
	in.problems = append(in.problems, twice(result.Items, in.items)...)
	in.unusedImages()
	result.Idle = append(in.idle, in.leftOver()...)
	return result, manifest.AsError(in.problems)
}

// checkName wants a name that can be the name of a Satchel object.
func (in *input) checkName(r *reading) {
	if name := r.Object.GetName(); len(name) > 63 {
		r.refuse(ruleName, fmt.Sprintf("the name has %d characters, and those of Satchel's objects at most 63", len(name)),
			"give it a shorter name in the manifest")
	}
}

// twice finds objects that would be the same one.
func twice(items []Item, from []manifest.Manifest) []manifest.Problem {
	var problems []manifest.Problem
	seen := map[string]string{}
	for i, item := range items {
		for _, made := range item.Objects {
			id := identity(made)
			if first, found := seen[id]; found {
				problems = append(problems, from[i].Problem(ruleName, "it would become "+id+", as "+first+" does",
					"migrate them apart, into different namespaces, or rename one"))
			} else {
				seen[id] = item.From
			}
		}
	}
	return problems
}

// unusedImages refuses images for what is not there, which are typing errors.
func (in *input) unusedImages() {
	for _, name := range slices.Sorted(maps.Keys(in.options.Images)) {
		if !slices.ContainsFunc(in.items, func(m manifest.Manifest) bool {
			return contains(withBundle, kindOf(m.Object)) && named(m, name)
		}) {
			in.problems = append(in.problems, manifest.Problem{Rule: ruleMissing,
				Message: "an image is given for " + quoted(name) + ", and nothing that is migrated has that name", Remedy: "correct the name"})
		}
	}
}

// named tells whether NAME or NAMESPACE/NAME means a manifest.
func named(m manifest.Manifest, name string) bool {
	return name == m.Object.GetName() || name == m.Object.GetNamespace()+"/"+m.Object.GetName()
}

// image is the image that the user gave for an object.
func (in *input) image(m manifest.Manifest) string {
	return cmp.Or(in.options.Images[m.Object.GetNamespace()+"/"+m.Object.GetName()], in.options.Images[m.Object.GetName()])
}

// leftOver are objects that belong to nothing that was migrated.
func (in *input) leftOver() []Idle {
	var idle []Idle
	for _, group := range []struct {
		kind, of string
		objects  []manifest.Manifest
	}{
		{"Subscription", "namespace", in.groups}, {"Subscription", "namespace", in.plans}, {"Subscription", "namespace", in.versions},
	} {
		for _, m := range group.objects {
			if !slices.ContainsFunc(in.items, func(item manifest.Manifest) bool {
				return item.Object.GetKind() == group.kind && sameNamespace(item, m)
			}) {
				idle = append(idle, Idle{From: place(m), Why: "there is no Subscription of its namespace beside it, and that is what is migrated"})
			}
		}
	}
	for _, m := range in.revisions {
		if !slices.ContainsFunc(in.items, func(item manifest.Manifest) bool { return revises(m, item) }) {
			idle = append(idle, Idle{From: place(m), Why: "the ClusterExtension that it belongs to is not there, and that is what is migrated"})
		}
	}
	for _, m := range in.bundles {
		if !slices.ContainsFunc(in.items, func(item manifest.Manifest) bool { return madeBy(m, item) }) {
			idle = append(idle, Idle{From: place(m), Why: "the BundleDeployment that it belongs to is not there, and that is what is migrated"})
		}
	}
	return idle
}

// sameNamespace takes a missing namespace for any: manifests often leave it to kubectl.
func sameNamespace(a, b manifest.Manifest) bool {
	return a.Object.GetNamespace() == b.Object.GetNamespace() || a.Object.GetNamespace() == "" || b.Object.GetNamespace() == ""
}

// place names a manifest for people.
func place(m manifest.Manifest) string {
	text := m.Object.GetKind() + " " + m.Object.GetName()
	if namespace := m.Object.GetNamespace(); namespace != "" {
		text = m.Object.GetKind() + " " + namespace + "/" + m.Object.GetName()
	}
	switch {
	case m.File == "":
		return text
	case m.Document > 0:
		return fmt.Sprintf("%s (%s, document %d)", text, m.File, m.Document)
	}
	return fmt.Sprintf("%s (%s)", text, m.File)
}
