// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	upstream "github.com/operator-framework/api/pkg/validation/errors"
	validator "github.com/operator-framework/api/pkg/validation/interfaces"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/registryv1"
)

var options = convert.Options{RegistryV1: registryv1.Options{CertificateProvider: registryv1.SelfSigned}}

const annotations = `annotations:
  operators.operatorframework.io.bundle.package.v1: tool
  operators.operatorframework.io.bundle.channels.v1: stable
`

// tool is a valid ClusterServiceVersion, which edit may change.
func tool(t *testing.T, edit func(csv map[string]any)) fstest.MapFS {
	t.Helper()
	var csv map[string]any
	if err := yaml.Unmarshal([]byte(`
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: tool.v1.0.0
  annotations: {alm-examples: "[]"}
spec:
  displayName: Tool
  version: 1.0.0
  minKubeVersion: 1.30.0
  provider: {name: Example}
  icon: [{base64data: aGk=, mediatype: image/png}]
  installModes: [{type: AllNamespaces, supported: true}]
  install:
    strategy: deployment
    spec:
      deployments:
      - name: tool
        spec:
          selector: {matchLabels: {app: tool}}
          template:
            metadata: {labels: {app: tool}}
            spec:
              containers:
              - {name: tool, image: "example.org/tool:v1", resources: {requests: {cpu: 1m, memory: 1Mi}}}
`), &csv); err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		edit(csv)
	}
	text, err := yaml.Marshal(csv)
	if err != nil {
		t.Fatal(err)
	}
	return fstest.MapFS{"manifests/csv.yaml": {Data: text}, "metadata/annotations.yaml": {Data: []byte(annotations)}}
}

// short lists problems as severity, rule and object.
func short(r Report) []string {
	var lines []string
	for _, p := range r.Problems {
		lines = append(lines, fmt.Sprintf("%s %s: %s", p.Severity, p.Rule, p.Message))
	}
	return lines
}

func TestBundle(t *testing.T) {
	spec := func(csv map[string]any) map[string]any { return csv["spec"].(map[string]any) }
	for name, tc := range map[string]struct {
		reason string
		edit   func(map[string]any)
		more   map[string]string
		want   []string
	}{
		"faultless": {reason: "nothing is made up"},
		"own namespace only": {reason: "a namespace to watch is chosen that the bundle allows",
			edit: func(csv map[string]any) {
				spec(csv)["installModes"] = []any{map[string]any{"type": "OwnNamespace", "supported": true}}
			}},
		"single namespace only": {reason: "and another than the one to install in",
			edit: func(csv map[string]any) {
				spec(csv)["installModes"] = []any{map[string]any{"type": "SingleNamespace", "supported": true}}
			}},
		"no install mode": {reason: "what both say is said once", edit: func(csv map[string]any) { delete(spec(csv), "installModes") },
			want: []string{"error C4: the bundle supports no install mode"}},
		"missing definitions": {reason: "what the converter reports is not repeated, what it does not is",
			edit: func(csv map[string]any) {
				spec(csv)["customresourcedefinitions"] = map[string]any{"owned": []any{
					map[string]any{"name": "as.example.org", "version": "v1", "kind": "A", "description": "a"},
					map[string]any{"name": "bs.example.org", "version": "v2", "kind": "B", "description": "b"},
				}}
				csv["metadata"].(map[string]any)["annotations"] = map[string]any{"alm-examples": `[{"apiVersion": "example.org/v1", "kind": "A"}, {"apiVersion": "example.org/v2", "kind": "B"}]`}
			},
			more: map[string]string{"manifests/b.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: bs.example.org}\nspec:\n  group: example.org\n  scope: Cluster\n  names: {kind: B, listKind: BList, plural: bs, singular: b}\n  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]\n"},
			want: []string{"error olm-bundle: the bundle owns a kind and version that it does not contain: B of example.org/v2",
				`error V4: the bundle owns the CustomResourceDefinition "as.example.org" but does not contain it`,
				"warning olm-bundle: the bundle contains a CustomResourceDefinition that it does not own; it is installed all the same: B of example.org/v1"}},
		"left out": {reason: "what the converter warns of is a warning with its rule", more: map[string]string{"manifests/README.md": "read me"},
			want: []string{"warning P4: not manifests by name (.yaml, .yml, .json), left out: manifests/README.md"}},
		"a hidden Secret": {reason: "a value of a Secret is never repeated", more: map[string]string{"manifests/s.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: 5up3r\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			files := tool(t, tc.edit)
			for file, text := range tc.more {
				files[file] = &fstest.MapFile{Data: []byte(text)}
			}
			got := Bundle(files, options)
			if diff := cmp.Diff(tc.want, short(got)); diff != "" && name != "a hidden Secret" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			for _, p := range got.Problems {
				if p.Remedy == "" || p.Rule == "" || strings.Contains(p.Message+p.Remedy, "5up3r") {
					t.Errorf("%s: %+v", tc.reason, p)
				}
			}
		})
	}
}

// TestChoices checks that choices of the installation are listed, and not as problems.
func TestChoices(t *testing.T) {
	const option = "watchNamespaces (--watch-namespace)"
	for name, tc := range map[string]struct {
		reason string
		modes  []any
		want   string
	}{
		"all":           {reason: "nothing can be chosen", modes: []any{"AllNamespaces"}, want: "Its install modes are AllNamespaces: it always watches all namespaces."},
		"all and own":   {reason: "all is the default", modes: []any{"OwnNamespace", "AllNamespaces"}, want: "Its install modes are AllNamespaces, OwnNamespace: it watches all namespaces, unless " + option + " says which."},
		"own":           {reason: "nothing can be chosen", modes: []any{"OwnNamespace"}, want: "Its install modes are OwnNamespace: it watches only the namespace that it is installed in."},
		"own and multi": {reason: "its own is the default", modes: []any{"OwnNamespace", "MultiNamespace"}, want: "Its install modes are MultiNamespace, OwnNamespace: it watches the namespace that it is installed in, unless " + option + " says which."},
		"single":        {reason: "there is no default", modes: []any{"SingleNamespace"}, want: "Its install modes are SingleNamespace: what it watches has to be chosen with " + option + "."},
		"own or single": {reason: "neither is the default", modes: []any{"OwnNamespace", "SingleNamespace"}, want: "Its install modes are OwnNamespace, SingleNamespace: what it watches has to be chosen with " + option + "."},
	} {
		t.Run(name, func(t *testing.T) {
			report := Bundle(tool(t, func(csv map[string]any) {
				var modes []any
				for _, mode := range tc.modes {
					modes = append(modes, map[string]any{"type": mode, "supported": true})
				}
				csv["spec"].(map[string]any)["installModes"] = append(modes, map[string]any{"type": "Odd", "supported": true})
			}), options)
			if diff := cmp.Diff([]string{tc.want}, report.Choices); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if len(report.Problems) > 0 || report.InstallNamespace == "" || len(report.Watched) != 1 {
				t.Errorf("%s: %+v", tc.reason, report)
			}
		})
	}
	report := Bundle(tool(t, func(csv map[string]any) {
		csv["metadata"].(map[string]any)["annotations"].(map[string]any)[SuggestedNamespace] = "tools"
		csv["spec"].(map[string]any)["webhookdefinitions"] = []any{map[string]any{"type": "ValidatingAdmissionWebhook", "generateName": "a.example.org", "deploymentName": "tool",
			"admissionReviewVersions": []any{"v1"}, "sideEffects": "None"}}
	}), options)
	if len(report.Choices) != 3 || !strings.Contains(report.Choices[0], "the namespace tools.") || !strings.Contains(report.Choices[2], "--certificate-provider") || report.InstallNamespace != "tools" {
		t.Errorf("%+v", report)
	}
}

// TestPartOfABundle checks the warning about a ClusterServiceVersion that is read as a manifest.
func TestPartOfABundle(t *testing.T) {
	csv := fstest.MapFS{"csv.yaml": tool(t, nil)["manifests/csv.yaml"]}
	got := Bundle(csv, options)
	if diff := cmp.Diff([]string{"warning format: without OLM this describes an operator and installs none"}, short(got)); diff != "" || len(got.Watched)+len(got.Choices) > 0 {
		t.Errorf("-want +got:\n%s%+v", diff, got)
	}
}

// TestSuiteCrashes adds a validator that panics.
func TestSuiteCrashes(t *testing.T) {
	crashing := suite{rule: "crashing", validator: validator.ValidatorFunc(func(...any) []upstream.ManifestResult { panic("no") }),
		subjects: (*tree).theCSV, remedy: "look at it yourself"}
	found := run(crashing, subject{})
	if len(found) != 1 || found[0].Level != upstream.LevelWarn || found[0].Detail != crashed {
		t.Errorf("got %+v", found)
	}
	endless := suite{validator: validator.ValidatorFunc(func(...any) []upstream.ManifestResult {
		return []upstream.ManifestResult{{Errors: make([]upstream.Error, 5000)}}
	})}
	if found := run(endless, subject{}); len(found) != mostOfSuite+1 || !strings.Contains(found[mostOfSuite].Detail, "4900 more") {
		t.Errorf("%d findings", len(found))
	}
}

// TestManyFindings checks the bound of findings, for a bundle with a fault in each object.
func TestManyFindings(t *testing.T) {
	files := tool(t, nil)
	var text strings.Builder
	for i := range mostFindings + 100 {
		fmt.Fprintf(&text, "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: p%d}\nspec: {maxUnavailable: 0}\n", i)
	}
	files["manifests/many.yaml"] = &fstest.MapFile{Data: []byte(text.String())}
	got := Bundle(files, options).Problems
	if len(got) != mostFindings+1 || !slices.ContainsFunc(got, func(p Problem) bool { return p.Message == tooMany }) {
		t.Errorf("%d problems", len(got))
	}
}

// TestSettle checks that upstream messages in the order of a map become stable.
func TestSettle(t *testing.T) {
	for in, want := range map[string]string{
		`channel(s) ["b" "a"] are not following the recommended naming convention: https://x`:                                               "channels that do not follow the convention of names: a, b",
		`unable to find the resource requests for the container: (main). It is recommended`:                                                 "the container main requests neither CPU nor memory",
		`this bundle is using APIs which were deprecated and removed in v1.25. More info: #v. Migrate the API(s) for B: (["x"]),A: (["y"])`: `Kubernetes 1.25 has removed the versions of these: A: (["y"]), B: (["x"])`,
		"anything else": "anything else",
	} {
		if got := settle(in); got != want {
			t.Errorf("settle(%q) = %q", in, got)
		}
	}
}

// TestWarningsOfTheConverter checks that each warning of the converter gets its own rule.
func TestWarningsOfTheConverter(t *testing.T) {
	dir := filepath.Join("..", "convert", "registryv1")
	sources, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(sources) == 0 {
		t.Fatal("no sources", err)
	}
	parts, err := filepath.Glob(filepath.Join(dir, "*", "*.go"))
	if err != nil || len(parts) == 0 {
		t.Fatal("no sources", err)
	}
	sources = append(sources, parts...)
	texts := []string{"not manifests by name", "line 2: the key \"a\" appears twice in one mapping, with equal values; the first is in line 1"} // of the reader
	for _, source := range sources {
		content, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		for rest := strings.ReplaceAll(string(content), `.Warn("`, `.warn("`); ; {
			_, after, found := strings.Cut(rest, `.warn("`)
			if !found {
				break
			}
			text, after, _ := strings.Cut(after, `"`)
			if text != "%s" && text != "%s; the last one counts" {
				texts = append(texts, text)
			}
			rest = after
		}
	}
	for _, w := range warnings {
		if !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, w.words) }) {
			t.Errorf("no warning of the converter has the words %q", w.words)
		}
	}
	for _, text := range texts {
		if p := warning(text); p.Rule == "conversion" {
			t.Errorf("the warning %q has no rule and no remedy of its own", text)
		}
	}
}

// TestCorpus checks that published bundles have no errors, and that the reports are complete and stable.
func TestCorpus(t *testing.T) {
	bundles, err := filepath.Glob("../../../shared/corpus/registryv1/bundles/*/*")
	if err != nil || len(bundles) == 0 {
		t.Skip("the corpus of published bundles is not beside the repository (../shared/corpus), so none is examined")
	}
	for _, dir := range bundles {
		first, second := Bundle(os.DirFS(dir), options), Bundle(os.DirFS(dir), options)
		if diff := cmp.Diff(first, second); diff != "" {
			t.Errorf("%s differs the second time:\n%s", dir, diff)
		}
		for _, p := range first.Problems {
			if p.Severity == Error || p.Remedy == "" || p.Rule == "" || p.Message == "" {
				t.Errorf("%s: %+v", dir, p)
			}
		}
	}
}

// FuzzBundle runs the suites on any input: they must not end the process, and their findings are bounded.
func FuzzBundle(f *testing.F) {
	seeds, err := filepath.Glob("../cli/testdata/bundles/*/manifests/*.yaml")
	if err != nil || len(seeds) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, seed := range seeds {
		content, err := os.ReadFile(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(content))
	}
	f.Fuzz(func(t *testing.T, text string) {
		report := Bundle(fstest.MapFS{"manifests/a.yaml": {Data: []byte(text)}, "metadata/annotations.yaml": {Data: []byte(annotations)}}, options)
		for _, p := range report.Problems {
			if p.Message == "" || len(p.Message) > 4096 {
				t.Errorf("%+v", p)
			}
		}
	})
}
