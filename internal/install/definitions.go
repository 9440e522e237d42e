// SPDX-License-Identifier: Apache-2.0

package install

import (
	"maps"
	"regexp"
	"slices"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// LostVersions are versions in which a cluster has stored resources, and which the desired CRD lacks: with it they could not
// be read any more.
func LostVersions(live, desired *unstructured.Unstructured) []string {
	stored, _, _ := unstructured.NestedStringSlice(live.Object, "status", "storedVersions")
	known := versionsOf(desired)
	return slices.DeleteFunc(stored, func(version string) bool { return known[version] != nil })
}

// LostFields are fields of a CRD that the desired CRD lacks: they would be dropped from resources on the next write. The
// fields below a field that is lost as a whole are not listed.
func LostFields(live, desired *unstructured.Unstructured) []string {
	var lost []string
	known := versionsOf(desired)
	for version, schema := range versionsOf(live) {
		if known[version] != nil {
			compareFields(version, schema, known[version], &lost)
		}
	}
	slices.Sort(lost)
	return lost
}

// versionsOf are the schemas of a CRD's versions.
func versionsOf(definition *unstructured.Unstructured) map[string]map[string]any {
	found := map[string]map[string]any{}
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, v := range versions {
		version, _ := v.(map[string]any)
		name, _ := version["name"].(string)
		schema, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
		if schema == nil {
			schema = map[string]any{}
		}
		found[name] = schema
	}
	return found
}

func compareFields(path string, live, desired map[string]any, lost *[]string) {
	if keeps, _ := desired["x-kubernetes-preserve-unknown-fields"].(bool); keeps {
		return
	}
	had, _ := live["properties"].(map[string]any)
	has, _ := desired["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(had)) {
		next, known := has[name].(map[string]any)
		if !known {
			*lost = append(*lost, path+"."+name)
			continue
		}
		previous, _ := had[name].(map[string]any)
		compareFields(path+"."+name, previous, next, lost)
	}
	for _, inner := range []string{"items", "additionalProperties"} {
		previous, isSchema := live[inner].(map[string]any)
		next, stays := desired[inner].(map[string]any)
		if isSchema && stays {
			compareFields(path+"[]", previous, next, lost)
		}
	}
}

// described matches the output of git describe for a commit between releases, which has no order relative to releases.
var described = regexp.MustCompile(`-\d+-g[0-9a-f]{7,}|-dirty$`)

// Order compares two releases: below 0 if the first is older. It is unknown if one of the versions is not that of a release.
func Order(a, b string) (order int, known bool) {
	first, wrong := semver.StrictNewVersion(trimV(a))
	second, alsoWrong := semver.StrictNewVersion(trimV(b))
	if wrong != nil || alsoWrong != nil || described.MatchString(a) || described.MatchString(b) {
		return 0, false
	}
	return first.Compare(second), true
}

// IsRelease tells whether a version is that of a release.
func IsRelease(version string) bool {
	_, known := Order(version, version)
	return known && version[0] == 'v'
}

func trimV(version string) string {
	if len(version) > 0 && version[0] == 'v' {
		return version[1:]
	}
	return version
}
