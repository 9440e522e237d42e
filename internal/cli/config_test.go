// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/registryv1file"
)

func TestParseConfig(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text string
		want         v1alpha1.RegistryV1Options
	}{
		"nothing":  {reason: "everything has its default"},
		"comments": {reason: "an empty document is no document", text: "# later\n"},
		"null":     {reason: "what yq prints where there is nothing", text: "null\n"},
		"markers":  {reason: "one document with its markers is one", text: "---\nrequirements: Warn\n...\n", want: v1alpha1.RegistryV1Options{Requirements: "Warn"}},
		"JSON":     {reason: "JSON is YAML", text: `{"operatorConditions": true}`, want: v1alpha1.RegistryV1Options{OperatorConditions: true}},
		"several": {reason: "fields of all sorts", text: "watchNamespaces: [a, b]\ncertificateProvider: service-ca\npodAnnotations: Required\ndeploymentConfig:\n  nodeSelector: &n {a: b}\n  annotations: *n\n",
			want: v1alpha1.RegistryV1Options{WatchNamespaces: []string{"a", "b"}, CertificateProvider: "service-ca", PodAnnotations: "Required",
				DeploymentConfig: &apiextensions.JSON{Raw: []byte(`{"annotations":{"a":"b"},"nodeSelector":{"a":"b"}}`)}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := registryv1file.ParseConfig([]byte(tc.text))
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestParseConfigRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text, want string
	}{
		"unknown field": {"a typing error would do nothing", "watchNamespace: [a]\n", "line 1: watchNamespace is not a known field; did you mean watchNamespaces?"},
		"unknown deep":  {"the whole path", "deploymentConfig:\n  tolerations:\n  - key: a\n    affect: NoSchedule\n", "line 4: deploymentConfig.tolerations[0].affect is not a known field; did you mean effect?"},
		"other case":    {"the API server minds it", "WatchNamespaces: [a]\n", "line 1: WatchNamespaces is not a known field; did you mean watchNamespaces?"},
		"nothing near":  {"nothing is suggested", "zzzzzzzzzz: 1\n", "line 1: zzzzzzzzzz is not a known field"},
		"all at once": {"all faults with their lines", "\noperatorConditions: 1\nwatchNamespaces: a\nrequirements: on\nrequirements: no\n",
			"\n  - line 2: operatorConditions is a number, not true or false\n  - line 3: watchNamespaces is a string, not a list\n  - line 4: requirements is \"on\", not one of: Enforce, Warn, None\n  - line 5: requirements is given twice"},
		"unquoted":             {"YAML makes numbers of unquoted strings", "deploymentConfig:\n  env:\n  - {name: A, value: 8080}\n", "line 3: deploymentConfig.env[0].value is a number, not a string; put it into quotation marks"},
		"a wrong quantity":     {"types that read themselves", "deploymentConfig:\n  resources:\n    limits: {cpu: much}\n", "line 3: deploymentConfig.resources.limits.cpu is a string, not a valid Quantity"},
		"an old boolean, deep": {"an API server reads true", "deploymentConfig:\n  env:\n  - {name: A, value: yes}\n", "line 3: deploymentConfig.env[0].value is true or false, not a string; put it into quotation marks"},
		"several types": {"a decoder stops at the first one", "deploymentConfig:\n  env:\n  - {name: A, value: 1}\n  - {name: B, value: 2}\n",
			"2 problems:\n  - line 3: deploymentConfig.env[0].value is a number, not a string; put it into quotation marks\n  - line 4: deploymentConfig.env[1].value is"},
		"an alias":             {"the line of what it repeats", "deploymentConfig:\n  nodeSelector: &a\n    b: 1\n  annotations: *a\n", "line 3: deploymentConfig.annotations.b is a number"},
		"an endless alias":     {"the parser bounds it", "deploymentConfig: &a {annotations: *a}\n", "contains itself"},
		"the same twice, deep": {"the whole path", "deploymentConfig:\n  env:\n  - {name: A, name: B}\n", "line 3: deploymentConfig.env[0].name is given twice"},
		"a long list":          {"a terminal has few lines", strings.Repeat("zzzzzzzzzz: 1\n", 31), "31 problems:"},
		"the rest of it":       {"what is not shown is counted", strings.Repeat("zzzzzzzzzz: 1\n", 31), "\n  - and 11 more"},
		"a fraction":           {"whole numbers only", "deploymentConfig:\n  tolerations:\n  - tolerationSeconds: 1.5\n", "line 3: deploymentConfig.tolerations[0].tolerationSeconds is a fraction, not a whole number"},
		"a mapping":            {"where a string is expected", "certificateProvider: {a: b}\n", "line 1: certificateProvider is a mapping, not a string"},
		"a list":               {"where a mapping is wanted", "- a\n", "line 1: it is a list, not a mapping"},
		"the same twice":       {"which of the two?", "podAnnotations: All\npodAnnotations: Required\n", "line 2: podAnnotations is given twice"},
		"the whole object":     {"a likely mistake", "apiVersion: satchel.dev/v1alpha1\nspec: {}\n", "\n  - line 1: apiVersion is not a known field\n  - line 2: spec is not a known field\n  - give only what stands below spec.registryV1 of a BundleDeployment"},
		"with its key":         {"another", "registryV1:\n  podAnnotations: All\n", "\n  - line 1: registryV1 is not a known field\n  - give only what stands below spec.registryV1 of a BundleDeployment"},
		"two documents":        {"which of the two?", "podAnnotations: All\n---\npodAnnotations: Required\n", "line 2: another YAML document begins; give one"},
		"no YAML":              {"the parser's word", "a: [\n", "it is not YAML: line 1: did not find expected node content"},
		"unknown words":        {"what there is", "requirements: enforce\npodAnnotations: None\n", "\n  - line 1: requirements is \"enforce\", not one of: Enforce, Warn, None\n  - line 2: podAnnotations is \"None\", not one of: All, Required"},
		"words before types": {"in the order of the lines, from both checks", "requirements: on\noperatorConditions: 1\npodAnnotations: x\n",
			"it does not fit spec.registryV1 of a BundleDeployment, 3 problems:\n  - line 1: requirements is \"on\", not one of: Enforce, Warn, None\n  - line 2: operatorConditions is a number, not true or false\n  - line 3: podAnnotations is"},
		"a steering text": {"it reaches a terminal", "watchNamespace\U0000202e: [a]\n", `line 1: watchNamespace\u202e is not a known field`},
		"an old boolean":  {"what kubectl makes a boolean of is no string", "podAnnotations: yes\n", "line 1: podAnnotations is"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := registryv1file.ParseConfig([]byte(tc.text))
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

// TestConfigWords compares the values that the CLI accepts with those of the API server.
func TestConfigWords(t *testing.T) {
	data, err := os.ReadFile("../../config/crd/bases/satchel.dev_bundledeployments.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensions.CustomResourceDefinition
	if err := yaml.Unmarshal(data, &crd); err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{}
	for name, property := range crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["registryV1"].Properties {
		for _, word := range property.Enum {
			want[name] = append(want[name], strings.Trim(string(word.Raw), `"`))
		}
	}
	got := map[string][]string{}
	for _, w := range registryv1file.Words {
		got[w.Field] = w.Allowed
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-CRD +CLI:\n%s", diff)
	}
}

// FuzzParseConfig checks that the API's own decoder gives the same result for every accepted input.
func FuzzParseConfig(f *testing.F) {
	f.Add("watchNamespaces: [a]\n")
	f.Add("deploymentConfig: &a {annotations: *a}\n")
	f.Add("a: &a [*a, *a]")
	f.Add("---\n...\n---\n")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := registryv1file.ParseConfig([]byte(text))
		if err != nil {
			return
		}
		var want v1alpha1.RegistryV1Options
		if err := registryv1file.DecodeStrictly([]byte(text), &want); err != nil {
			t.Fatalf("taken, but: %v", err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestRenderConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	render := func(args ...string) outcome {
		return satchel(t, append([]string{"render", bundles + "registry", "--install-namespace", "demo"}, args...)...)
	}
	write("watchNamespaces: [shop]\n")
	fromFile, fromFlags := render("--config", file), render("--watch-namespace", "shop")
	if fromFile.Code != kit.ExitOK || fromFile.Out != fromFlags.Out {
		t.Errorf("the file and the flags differ: -flags +file:\n%s", cmp.Diff(fromFlags.String(), fromFile.String()))
	}
	if got := render("--config", file, "--watch-namespace", "billing"); !strings.Contains(got.Out, "namespace: billing") || strings.Contains(got.Out, "shop") {
		t.Errorf("the flag does not replace what the file says: %s", got)
	}
	write("watchNamespaces: [shop, x]\ncertificateProvider: none\n")
	if got := render("--config", file); got.Code != kit.ExitError || !strings.Contains(got.Err, `line 2: certificateProvider is "none"`) || !strings.Contains(got.Err, file) {
		t.Errorf("a refused file: %s", got)
	}
	if got := render("--config", filepath.Join(t.TempDir(), "none.yaml")); got.Code != kit.ExitError || !strings.Contains(got.Err, "none.yaml: no such file") {
		t.Errorf("a missing file: %s", got)
	}
	write(strings.Repeat("#", registryv1file.LongestConfig+1))
	if got := render("--config", file); got.Code != kit.ExitError || !strings.Contains(got.Err, "larger than 1 MiB") {
		t.Errorf("a file without end: %s", got.Err)
	}
	write("podAnnotations: All\n")
	if got := satchel(t, "render", bundles+"plain", "--install-namespace", "demo", "--config", file); got.Code != kit.ExitOK || !strings.Contains(got.Err, "--config have no effect on it") {
		t.Errorf("options without a meaning: %s", got)
	}
}

func TestRenderConfigFromStandardInput(t *testing.T) {
	var out, errOut bytes.Buffer
	code := Run(t.Context(), kit.Program{Path: "satchel", Now: time.Now, Streams: genericiooptions.IOStreams{In: strings.NewReader("watchNamespaces: [shop]"), Out: &out, ErrOut: &errOut}},
		[]string{"render", bundles + "registry", "--install-namespace", "demo", "--config", "-"})
	if code != kit.ExitOK || !strings.Contains(out.String(), "namespace: shop") {
		t.Errorf("exit %d, %s%s", code, errOut.String(), out.String())
	}
}

// TestRenderSelfSigned checks that objects that the controller adds are named.
func TestRenderSelfSigned(t *testing.T) {
	got := satchel(t, "render", bundles+"gadget", "--install-namespace", "demo")
	golden(t, "render/self-signed", got.String())
	if named := satchel(t, "render", bundles+"gadget", "--install-namespace", "demo", "--certificate-provider", "self-signed"); named != got {
		t.Errorf("it is not the default: -default +named:\n%s", cmp.Diff(got.String(), named.String()))
	}
	if other := satchel(t, "render", bundles+"gadget", "--install-namespace", "demo", "--certificate-provider", "cert-manager"); strings.Contains(other.Err, "Not shown") || !strings.Contains(other.Out, "kind: Certificate") {
		t.Errorf("cert-manager issues its own: %s", other)
	}
}
