// SPDX-License-Identifier: Apache-2.0

package crdsafety

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	order "k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/crdify/pkg/validations"
)

// definition is a CRD, decoded without its schemas and irrelevant fields.
type definition struct {
	*apiextensionsv1.CustomResourceDefinition
	roots map[string]schema // by version
	sizes map[string]int    // how many schemas a version has
}

// read decodes a CRD, or returns the reason why it is not judged.
func read(object *unstructured.Unstructured) (*definition, string) {
	if beyond := measured(object).beyond(); beyond != "" {
		return nil, beyond
	}
	d := &definition{&apiextensionsv1.CustomResourceDefinition{}, map[string]schema{}, map[string]int{}}
	spec := only(object.Object["spec"], "scope", "preserveUnknownFields", "names", "conversion", "versions")
	spec["names"] = only(spec["names"], "kind")
	spec["conversion"] = only(spec["conversion"], "strategy")
	versions, _ := spec["versions"].([]any)
	spec["versions"] = d.take(versions)
	plain := map[string]any{"spec": spec, "status": only(object.Object["status"], "storedVersions")}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(plain, d.CustomResourceDefinition); err != nil {
		return nil, "does not read as a CustomResourceDefinition: " + err.Error()
	}
	return d, ""
}

// only returns some of the fields of an object.
func only(raw any, names ...string) map[string]any {
	all, _ := raw.(map[string]any)
	some := map[string]any{}
	for _, name := range names {
		if value, found := all[name]; found {
			some[name] = value
		}
	}
	return some
}

// take stores the schemas of the versions, and returns the rest of them.
func (d *definition) take(versions []any) []any {
	rest := make([]any, len(versions))
	for i, raw := range versions {
		version := only(raw, "name", "served", "storage", "subresources")
		rest[i] = version
		name, _ := version["name"].(string)
		if _, twice := d.roots[name]; twice {
			continue
		}
		var s sizes
		s.schema(root(raw), 1)
		d.roots[name], d.sizes[name] = rootOf(raw), s[schemas]
	}
	return rest
}

// compared are two schemas to compare, and the schemas that their versions had before.
type compared struct {
	version     string // in words
	now, before pair
	steps       int  // the maximum number of schemas to visit
	statusApart bool // see comparison
}

// comparisons are those of each version that was in use and is in both CRDs, and, without
// conversion, of each version in use with the next newer one: a resource is stored in any of them
// then, and keeps only the fields that all have. A loss over several steps is a
// loss in one of them. Differences that the two versions had before are not reported.
func comparisons(was, will *definition) []compared {
	var all []compared
	before := sets.New(was.inUse(was.Status.StoredVersions)...)
	for _, version := range was.Spec.Versions {
		if after, found := will.roots[version.Name]; found && before.Has(version.Name) {
			all = append(all, compared{
				version: words(version.Name), now: pair{was.roots[version.Name], after}, steps: was.sizes[version.Name],
				statusApart: was.statusApart(version.Name) && will.statusApart(version.Name),
			})
		}
	}
	if byWebhook(will.CustomResourceDefinition) {
		return all
	}
	inUse := will.inUse(was.Status.StoredVersions)
	for i := 1; i < len(inUse); i++ {
		older, newer := inUse[i-1], inUse[i]
		all = append(all, compared{
			version: words(older + " -> " + newer), now: will.pair(older, newer), before: was.pair(older, newer), steps: 2 * will.sizes[older],
			statusApart: will.statusApart(older) && will.statusApart(newer),
		})
	}
	return all
}

// statusApart tells whether a version has the status subresource.
func (d *definition) statusApart(name string) bool {
	of := validations.GetCRDVersionByName(d.CustomResourceDefinition, name)
	if of == nil {
		return false
	}
	status, _ := subresources(of)
	return status
}

// pair returns the schemas of two versions; empty when one is missing.
func (d *definition) pair(older, newer string) pair {
	before, found := d.roots[older]
	after, foundToo := d.roots[newer]
	if !found || !foundToo {
		return pair{}
	}
	return pair{before, after}
}

// inUse are the versions that are served or stored, the oldest first.
func (d *definition) inUse(stored []string) []string {
	storedIn := sets.New(stored...)
	var all []string
	for _, version := range d.Spec.Versions {
		if version.Served || version.Storage || storedIn.Has(version.Name) {
			all = append(all, version.Name)
		}
	}
	slices.SortFunc(all, order.CompareKubeAwareVersionStrings)
	return slices.Compact(all)
}
