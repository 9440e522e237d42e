// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// TestBundlesThatWereRefused installs bundles with the faults of newest versions in public catalogs that Satchel refused: what OLM takes is
// installed, with a warning, and what is ambiguous where the user says how to read it.
func TestBundlesThatWereRefused(t *testing.T) {
	edited := func(file, old, text string) func(fstest.MapFS) {
		return func(files fstest.MapFS) {
			files[file] = &fstest.MapFile{Data: []byte(strings.Replace(string(files[file].Data), old, text, 1))}
		}
	}
	const csv = "manifests/clusterserviceversion.yaml"
	for name, tc := range map[string]struct {
		reason string
		fault  func(fstest.MapFS)
		refuse string // what the refusal says, where the key has to be chosen
		warns  string
	}{
		"key twice": {"as annotationlab 5.7.0: which of both is meant is not known",
			edited(csv, "  displayName: Gadgets\n", "  displayName: Tools\n  displayName: Gadgets\n"), "registryV1.duplicateKeys", `"displayName"`},
		"annotation twice": {"nothing depends on which of both counts",
			edited(csv, "metadata: {name: gadgets.v1.0.0}", "metadata: {name: gadgets.v1.0.0, annotations: {a: one, a: two}}"), "", `"a"`},
		"dependencies that are no list": {"OLM v1 does not read the file", func(files fstest.MapFS) {
			files["metadata/dependencies.yaml"] = file("dependencies: none\n")
		}, "", "this is not a list of dependencies"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			namespace := r.namespace(t)
			bundle := operator(r.group(t, namespace), "1.0.0")
			tc.fault(bundle)
			published := r.publish(t, namespace, "app", "v1", bundle)
			key := r.deploy(t, namespace, "app", quick)
			if tc.refuse != "" {
				if d := r.unready(t, key, v1alpha1.ReasonConversionFailed); !strings.Contains(describe(d), tc.refuse) {
					t.Errorf("%s: the refusal does not say %q:\n%s", tc.reason, tc.refuse, describe(d))
				}
				r.edit(t, key, func(d *v1alpha1.BundleDeployment) {
					if d.Spec.RegistryV1 == nil {
						d.Spec.RegistryV1 = &v1alpha1.RegistryV1Options{}
					}
					d.Spec.RegistryV1.DuplicateKeys = "Last"
				})
			}
			d := r.ready(t, key, published.Revision)
			if text := strings.Join(d.Status.Warnings, "; "); !strings.Contains(text, tc.warns) {
				t.Errorf("%s: the warnings are %q, want one of %s", tc.reason, text, tc.warns)
			}
			r.remove(t, key)
		})
	}
}
