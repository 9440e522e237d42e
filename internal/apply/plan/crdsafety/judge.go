// SPDX-License-Identifier: Apache-2.0

package crdsafety

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	names "k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/validations"
	"sigs.k8s.io/crdify/pkg/validators/crd"
)

// Change is one change of a CRD.
type Change struct {
	// Version is "v1", or "v1 -> v2" between two served versions without
	// conversion; empty when the whole CRD is meant.
	Version string
	// Path is that of the field, as .spec.size; empty when no field is meant.
	Path string
	// What changed, as "field removed". One line, bounded.
	What string
}

// String is the change for people: "v1 .spec.size: field removed".
func (c Change) String() string {
	where := strings.TrimSpace(c.Version + " " + c.Path)
	if where == "" {
		return c.What
	}
	return where + ": " + c.What
}

// Judgement is what came out, sorted and without repetitions.
type Judgement struct {
	// Breaking changes are those that users may not survive.
	Breaking []Change
	// Notable changes break nothing but alter what an unchanged resource means:
	// defaults.
	Notable []Change
}

type version = apiextensionsv1.CustomResourceDefinitionVersion

// Judge compares the CRD on the cluster with the one that is to replace it. An
// error means that one of the two does not read as a CRD.
func Judge(live, desired *unstructured.Unstructured) (Judgement, error) {
	was, err := decode(live)
	if err != nil {
		return Judgement{}, fmt.Errorf("reading the live CustomResourceDefinition: %w", err)
	}
	will, err := decode(desired)
	if err != nil {
		return Judgement{}, fmt.Errorf("reading the desired CustomResourceDefinition: %w", err)
	}
	judgement := Judgement{}
	judgement.Breaking = definitionChanges(was, will)
	for _, result := range crd.New(crd.WithComparators(definitionComparators()...)).Validate(was, will) {
		judgement.add("", "", result)
	}
	schemas := schemaChanges(was, will)
	return Judgement{
		Breaking: arranged(append(judgement.Breaking, schemas.Breaking...)),
		Notable:  arranged(schemas.Notable),
	}, nil
}

// schemaChanges compares the schemas of each version that is in both, and, where
// nothing converts, those of the served versions with one another.
func schemaChanges(was, will *apiextensionsv1.CustomResourceDefinition) Judgement {
	judgement := Judgement{}
	for i := range was.Spec.Versions {
		before := &was.Spec.Versions[i]
		if after := validations.GetCRDVersionByName(will, before.Name); after != nil {
			judgement.compare(before.Name, before, after)
		}
	}
	if !byWebhook(will) {
		known := pairs(was).Breaking
		judgement.Breaking = append(judgement.Breaking, slices.DeleteFunc(pairs(will).Breaking, func(c Change) bool {
			return slices.Contains(known, c)
		})...)
	}
	return judgement
}

// pairs compares each served version with those that are newer by name: without
// conversion one resource is all of them, and keeps only what all have.
func pairs(of *apiextensionsv1.CustomResourceDefinition) Judgement {
	versions := slices.DeleteFunc(slices.Clone(of.Spec.Versions), func(v version) bool { return !v.Served })
	slices.SortFunc(versions, func(a, b version) int { return names.CompareKubeAwareVersionStrings(a.Name, b.Name) })
	judgement := Judgement{}
	for i := range versions {
		for j := range versions[i+1:] {
			newer := &versions[i+1+j]
			judgement.compare(versions[i].Name+" -> "+newer.Name, &versions[i], newer)
		}
	}
	return judgement
}

// compare has crdify walk what differs between two schemas.
func (j *Judgement) compare(name string, was, will *version) {
	before, after := differing(was.Schema.OpenAPIV3Schema, will.Schema.OpenAPIV3Schema)
	if before == nil {
		return
	}
	results := validations.CompareVersions(versionOf(before), versionOf(after), config.EnforcementPolicyNone, schemaComparators()...)
	for _, of := range results {
		if composed(of.Property) {
			continue // judged as a whole, with the schema that it is composed of
		}
		for _, result := range of.ComparisonResults {
			j.add(name, pathOf(of.Property), result)
		}
	}
}

func versionOf(s *schema) version {
	return version{Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: s}}
}

func (j *Judgement) add(version, path string, result validations.ComparisonResult) {
	for _, what := range result.Errors {
		j.Breaking = append(j.Breaking, Change{Version: version, Path: path, What: words(what)})
	}
	for _, what := range result.Warnings {
		j.Notable = append(j.Notable, Change{Version: version, Path: path, What: words(what)})
	}
}

// arranged sorts changes and drops repetitions.
func arranged(changes []Change) []Change {
	slices.SortFunc(changes, func(a, b Change) int {
		return cmp.Or(strings.Compare(a.Version, b.Version), strings.Compare(a.Path, b.Path), strings.Compare(a.What, b.What))
	})
	return slices.Compact(changes)
}

// mostVersions bounds the work: each served version is compared with each other.
const mostVersions = 50

func decode(object *unstructured.Unstructured) (*apiextensionsv1.CustomResourceDefinition, error) {
	decoded := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, decoded); err != nil {
		return nil, err
	}
	if count := len(decoded.Spec.Versions); count > mostVersions {
		return nil, fmt.Errorf("it has %d versions, and at most %d can be compared", count, mostVersions)
	}
	for i := range decoded.Spec.Versions {
		of := &decoded.Spec.Versions[i]
		if of.Schema == nil {
			of.Schema = &apiextensionsv1.CustomResourceValidation{}
		}
		if of.Schema.OpenAPIV3Schema == nil {
			of.Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
		}
		simplify(of.Schema.OpenAPIV3Schema)
	}
	return decoded, nil
}
