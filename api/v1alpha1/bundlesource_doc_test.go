// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

const sourcePage = "../../docs/bundlesource.md"

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// row returns the line of a table that begins with a name, "" when there is none.
func row(page, name string) string {
	_, rest, found := strings.Cut(page, "\n| `"+name+"` |")
	if !found {
		return ""
	}
	line, _, _ := strings.Cut(rest, "\n")
	return line
}

// field is one field of the API, as its CustomResourceDefinition has it.
type field struct {
	schema apiextensionsv1.JSONSchemaProps
	// own tells that its meaning is of this API: the fields of conditions and artifacts are those of others.
	own bool
}

// sourceFields returns the fields of BundleSource below spec and status by their path, without list indexes.
func sourceFields(t *testing.T) map[string]field {
	t.Helper()
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict([]byte(read(t, "../../config/crd/bases/satchel.dev_bundlesources.yaml")), &definition); err != nil {
		t.Fatal(err)
	}
	fields := map[string]field{}
	root := definition.Spec.Versions[0].Schema.OpenAPIV3Schema
	for _, half := range []string{"spec", "status"} {
		addFields(fields, half, root.Properties[half], true)
	}
	return fields
}

func addFields(fields map[string]field, at string, schema apiextensionsv1.JSONSchemaProps, own bool) {
	if schema.Items != nil {
		schema.Properties = schema.Items.Schema.Properties
	}
	for name, property := range schema.Properties {
		where := at + "." + name
		fields[where] = field{schema: property, own: own}
		addFields(fields, where, property, own && where != "status.artifact" && where != "status.conditions")
	}
}

// TestSourcePageFields wants a row about each field of BundleSource that tells its default and its bounds, and no word about
// fields that do not exist.
func TestSourcePageFields(t *testing.T) {
	page, fields := read(t, sourcePage), sourceFields(t)
	for name, f := range fields {
		line := row(page, name)
		switch {
		case !f.own:
		case f.schema.Type == "object" && f.schema.Properties != nil:
			if !strings.Contains(page, "`"+name) {
				t.Errorf("the page does not name %s", name)
			}
		case line == "":
			t.Errorf("no table of the page has a row about %s", name)
		default:
			checkBounds(t, name, line, f.schema)
		}
	}
	for _, match := range regexp.MustCompile("`((spec|status)\\.[A-Za-z0-9.]+)").FindAllStringSubmatch(page, -1) {
		if _, known := fields[match[1]]; !known {
			t.Errorf("the page names %s, which BundleSource does not have", match[1])
		}
	}
}

// checkBounds wants a row to say what the schema says.
func checkBounds(t *testing.T, name, line string, schema apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	var want []string
	if schema.Default != nil {
		if value := strings.Trim(string(schema.Default.Raw), `"`); value != "" {
			want = append(want, "`"+value+"`")
		}
	}
	const nameOfObject = 253 // said once for all
	for _, bound := range []*int64{schema.MaxLength, schema.MaxItems, schema.MinItems} {
		if bound != nil && *bound != nameOfObject && !isDuration(schema) {
			want = append(want, strconv.FormatInt(*bound, 10))
		}
	}
	for _, value := range schema.Enum {
		want = append(want, "`"+strings.Trim(string(value.Raw), `"`)+"`")
	}
	for _, text := range want {
		if !strings.Contains(line, text) {
			t.Errorf("the row about %s does not tell %s: %s", name, text, line)
		}
	}
}

// isDuration tells durations, of which the bounds are in CEL: that of their text says nothing to people.
func isDuration(schema apiextensionsv1.JSONSchemaProps) bool {
	return slices.ContainsFunc(schema.XValidations, func(r apiextensionsv1.ValidationRule) bool {
		return strings.Contains(r.Rule, "duration(self)")
	})
}

// metaReasons are the reasons that Flux names for all.
var metaReasons = map[string]string{
	"SucceededReason": meta.SucceededReason, "ProgressingReason": meta.ProgressingReason,
	"ProgressingWithRetryReason": meta.ProgressingWithRetryReason, "SuspendedReason": meta.SuspendedReason,
	"ReadyCondition": meta.ReadyCondition,
}

// constants returns the values of the constants in conditions.go by their name, and the names in the blocks of which the
// comment begins in one way.
func constants(t *testing.T, comments ...string) (values map[string]string, named []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), "conditions.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	values = map[string]string{}
	for _, declaration := range parsed.Decls {
		block, ok := declaration.(*ast.GenDecl)
		if !ok || block.Tok != token.CONST {
			continue
		}
		wanted := slices.ContainsFunc(comments, func(c string) bool { return strings.HasPrefix(block.Doc.Text(), c) })
		for _, spec := range block.Specs {
			constant := spec.(*ast.ValueSpec) //nolint:errcheck,forcetypeassert // constants have no other form
			name := constant.Names[0].Name
			if values[name] = valueOf(constant.Values[0]); values[name] == "" {
				t.Errorf("the value of %s is not known to this test", name)
			}
			if wanted {
				named = append(named, name)
			}
		}
	}
	return values, named
}

func valueOf(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.BasicLit:
		return strings.Trim(e.Value, `"`)
	case *ast.SelectorExpr:
		return metaReasons[e.Sel.Name]
	}
	return ""
}

// section returns the part of the page below a heading.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	_, rest, found := strings.Cut(page, "\n"+heading+"\n")
	if !found {
		t.Fatalf("the page has no section %q", heading)
	}
	rest, _, _ = strings.Cut(rest, "\n#")
	return rest
}

// firsts are the names that the rows of a table begin with.
func firsts(text string) []string {
	var names []string
	for _, match := range regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\|").FindAllStringSubmatch(text, -1) {
		names = append(names, match[1])
	}
	return names
}

// TestSourcePageReasons wants a row about each condition and reason that the API names for BundleSource or that its controller
// uses, and no other.
func TestSourcePageReasons(t *testing.T) {
	page := read(t, sourcePage)
	values, reasons := constants(t, "Reasons of BundleSource")
	_, kinds := constants(t, "Conditions of BundleSource", "ReadyCondition")
	wantReasons, wantKinds := map[string]bool{}, map[string]bool{meta.ReconcilingCondition: true, meta.StalledCondition: true}
	for _, name := range append(reasons, usedBySources(t)...) {
		wantReasons[values[name]] = true
	}
	for _, name := range kinds {
		wantKinds[values[name]] = true
	}
	compare := func(what, heading string, want map[string]bool) {
		have := firsts(section(t, page, heading))
		for name := range want {
			if !slices.Contains(have, name) {
				t.Errorf("the page has no row about the %s %s", what, name)
			}
		}
		for _, name := range have {
			if !want[name] {
				t.Errorf("the page has a row about the %s %s, which no BundleSource has", what, name)
			}
		}
	}
	compare("reason", "### Reasons, and what to do", wantReasons)
	compare("condition", "### Conditions", wantKinds)
}

// usedBySources returns the constants for reasons that the source controller uses.
func usedBySources(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../internal/controller/source/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal("no source controller", err)
	}
	var names []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, match := range regexp.MustCompile(`v1alpha1\.(Reason[A-Z]\w*)`).FindAllStringSubmatch(read(t, file), -1) {
			names = append(names, match[1])
		}
	}
	return names
}

// TestSourcePageExamples creates all YAML of the page, and the samples, as users do. What begins with spec is that of a BundleSource.
func TestSourcePageExamples(t *testing.T) {
	a := newAdmission(t)
	texts := regexp.MustCompile("(?s)\n```yaml\n(.*?)```\n").FindAllStringSubmatch(read(t, sourcePage), -1)
	if len(texts) < 10 {
		t.Errorf("only %d examples were found", len(texts))
	}
	for i, match := range texts {
		t.Run(fmt.Sprint(i+1), func(t *testing.T) { a.example(t, match[1]) })
	}
	samples, err := filepath.Glob("../../config/samples/sources/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, sample := range samples {
		if filepath.Base(sample) != "kustomization.yaml" {
			t.Run(filepath.Base(sample), func(t *testing.T) { a.example(t, read(t, sample)) })
		}
	}
}

// resources are the kinds in the examples that the control plane knows.
var resources = map[string]schema.GroupVersionResource{
	"BundleSource":     v1alpha1.GroupVersion.WithResource("bundlesources"),
	"BundleDeployment": v1alpha1.GroupVersion.WithResource("bundledeployments"),
	"NetworkPolicy":    {Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"},
}

func (a admission) example(t *testing.T, text string) {
	t.Helper()
	if strings.HasPrefix(text, "spec:\n") {
		text = "apiVersion: " + v1alpha1.GroupVersion.String() + "\nkind: BundleSource\nmetadata:\n  name: example\n" + text
	}
	var content map[string]any
	if err := yaml.UnmarshalStrict([]byte(text), &content); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	object := &unstructured.Unstructured{Object: content}
	resource, known := resources[object.GetKind()]
	if !known && object.GroupVersionKind().Group == "kustomize.toolkit.fluxcd.io" {
		return // of Flux, which is not here
	}
	object.SetNamespace(a.namespace)
	_, err := a.client.Resource(resource).Namespace(a.namespace).Create(t.Context(), object, metav1.CreateOptions{
		FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll},
	})
	if err != nil {
		t.Errorf("%v in\n%s", err, text)
	}
}

// TestSourcePageLinks follows the links of the page within it and to other files.
func TestSourcePageLinks(t *testing.T) {
	page := read(t, sourcePage)
	anchors := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		anchors["#"+strings.NewReplacer(" ", "-", ",", "").Replace(strings.ToLower(match[1]))] = true
	}
	for _, match := range regexp.MustCompile(`\]\(([^)]*)\)`).FindAllStringSubmatch(page, -1) {
		_, err := os.Stat(filepath.Join(filepath.Dir(sourcePage), match[1]))
		if !anchors[match[1]] && err != nil {
			t.Errorf("the link %s leads nowhere", match[1])
		}
	}
}
