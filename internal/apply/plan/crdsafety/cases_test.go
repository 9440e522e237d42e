// SPDX-License-Identifier: Apache-2.0

package crdsafety_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/apply/plan/crdsafety"
)

// The cases olm-crdsafe, olm-statusonly and olm-sameset: "" passes, "status" and "notable" pass with a warning, "refused" does not.
func TestJudgePublicReports(t *testing.T) {
	for change, want := range map[string]string{
		"olm-crdsafe 1.0.0 1.1.0": "", "olm-crdsafe 1.1.0 1.2.0": "", "olm-crdsafe 1.2.0 1.3.0": "", "olm-crdsafe 1.3.0 1.4.0": "notable",
		"olm-crdsafe 1.0.0 1.3.0": "", "olm-crdsafe 1.0.0 1.4.0": "notable", "olm-crdsafe 1.0.0 1.5.0": "refused", "olm-crdsafe 1.4.0 1.5.0": "refused",
		"olm-crdsafe 1.0.0 2.0.0": "refused", "olm-crdsafe 1.0.0 2.1.0": "refused",
		"olm-crdsafe 1.0.0 3.0.0": "refused Identity", "olm-crdsafe 1.0.0 3.1.0": "refused Identity", "olm-crdsafe 1.4.0 4.1.0": "refused",
		"olm-statusonly 1.0.0 1.1.0": "status",
		"olm-sameset 1.0.0 1.1.0":    "", "olm-sameset 1.0.0 1.2.0": "", "olm-sameset 1.1.0 1.2.0": "",
	} {
		t.Run(change, func(t *testing.T) {
			words := strings.Fields(change)
			was, will := caseCRD(t, words[0], words[1]), caseCRD(t, words[0], words[2])
			got, err := crdsafety.Judge(t.Context(), stored(was), will)
			if err != nil || got.Unjudged != "" {
				t.Fatal(err, got.Unjudged)
			}
			if outcome := outcomeOf(got); outcome != want {
				t.Errorf("got %q, want %q: %v", outcome, want, got)
			}
		})
	}
}

func outcomeOf(judgement crdsafety.Judgement) string {
	refused := slices.IndexFunc(judgement.Breaking, func(change crdsafety.Change) bool { return change.Refused != "" })
	switch {
	case refused >= 0:
		return "refused " + string(judgement.Breaking[refused].Refused)
	case len(judgement.Breaking) > 0:
		return "refused"
	case len(judgement.Status) > 0:
		return "status"
	case len(judgement.Notable) > 0:
		return "notable"
	}
	return ""
}

func caseCRD(t *testing.T, folder, version string) *unstructured.Unstructured {
	t.Helper()
	found, _ := filepath.Glob(filepath.Join("../../../../../shared/cases", folder, version, "manifests", "customresourcedefinition-*.yaml"))
	if len(found) != 1 {
		t.Skip("the cases of public bug reports are not beside the repository (../shared/cases)")
	}
	content, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(content, &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

// stored is a CRD on a cluster that never had another.
func stored(crd *unstructured.Unstructured) *unstructured.Unstructured {
	live := crd.DeepCopy()
	versions, _, _ := unstructured.NestedSlice(live.Object, "spec", "versions")
	for _, raw := range versions {
		version, _ := raw.(map[string]any)
		if version["storage"] == true {
			_ = unstructured.SetNestedStringSlice(live.Object, []string{version["name"].(string)}, "status", "storedVersions")
		}
	}
	return live
}
