// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
)

// differences lists what two sets of objects differ in, one line each, sorted: "+ object" is ours alone, "- object" OLM's
// alone, "~ object path" another value at that place.
func differences(want, got objects) []string {
	var lines []string
	keys := slices.Collect(maps.Keys(want))
	for key := range got {
		if _, ok := want[key]; !ok {
			keys = append(keys, key)
		}
	}
	for _, key := range keys {
		theirs, ours := want[key], got[key]
		for i := range min(len(theirs), len(ours)) {
			for _, path := range paths(theirs[i], ours[i], "") {
				lines = append(lines, "~ "+key+" "+path)
			}
		}
		for range max(0, len(theirs)-len(ours)) {
			lines = append(lines, "- "+key)
		}
		for range max(0, len(ours)-len(theirs)) {
			lines = append(lines, "+ "+key)
		}
	}
	slices.Sort(lines)
	return lines
}

// paths lists where two values differ.
func paths(want, got any, path string) []string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return []string{path}
		}
		var out []string
		for _, key := range slices.Sorted(maps.Keys(w)) {
			out = append(out, paths(w[key], g[key], path+"."+key)...)
		}
		for _, key := range slices.Sorted(maps.Keys(g)) {
			if _, ok := w[key]; !ok {
				out = append(out, path+"."+key)
			}
		}
		return out
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return []string{fmt.Sprintf("%s (length)", path)}
		}
		var out []string
		for i := range w {
			out = append(out, paths(w[i], g[i], path+"["+strconv.Itoa(i)+"]")...)
		}
		return out
	}
	if reflect.DeepEqual(want, got) {
		return nil
	}
	return []string{path}
}

// deviation is a deliberate difference from OLM v1, by the number it has in the rule book.
type deviation struct {
	number int
	cases  []string
	lines  []string // regular expressions; each covers at least one difference of each case
}

// deviations of rendered cases and bundles. A difference that none of them covers fails the test, as does a deviation that
// no longer shows.
var deviations = []deviation{
	{
		number: 1,
		cases:  []string{"others-same-name-as-generated-sa"},
		lines:  []string{`- v1 ServiceAccount install-ns/widget-sa`},
	},
	{
		number: 1,
		cases:  []string{"others-service-same-name-as-webhook-service"},
		lines:  []string{`- v1 Service install-ns/widget-operator-service`},
	},
	{
		number: 1,
		cases:  []string{"opentelemetry-operator"},
		lines:  []string{`- v1 Service install-ns/opentelemetry-operator-webhook-service`},
	},
	{
		number: 2,
		cases:  []string{"wh-no-container-port"},
		lines:  []string{`~ .* ValidatingWebhookConfiguration /vwidget\.example\.com \.webhooks\[0\]\.clientConfig\.service\.port`},
	},
	{
		number: 3,
		cases:  []string{"name-webhook-deployment-55-chars"},
		lines:  []string{`~ .* Certificate install-ns/d{55}-se-cert \.spec\.commonName`},
	},
	{
		number: 3,
		cases:  []string{"name-webhook-deployment-57-chars", "name-webhook-deployment-60-chars", "name-webhook-deployment-63-chars"},
		lines: []string{
			`- .* Certificate install-ns/d{55}-se-cert`, `\+ .* Certificate install-ns/d{46}-[0-9a-z]{8}-se-cert`,
			`- v1 Service install-ns/d{55}-service`, `\+ v1 Service install-ns/d{46}-[0-9a-z]{8}-service`,
			`~ .* Deployment install-ns/d+ \.spec\.template\.spec\.volumes\[[01]\]\.secret\.secretName`,
			`~ .* ValidatingWebhookConfiguration /vwidget\.example\.com \.metadata\.annotations\.cert-manager\.io/inject-ca-from`,
			`~ .* ValidatingWebhookConfiguration /vwidget\.example\.com \.webhooks\[0\]\.clientConfig\.service\.name`,
		},
	},
	{
		number: 4,
		cases:  []string{"wh-two-target-ports-same-port"},
		lines: []string{
			`~ .* ValidatingWebhookConfiguration /vwidget\.example\.com \.webhooks\[0\]\.clientConfig\.service\.port`,
			`~ v1 Service install-ns/widget-operator-service \.spec\.ports\[1\]\.(name|port)`,
		},
	},
	{
		number: 5,
		cases:  []string{"rbac-multi-two-namespaces"},
		lines:  []string{`\+ .* Role(Binding)? install-ns/widget\.v1\.0\.0-.*`},
	},
	{
		number: 6,
		cases:  []string{"wh-cert-volumes-replaced"},
		lines:  []string{`~ .* Deployment install-ns/widget-operator \.spec\.template\.spec\.initContainers\[0\]\.volumeMounts \(length\)`},
	},
	{
		number: 8,
		cases:  []string{"ack-iam-controller"},
		lines:  []string{`- iam\.services\.k8s\.aws/v1alpha1 Role install-ns/example`},
	},
	{
		number: 10,
		cases:  []string{"cluster-aas-operator"},
		lines:  []string{`- {2}ClusterRole /(claas-argocd-cluster-role|cluster-templates-user-ct)`, `\+ rbac\.authorization\.k8s\.io/v1 ClusterRole /(claas-argocd-cluster-role|cluster-templates-user-ct)`},
	},
	{
		number: 19, // its rules are filled in by the control plane: see package reserved
		cases:  []string{"service-binding-operator"},
		lines:  []string{`~ .* ClusterRole /service-binding-controller-role \.rules \(length\)`},
	},
	{
		number: 15,
		cases:  []string{"rbac-sa-only-in-deployment"},
		lines:  []string{`\+ v1 ServiceAccount install-ns/only-in-deployment`},
	},
	{
		number: 15, // their Deployments name an account that no permission names
		cases: []string{
			"crd-status-dropped", "csv-other-strategy", "csv-requirements-ignored", "name-csv-11-chars", "name-csv-12-chars",
			"name-csv-40-chars", "name-csv-7-chars", "name-csv-8-chars", "name-csv-9-chars", "name-webhook-deployment-55-chars",
			"name-webhook-deployment-57-chars", "name-webhook-deployment-60-chars", "name-webhook-deployment-63-chars",
			"name-webhook-deployment-dots", "others-service-same-name-as-webhook-service", "parse-comment-only", "parse-empty-file",
			"parse-json", "parse-list-kind", "props-merge", "props-only-file", "rbac-default-sa", "rbac-no-permissions",
			"wh-conversion", "wh-conversion-crd-has-own-conversion", "wh-conversion-no-path", "wh-mutating-single-ns",
			"wh-no-container-port", "wh-two-target-ports-same-port", "wh-validating-service-ca",
		},
		lines: []string{`\+ v1 ServiceAccount install-ns/widget-sa`},
	},
}

// refusals tell the other deviations, of whether a case renders at all.
var refusals = map[string]int{
	"parse-readme":                 17, // rendered, with a warning
	"rbac-own-namespace-no-config": 11, // rendered, the watch namespace has a default
	"parse-duplicate-yaml-key":     17, // refused
}

// unexplained returns the differences that no deviation covers and the deviations that cover nothing, and adds the numbers
// that were used to used.
func unexplained(name string, lines []string, used map[int]int) []string {
	covered := map[string]bool{}
	var out []string
	for _, d := range deviations {
		if !slices.Contains(d.cases, name) {
			continue
		}
		used[d.number]++
		for _, pattern := range d.lines {
			expression := regexp.MustCompile("^" + pattern + "$")
			found := false
			for _, line := range lines {
				if expression.MatchString(line) {
					covered[line], found = true, true
				}
			}
			if !found {
				out = append(out, fmt.Sprintf("deviation %d no longer shows: %s", d.number, pattern))
			}
		}
	}
	for _, line := range lines {
		if !covered[line] {
			out = append(out, line)
		}
	}
	return out
}
