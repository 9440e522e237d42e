// SPDX-License-Identifier: Apache-2.0

package crdsafety

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/validations"
	"sigs.k8s.io/crdify/pkg/validations/crd/scope"
	"sigs.k8s.io/crdify/pkg/validations/crd/storedversionremoval"
)

type version = apiextensionsv1.CustomResourceDefinitionVersion

// definitionChanges are the breaking changes outside of the schemas: stored
// versions and scope by crdify, and those that it does not check.
func definitionChanges(was, will *apiextensionsv1.CustomResourceDefinition) []Change {
	scopes, stored := &scope.Scope{}, &storedversionremoval.StoredVersionRemoval{}
	scopes.SetEnforcement(config.EnforcementPolicyError)
	stored.SetEnforcement(config.EnforcementPolicyError)
	var changes []Change
	for _, found := range findings(scopes.Compare(was, will)) {
		changes = append(changes, Change{Refused: Identity, What: words(found.says)})
	}
	for _, found := range findings(stored.Compare(was, will)) {
		changes = append(changes, Change{Refused: StoredVersion, Ends: true, What: words(found.says)})
	}
	if before, after := was.Spec.Names.Kind, will.Spec.Names.Kind; before != after {
		changes = append(changes, Change{Refused: Identity, What: words(fmt.Sprintf("kind changed: %q -> %q", before, after))})
	}
	if was.Spec.PreserveUnknownFields && !will.Spec.PreserveUnknownFields {
		changes = append(changes, Change{Path: ".spec.preserveUnknownFields", What: "fields that the schema does not know are no longer kept"})
	}
	if what := conversionDropped(was, will); what != "" {
		changes = append(changes, Change{Path: ".spec.conversion", Ends: true, What: what})
	}
	for i := range was.Spec.Versions {
		before := &was.Spec.Versions[i]
		after := validations.GetCRDVersionByName(will, before.Name)
		changes = append(changes, versionChanges(was.Status.StoredVersions, before, after)...)
	}
	return changes
}

// versionChanges returns the changes of one version; after is nil when it is removed. The removal of a
// stored one is reported by crdify.
func versionChanges(stored []string, before, after *version) []Change {
	change := func(path, what string) []Change {
		return []Change{{Version: words(before.Name), Path: path, What: what}}
	}
	switch {
	case after == nil && before.Served && !slices.Contains(stored, before.Name):
		return []Change{{Version: words(before.Name), Ends: true, What: "served version removed"}}
	case after == nil:
		return nil
	case before.Served && !after.Served:
		return []Change{{Version: words(before.Name), Ends: true, What: "version no longer served"}}
	}
	var changes []Change
	statusBefore, scaleBefore := subresources(before)
	statusAfter, scaleAfter := subresources(after)
	if statusBefore && !statusAfter {
		changes = append(changes, change(".status", "subresource status removed")...)
	}
	if scaleBefore && !scaleAfter {
		changes = append(changes, change("", "subresource scale removed")...)
	}
	return changes
}

func subresources(of *version) (status, scale bool) {
	if of.Subresources == nil {
		return false, false
	}
	return of.Subresources.Status != nil, of.Subresources.Scale != nil
}

// conversionDropped describes the case that resources are stored in several versions and
// would no longer be converted.
func conversionDropped(was, will *apiextensionsv1.CustomResourceDefinition) string {
	if !byWebhook(was) || byWebhook(will) {
		return ""
	}
	storage := ""
	for _, of := range will.Spec.Versions {
		if of.Storage {
			storage = of.Name
		}
	}
	others := slices.DeleteFunc(slices.Clone(was.Status.StoredVersions), func(name string) bool { return name == storage })
	if len(others) == 0 {
		return ""
	}
	return words("conversion by webhook dropped while resources may be stored in " + strings.Join(others, ", "))
}

func byWebhook(of *apiextensionsv1.CustomResourceDefinition) bool {
	return of.Spec.Conversion != nil && of.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
}
