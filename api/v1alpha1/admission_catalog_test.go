// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strings"
	"testing"
)

// TestBundleCatalogAdmission writes what users write, rightly and wrongly.
func TestBundleCatalogAdmission(t *testing.T) {
	checkAdmission(t, "BundleCatalog", map[string]admitted{
		"image":        {reason: "the usual catalog", spec: anImage},
		"all fields":   {reason: "what the page shows", spec: anImage + "\npath: catalog/configs\npriority: -5\ninterval: 1h\ntimeout: 10m\nserviceAccountName: puller"},
		"configMap":    {reason: "a small catalog in the cluster", spec: "sources: [{configMap: {name: a}}]"},
		"root, named":  {reason: "empty means the root", spec: `sources: [{destination: "", image: {ref: a}}]`},
		"longest name": {reason: "names become label values", name: strings.Repeat("a", 63), spec: anImage},
		"name too long": {
			reason: "a label value has at most 63 characters", name: strings.Repeat("a", 64), spec: anImage,
			want: "<nil>: Invalid value: the name must have at most 63 characters",
		},
		"no spec":    {reason: "a catalog without a source means nothing", want: "spec: Required value"},
		"no sources": {reason: "a catalog without a source means nothing", spec: "interval: 1m", want: "spec.sources: Required value"},
		"two sources": {
			reason: "catalogs are composed by resolution, and not by folders", spec: "sources: [{image: {ref: a}}, {image: {ref: b}}]", want: "spec.sources: Too many: 2: must have at most 1 item",
		},
		"destination": {
			reason: "there is nothing to compose", spec: "sources: [{destination: a, image: {ref: a}}]",
			want: "spec.sources: Invalid value: a catalog has one source, which needs no destination: remove it, and use spec.path for a folder",
		},
		"upload": {
			reason: "a catalog moves", spec: anUpload, want: "spec.sources: Invalid value: a catalog comes from image, git, http or configMap",
		},
		"chart": {
			reason: "a chart is no catalog", spec: "sources: [{helm: {repository: \"https://example.org\", chart: a}}]", want: "spec.sources: Invalid value: a catalog comes from image, git, http or configMap",
		},
		"immutable": {
			reason: "a catalog moves", spec: anImage + "\nimmutable: true", want: `BundleCatalog in version "v1alpha1" cannot be handled as a BundleCatalog: strict decoding error: unknown field "spec.immutable"`,
		},
		"path outside": {
			reason: "a catalog is in its content", spec: anImage + "\npath: ../etc",
			want: `spec.path: Invalid value: "../etc": must be a relative path such as catalog/configs: letters, digits, '.', '_' and '-', each part beginning with a letter, digit or '_' and not ending in '.'`,
		},
		"timeout": {reason: "a worker is held", spec: anImage + "\ntimeout: 2h", want: `spec.timeout: Invalid value: "2h": must be at most 1h`},
	})
}
