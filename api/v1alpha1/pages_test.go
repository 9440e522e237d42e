// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// specPage is the page of documentation about one kind, which has to be complete.
type specPage struct {
	kind, file, definition string
	// comment is how the comments on the constants of its reasons and conditions begin, and
	// controller the folder of the code that uses reasons.
	comment, controller string
	// foreign are fields that hold a type of another page: what is below them is told there.
	foreign []string
	// reads are constants for reasons of other kinds, which the controller compares with and never sets.
	reads []string
}

func sourcePage() specPage {
	return specPage{
		kind: v1alpha1.BundleSourceKind, file: "../../docs/bundlesource.md", definition: "../../config/crd/bases/satchel.dev_bundlesources.yaml",
		comment: "of BundleSource", controller: "../../internal/controller/source",
		foreign: []string{"status.artifact", "status.conditions"},
	}
}

func deploymentPage() specPage {
	return specPage{
		kind: v1alpha1.BundleDeploymentKind, file: "../../docs/bundledeployment.md", definition: "../../config/crd/bases/satchel.dev_bundledeployments.yaml",
		comment: "of BundleDeployment", controller: "../../internal/controller/deployment",
		foreign: []string{"spec.source", "spec.registryV1.deploymentConfig", "status.conditions"},
		reads:   []string{"ReasonVerificationFailed"},
	}
}

func approvalPage() specPage {
	return specPage{
		kind: v1alpha1.BundleApprovalKind, file: "../../docs/bundleapproval.md", definition: "../../config/crd/bases/satchel.dev_bundleapprovals.yaml",
	}
}

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

// fields returns the fields of the kind below spec and status by their path, without list indexes.
func (p specPage) fields(t *testing.T) map[string]field {
	t.Helper()
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict([]byte(read(t, p.definition)), &definition); err != nil {
		t.Fatal(err)
	}
	fields := map[string]field{}
	root := definition.Spec.Versions[0].Schema.OpenAPIV3Schema
	for _, half := range []string{"spec", "status"} {
		p.addFields(fields, half, root.Properties[half], true)
	}
	return fields
}

func (p specPage) addFields(fields map[string]field, at string, schema apiextensionsv1.JSONSchemaProps, own bool) {
	if schema.Items != nil {
		schema.Properties = schema.Items.Schema.Properties
	}
	for name, property := range schema.Properties {
		where := at + "." + name
		fields[where] = field{schema: property, own: own}
		p.addFields(fields, where, property, own && !slices.Contains(p.foreign, where))
	}
}

// TestPagesHaveTheFields wants a row about each field of a kind that tells its default and its bounds, and no word about
// fields that do not exist.
func TestPagesHaveTheFields(t *testing.T) {
	for _, p := range []specPage{sourcePage(), deploymentPage(), approvalPage()} {
		t.Run(p.kind, p.checkFields)
	}
}

func (p specPage) checkFields(t *testing.T) {
	page, fields := read(t, p.file), p.fields(t)
	for name, f := range fields {
		line := row(page, name)
		switch {
		case !f.own:
		case line != "":
			checkBounds(t, name, line, f.schema)
		case f.schema.Type != "object" || f.schema.Properties == nil:
			t.Errorf("no table of the page has a row about %s", name)
		case !strings.Contains(page, "`"+name):
			t.Errorf("the page does not name %s", name)
		}
	}
	for _, match := range regexp.MustCompile("`((spec|status)\\.[A-Za-z0-9.]+)").FindAllStringSubmatch(page, -1) {
		if _, known := fields[match[1]]; !known {
			t.Errorf("the page names %s, which %s does not have", match[1], p.kind)
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

// TestPagesHaveTheReasons wants a row about each condition and reason that the API names for a kind or that its controller
// uses, and no other.
func TestPagesHaveTheReasons(t *testing.T) {
	for _, p := range []specPage{sourcePage(), deploymentPage()} {
		t.Run(p.kind, p.checkReasons)
	}
}

func (p specPage) checkReasons(t *testing.T) {
	page := read(t, p.file)
	values, reasons := constants(t, "Reasons "+p.comment)
	_, kinds := constants(t, "Conditions "+p.comment, "ReadyCondition")
	wantReasons, wantKinds := map[string]bool{}, map[string]bool{meta.ReconcilingCondition: true, meta.StalledCondition: true}
	for _, name := range append(reasons, p.usedReasons(t)...) {
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
				t.Errorf("the page has a row about the %s %s, which no %s has", what, name, p.kind)
			}
		}
	}
	compare("reason", "### Reasons, and what to do", wantReasons)
	compare("condition", "### Conditions", wantKinds)
}

// usedReasons returns the constants for reasons that the controller of the kind uses.
func (p specPage) usedReasons(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(p.controller, func(file string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && filepath.Ext(file) == ".go" {
			files = append(files, file)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatal("no controller", err)
	}
	names := []string{"ReasonProgressingWithRetry"} // of what both report by
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, match := range regexp.MustCompile(`v1alpha1\.(Reason[A-Z]\w*)`).FindAllStringSubmatch(read(t, file), -1) {
			if !slices.Contains(p.reads, match[1]) {
				names = append(names, match[1])
			}
		}
	}
	return names
}

// TestPagesHaveNoDeadLinks follows the links of the pages within them and to other files.
func TestPagesHaveNoDeadLinks(t *testing.T) {
	for _, p := range []specPage{sourcePage(), deploymentPage(), approvalPage()} {
		t.Run(p.kind, p.checkLinks)
	}
}

func (p specPage) checkLinks(t *testing.T) {
	page := read(t, p.file)
	for _, match := range regexp.MustCompile(`\]\(([^)]*)\)`).FindAllStringSubmatch(page, -1) {
		file, anchor, within := strings.Cut(match[1], "#")
		target := p.file
		if file != "" {
			target = filepath.Join(filepath.Dir(p.file), file)
		}
		if _, err := os.Stat(target); err != nil {
			t.Errorf("the link %s leads nowhere", match[1])
		} else if within && !anchors(read(t, target))[anchor] {
			t.Errorf("the link %s leads to no section", match[1])
		}
	}
}

// anchors are the sections of a page, as links spell them.
func anchors(page string) map[string]bool {
	names := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		names[strings.NewReplacer(" ", "-", ",", "").Replace(strings.ToLower(match[1]))] = true
	}
	return names
}
