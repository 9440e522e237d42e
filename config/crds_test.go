// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"path/filepath"
	"testing"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"sigs.k8s.io/yaml"
)

// TestCRDsFitClientSideApply wants each CRD to fit into the annotation in which kubectl apply without --server-side stores it as JSON,
// twice: with a second version of the API.
func TestCRDsFitClientSideApply(t *testing.T) {
	var files []string
	for _, pattern := range []string{"crd/bases/*.yaml", "rollouts/crd/satchel.dev_*.yaml"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s finds no CRDs (%v)", pattern, err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		applied, err := yaml.YAMLToJSON(text)
		if err != nil {
			t.Fatal(err)
		}
		if most := apivalidation.TotalAnnotationSizeLimitB / 2; len(applied) > most {
			t.Errorf("%s has %d bytes as JSON, more than %d", file, len(applied), most)
		}
	}
}
