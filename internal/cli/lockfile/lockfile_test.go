// SPDX-License-Identifier: Apache-2.0

package lockfile

import (
	"strings"
	"testing"
)

const (
	oldImage = "quay.io/shop@sha256:1111111111111111111111111111111111111111111111111111111111111111"
	newImage = "quay.io/shop@sha256:2222222222222222222222222222222222222222222222222222222222222222"
)

// TestWrite: only the bundle and the image change (C64).
func TestWrite(t *testing.T) {
	const head = "# Ünïcode\nkind: ConfigMap\n---\nkind: BundleDeployment # ours\nmetadata: {name: shop}\n"
	for name, tc := range map[string]struct{ before, after, err string }{
		"a lock in blocks": {
			before: head + "spec:\n  catalog:\n    lock:   # by CI\n      image: \"" + oldImage + "\"  # old\n      bundle: shop.v1.0.0\n    package: shop\n",
			after:  head + "spec:\n  catalog:\n    lock:   # by CI\n      image: \"" + newImage + "\"  # old\n      bundle: shop.v2.0.0\n    package: shop\n",
		},
		"a new lock in blocks": {
			before: head + "spec:\n  catalog:\n    # the shop\n    package: shop   # a comment\n\n    channels: [a]\n  prune: true\n",
			after: head + "spec:\n  catalog:\n    # the shop\n    package: shop   # a comment\n    lock:\n      bundle: shop.v2.0.0\n      image: " + newImage +
				"\n\n    channels: [a]\n  prune: true\n",
		},
		"without a line break at the end": {
			before: head + "spec:\n  catalog:\n    package: shop",
			after:  head + "spec:\n  catalog:\n    package: shop\n    lock:\n      bundle: shop.v2.0.0\n      image: " + newImage + "\n",
		},
		"a new lock in one line": {
			before: head + "spec: {catalog: {package: shop, version: '1'}}\n",
			after:  head + "spec: {catalog: {lock: {bundle: shop.v2.0.0, image: " + newImage + "}, package: shop, version: '1'}}\n",
		},
		"JSON": {
			before: `{"kind":"BundleDeployment","metadata":{"name":"shop"},"spec":{"catalog":{"package":"shop"}}}`,
			after: `{"kind":"BundleDeployment","metadata":{"name":"shop"},"spec":{"catalog":{"lock": {"bundle": "shop.v2.0.0", "image": "` + newImage +
				`"}, "package":"shop"}}}`,
		},
		"a source": {
			before: "kind: BundleSource\nmetadata:\n  name: shop\nspec:\n  sources:\n  - image:\n      insecure: true\n      reference: 'quay.io/shop:v1' # moves\n",
			after:  "kind: BundleSource\nmetadata:\n  name: shop\nspec:\n  sources:\n  - image:\n      insecure: true\n      reference: \"" + newImage + "\" # moves\n",
		},
		"a source that follows tags": {
			before: "kind: BundleSource\nmetadata: {name: shop}\nspec: {sources: [{image: {reference: quay.io/shop, version: 1.x}}]}\n", err: "remove it to pin the image",
		},
		"another package": {before: head + "spec: {catalog: {package: bakery}}", err: "no BundleDeployment with spec.catalog of package shop"},
		"two": {
			before: head + "spec: {catalog: {package: shop}}\n---\nkind: BundleSource\nspec: {sources: [{image: {reference: a}}]}\n", err: "give a file with one of them",
		},
		"a value of several lines": {
			before: head + "spec:\n  catalog:\n    package: shop\n    lock:\n      bundle: >-\n        shop.v1.0.0\n      image: " + oldImage + "\n", err: "cannot be edited",
		},
		"an anchor": {
			before: head + "spec:\n  catalog:\n    package: shop\n    lock: {bundle: &b shop.v1.0.0, image: " + oldImage + "}\n", err: "cannot be edited",
		},
		"no YAML": {before: "a: [", err: "reading YAML"},
		"nothing": {before: "", err: "no BundleDeployment"},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := Write([]byte(tc.before), Want{Package: "shop", Bundle: "shop.v2.0.0", Image: newImage})
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("got %v, want %s", err, tc.err)
				}
				return
			}
			if err != nil || string(got) != tc.after {
				t.Fatalf("%v\ngot:\n%s\nwant:\n%s", err, got, tc.after)
			}
			again, _, err := Write(got, Want{Package: "shop", Bundle: "shop.v2.0.0", Image: newImage})
			if err != nil || string(again) != string(got) {
				t.Errorf("a second time: %v\n%s", err, again)
			}
		})
	}
}

// TestNamesOfCatalogs: a name that a catalog chose cannot add fields.
func TestNamesOfCatalogs(t *testing.T) {
	const before = "kind: BundleDeployment\nspec:\n  catalog:\n    package: shop\n"
	for _, bundle := range []string{"true", "a: b", "a.v1\nserviceAccountName: admin", "a.v1 # x", "1.5", `a."b`} {
		got, _, err := Write([]byte(before), Want{Package: "shop", Bundle: bundle, Image: newImage})
		if err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(string(got), "\n"); lines != 7 || !strings.Contains(string(got), `bundle: "`) {
			t.Errorf("%q becomes:\n%s", bundle, got)
		}
	}
	if _, _, err := Write([]byte(before), Want{Package: "shop", Bundle: "a", Image: "quay.io/shop:v1"}); err == nil {
		t.Error("a tag is written")
	}
}
