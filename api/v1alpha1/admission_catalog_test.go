// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strings"
	"testing"
)

// TestBundleCatalogAdmission writes what users write, rightly and wrongly.
func TestBundleCatalogAdmission(t *testing.T) {
	const (
		aCatalog = "source: {image: {reference: example.org/catalog:v1}}"
		oneOf    = "spec.source: Invalid value: exactly one of the fields in [image git http configMap] must be set"
		unknown  = `BundleCatalog in version "v1alpha1" cannot be handled as a BundleCatalog: strict decoding error: unknown field `
	)
	checkAdmission(t, "BundleCatalog", map[string]admitted{
		"image":        {reason: "the usual catalog", spec: aCatalog},
		"all fields":   {reason: "what the page shows", spec: aCatalog + "\npath: catalog/configs\npriority: -5\ninterval: 1h\ntimeout: 10m\nserviceAccountName: puller"},
		"configMap":    {reason: "a small catalog in the cluster", spec: "source: {configMap: {name: a}}"},
		"git":          {reason: "catalogs are in repositories", spec: "source: {git: {url: https://example.org/r.git, path: catalog, ref: {version: 1.x}}}"},
		"http":         {reason: "or in archives", spec: "source: {http: {url: https://example.org/catalog.tgz}}"},
		"longest name": {reason: "names become label values", name: strings.Repeat("a", 63), spec: aCatalog},
		"name too long": {
			reason: "a label value has at most 63 characters", name: strings.Repeat("a", 64), spec: aCatalog,
			want: "<nil>: Invalid value: the name must have at most 63 characters",
		},
		"no spec":      {reason: "a catalog without a source means nothing", want: "spec: Required value"},
		"no source":    {reason: "a catalog without a source means nothing", spec: "interval: 1m", want: "spec.source: Required value"},
		"empty source": {reason: "which one?", spec: "source: {}", want: oneOf},
		"list of sources": {
			reason: "a catalog has one", spec: "sources: [{image: {reference: a}}]", want: unknown + `"spec.sources"`,
		},
		"rules of images": {
			reason: "as in a BundleSource", spec: `source: {image: {reference: "a:v1", version: 1.x}}`,
			want: "spec.source.image: Invalid value: version chooses the tag: remove tag and digest from reference",
		},
		"two sources": {
			reason: "catalogs are composed by resolution, and not by folders", spec: "source: {image: {reference: a}, configMap: {name: b}}", want: oneOf,
		},
		"destination": {
			reason: "there is nothing to compose", spec: "source: {destination: a, image: {reference: a}}",
			want: unknown + `"spec.source.destination"`,
		},
		"upload": {
			reason: "a catalog moves", spec: "source: {upload: {digest: " + uploadDigest + "}}", want: unknown + `"spec.source.upload"`,
		},
		"chart": {
			reason: "a chart is no catalog", spec: "source: {helm: {url: \"https://example.org\", chart: a}}", want: unknown + `"spec.source.helm"`,
		},
		"immutable": {
			reason: "a catalog moves", spec: aCatalog + "\nimmutable: true", want: unknown + `"spec.immutable"`,
		},
		"path outside": {
			reason: "a catalog is in its content", spec: aCatalog + "\npath: ../etc",
			want: `spec.path: Invalid value: "../etc": must be a relative path such as catalog/configs: letters, digits, '.', '_' and '-', each part beginning with a letter, digit or '_' and not ending in '.'`,
		},
		"timeout": {reason: "a worker is held", spec: aCatalog + "\ntimeout: 2h", want: `spec.timeout: Invalid value: "2h": must be at most 1h`},
	})
}
