// SPDX-License-Identifier: Apache-2.0

// Package costly has bundles that are small and take minutes to convert, for tests of the limits of a conversion.
package costly

import (
	"fmt"
	"strings"
	"testing/fstest"
)

// Kustomization has size objects and as many patches, each of which is tried on each object (M25). A size of 2,000 takes minutes.
func Kustomization(size int) fstest.MapFS {
	var objects, patches strings.Builder
	patches.WriteString("resources: [all.yaml]\npatches:\n")
	for i := range size {
		fmt.Fprintf(&objects, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d}\n", i)
		patches.WriteString("- {target: {kind: C.*}, patch: '[{\"op\": \"add\", \"path\": \"/data\", \"value\": {\"a\": \"b\"}}]'}\n")
	}
	return fstest.MapFS{"kustomization.yaml": file(patches.String()), "all.yaml": file(objects.String())}
}

// Chart has a values schema with many ways to the same pattern, which is tried on a value of a megabyte (M26).
func Chart() fstest.MapFS {
	const levels, width = 4, 12
	var definitions []string
	for level := range levels {
		next := fmt.Sprintf(`{"$ref":"#/definitions/l%d"}`, level+1)
		all := strings.TrimSuffix(strings.Repeat(next+",", width), ",")
		definitions = append(definitions, fmt.Sprintf(`"l%d":{"allOf":[%s]}`, level, all))
	}
	definitions = append(definitions, fmt.Sprintf(`"l%d":{"pattern":"^(a|b|c|d)*x$"}`, levels))
	schema := fmt.Sprintf(`{"definitions":{%s},"properties":{"text":{"$ref":"#/definitions/l0"}}}`, strings.Join(definitions, ","))
	return fstest.MapFS{
		"Chart.yaml":         file("apiVersion: v2\nname: costly\nversion: 1.0.0\n"),
		"values.schema.json": file(schema),
		"values.yaml":        file("text: " + strings.Repeat("a", 1_000_000) + "\n"),
		"templates/cm.yaml":  file("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: costly}\n"),
	}
}

func file(content string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(content), Mode: 0o644} }
