// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/cli/inspect"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
)

// hostileOperator is an operator's bundle with control characters in every free-form string.
func hostileOperator(t *testing.T) map[string]string {
	t.Helper()
	bad := quoted(t, "a"+steering+"\nb")
	return map[string]string{
		"manifests/a" + steering + ".md": "",
		"manifests/csv.yaml": `
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: tool.v1.0.0
  annotations: {note: ` + bad + `, operatorframework.io/suggested-namespace: ` + bad + `, categories: ` + bad + `, capabilities: ` + bad + `}
spec:
  displayName: ` + bad + `
  description: ` + bad + `
  version: 1.0.0
  minKubeVersion: ` + bad + `
  provider: {name: ` + bad + `}
  relatedImages: [{name: ` + bad + `, image: ` + bad + `}]
  nativeAPIs: [{group: ` + bad + `, version: ` + bad + `, kind: ` + bad + `}]
  customresourcedefinitions: {required: [{name: ` + quoted(t, "a."+steering) + `, version: v1, kind: ` + bad + `}]}
  installModes: [{type: AllNamespaces, supported: true}, {type: ` + bad + `, supported: true}]
  webhookdefinitions:
  - {type: ValidatingAdmissionWebhook, generateName: a.example.org, deploymentName: tool, admissionReviewVersions: [v1], sideEffects: None,
     rules: [{apiGroups: [` + bad + `], apiVersions: [v1], operations: [` + bad + `], resources: [` + bad + `]}]}
  install:
    strategy: deployment
    spec:
      clusterPermissions:
      - serviceAccountName: tool
        rules: [{apiGroups: [` + bad + `, ""], resources: [` + bad + `, secrets], verbs: [` + bad + `, "*"], resourceNames: [` + bad + `, ""]}]
      deployments:
      - name: tool
        spec:
          selector: {matchLabels: {app: tool}}
          template:
            metadata: {labels: {app: tool}}
            spec: {containers: [{name: ` + bad + `, image: ` + bad + `, args: [` + bad + `]}]}
`,
		"metadata/annotations.yaml": "annotations:\n  operators.operatorframework.io.bundle.package.v1: tool\n" +
			"  operators.operatorframework.io.bundle.channels.v1: " + bad + "\n  operators.operatorframework.io.bundle.channel.default.v1: " + bad + "\n",
		"metadata/dependencies.yaml": "dependencies: [{type: " + bad + ", value: {}}, {type: olm.package, value: {packageName: " + bad + "}}]\n",
	}
}

// ownLine matches the lines that commands write to standard error.
var ownLine = regexp.MustCompile(`^(|Reading .*|Hint: .*|Warning: .*|Error: .*|As installed in .*|Not shown: .*|  - .*)$`)

// TestOutputsOfHostileBundles shows bundles with control characters, with every command and output.
func TestOutputsOfHostileBundles(t *testing.T) {
	operator := writeFiles(t, hostileOperator(t))
	refused := hostileOperator(t)
	refused["manifests/csv.yaml"] = strings.ReplaceAll(refused["manifests/csv.yaml"], "name: tool", "name: "+quoted(t, steering))
	refused["manifests/b"+steering+".yaml"] = "apiVersion: v1\nkind: " + quoted(t, steering) + "\nmetadata: {name: " + quoted(t, steering) + "}\n"
	parent := map[string]string{}
	for name, text := range hostileOperator(t) {
		parent["in"+steering+"/"+name] = text
	}
	plain := map[string]string{"a" + steering + ".yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: " + quoted(t, steering+"\n"+steering) + "}\n"}
	for name, dir := range map[string]string{
		"operator": operator, "refused": writeFiles(t, refused), "parent": writeFiles(t, parent), "plain": writeFiles(t, plain),
	} {
		for _, args := range [][]string{
			{"inspect"}, {"inspect", "-o", "json"}, {"inspect", "-o", "yaml"}, {"validate"}, {"validate", "-o", "json"},
			{"render", "--install-namespace", "demo"}, {"rbac", "--install-namespace", "demo"},
		} {
			got := satchel(t, append(args, dir)...)
			if len(got.Out+got.Err) < 20 {
				t.Errorf("%s: %v: nothing is said: %s", name, args, got)
			}
			if odd := hiddenIn(got.Out) + hiddenIn(got.Err); odd != "" {
				t.Errorf("%s: %v: %s", name, args, odd)
			}
			for line := range strings.SplitSeq(strings.TrimSpace(got.Err), "\n") {
				if !ownLine.MatchString(line) {
					t.Errorf("%s: %v: a line of the bundle's: %s", name, args, line)
				}
			}
			if name == "operator" && args[0] != "rbac" && got.Code != kit.ExitOK && got.Code != kit.ExitError {
				t.Errorf("%s: %v: exit %d: %s", name, args, got.Code, got.Err)
			}
		}
	}
	if got := satchel(t, "inspect", operator); got.Code != kit.ExitOK || !strings.Contains(got.Out, "! reads the Secrets of all namespaces — ") {
		t.Errorf("the bundle is not shown: %s", got)
	}
}

// TestOutputsKeepEverything checks that escaped values decode to the original ones.
func TestOutputsKeepEverything(t *testing.T) {
	const text = "ordinary, ünïcode ✓ \\u202e\t" + steering + "\n\n  second line: # no comment" + steering
	dir := writeFiles(t, map[string]string{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {\"k\": " + quoted(t, text) + ", \"on\": \"yes\", \"n\": \"1\", plain: \"one\\ntwo\\n\"}\n"})
	got := satchel(t, "render", dir, "--install-namespace", "demo")
	var o struct{ Data map[string]string }
	if err := yaml.UnmarshalStrict([]byte(strings.TrimPrefix(got.Out, "---\n")), &struct {
		Kind, APIVersion string
		Metadata         map[string]string
		Data             *map[string]string
	}{Data: &o.Data}); err != nil || o.Data["k"] != text || o.Data["on"] != "yes" || o.Data["n"] != "1" || o.Data["plain"] != "one\ntwo\n" {
		t.Errorf("%v: %q in\n%s", err, o.Data, got.Out)
	}
	if got, err := printer.YamlText("a\u2028b"); err != nil || string(got) != `"a\Lb"`+"\n" {
		t.Errorf("%v: %q", err, got)
	}
	for _, format := range []printer.Output{printer.OutputJSON, printer.OutputYAML} {
		var out strings.Builder
		if err := printer.PrintValue(&out, format, map[string]any{"a": text, "n": []any{1, true, nil}}); err != nil {
			t.Fatal(err)
		}
		var back struct {
			A string
			N []any
		}
		decode := json.Unmarshal
		if format == printer.OutputYAML {
			decode = func(data []byte, into any) error { return yaml.Unmarshal(data, into) }
		}
		if err := decode([]byte(out.String()), &back); err != nil ||
			back.A != text || len(back.N) != 3 || hiddenIn(strings.ReplaceAll(out.String(), "\t", "")) != "" {
			t.Errorf("%s: %v: %q in\n%s", format, err, back, out.String())
		}
	}
}

// permissionsShown inspects a plain bundle with one ClusterRole that is bound to a ServiceAccount.
func permissionsShown(t *testing.T, role string) (text string, d inspect.Description) {
	t.Helper()
	dir := writeBundle(t, "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: a}\n"+role+`
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: a}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: a}
subjects: [{kind: ServiceAccount, namespace: demo, name: z}]
`)
	got := satchel(t, "inspect", dir)
	if got.Code != kit.ExitOK {
		t.Fatalf("%s", got)
	}
	if err := json.Unmarshal([]byte(satchel(t, "inspect", dir, "-o", "json").Out), &d); err != nil {
		t.Fatal(err)
	}
	return got.Out, d
}

// TestInspectHidesNoPermission shows rules that were written so that a reader would miss them.
func TestInspectHidesNoPermission(t *testing.T) {
	harmless := strings.Repeat("\n- {apiGroups: [a%d.example.org], resources: [a], verbs: [get]}", 1)
	many := func(n int) string {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, harmless, i)
		}
		return text.String()
	}
	wild := func(n int) string { return strings.ReplaceAll(many(n), "[get]", `["*"]`) }
	const secrets = "\n- {apiGroups: [\"\"], resources: [%s], verbs: [%s]}"
	for name, tc := range map[string]struct {
		reason, rules string
		want          []string
	}{
		"among many": {reason: "the list is cut after a hundred", rules: many(300) + fmt.Sprintf(secrets, "zsecrets, secrets", "get"),
			want: []string{"in all namespaces:\n    ! reads the Secrets of all namespaces — zsecrets, secrets in core: get\n", "and 201 more, none of them marked, because marked ones come first; -o json prints all\n"}},
		"too many": {reason: "not even those that are marked fit", rules: wild(300) + many(50),
			want: []string{"! has all verbs — a in a0.example.org: *\n", "and 250 more, 200 OF THEM MARKED; -o json prints all\n"}},
		"after a line end": {reason: "a text that ends early", rules: fmt.Sprintf(secrets, "secrets", `"get\n(end)", "*"`),
			want: []string{"! reads the Secrets of all namespaces — secrets in core: \"get\\n(end)\", *\n"}},
		"in a long list": {reason: "the item is cut", rules: fmt.Sprintf(secrets, strings.Repeat("aaaaaaaaaa, ", 1000)+"secrets", "get"),
			want: []string{"! reads the Secrets of all namespaces — aaaaaaaaaa, ", " more characters)\n"}},
		"similar letters": {reason: "one word passes for another", rules: fmt.Sprintf(secrets, "secretѕ", "get"), want: []string{`      "secret\u0455" in core: get`}},
		"one word as two": {reason: "one word passes for several", rules: fmt.Sprintf(secrets, `"pods, secrets"`, "get"), want: []string{`      "pods, secrets" in core: get`}},
		"no names but one": {reason: "M3: the empty name is neither all names nor nothing", rules: "\n- {apiGroups: [\"\"], resources: [secrets], resourceNames: [\"\"], verbs: [list]}",
			want: []string{`! reads the Secrets of all namespaces — secrets in core named "" ("" is what requests ask for that name none, such as list): list`}},
		"URLs too": {reason: "the API server refuses it, and it is shown", rules: "\n- {apiGroups: [\"\"], resources: [pods], nonResourceURLs: [/metrics], verbs: [get]}",
			want: []string{"      pods in core and /metrics: get\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			text, d := permissionsShown(t, "rules:"+tc.rules)
			for _, want := range tc.want {
				if !strings.Contains(text, want) {
					t.Errorf("%s: %q is missing in\n%.3000s", tc.reason, want, text)
				}
			}
			if got := len(d.Permissions[0].Scopes[0].Rules); got != strings.Count(tc.rules, "\n- {") {
				t.Errorf("%d rules in JSON", got)
			}
		})
	}
	text, _ := permissionsShown(t, "aggregationRule: {clusterRoleSelectors: [{}, {matchLabels: {a: b}}]}")
	for _, want := range []string{"! may do everything — what all ClusterRoles of the cluster give: ?\n", "! aggregates rules that other users write — what the ClusterRoles of the cluster give that are labelled a=b: ?\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("aggregation: %q is missing in\n%s", want, text)
		}
	}
	dir := writeBundle(t, "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: a, labels: {rbac.authorization.k8s.io/aggregate-to-view: \"true\"}}\nrules:"+fmt.Sprintf(secrets, "secrets", "get"))
	if got := satchel(t, "inspect", dir); !strings.Contains(got.Out, "Permissions of holders of the ClusterRole view (1):\n") || !strings.Contains(got.Out, "! reads the Secrets") {
		t.Errorf("rights of users are hidden: %s", got)
	}
}

// TestInspectManyAccounts checks that the accounts with the most dangerous permissions come first.
func TestInspectManyAccounts(t *testing.T) {
	var text strings.Builder
	for i := range 250 {
		fmt.Fprintf(&text, "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: a%d}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}\nsubjects: [{kind: User, name: a%d}]\n", i, i)
	}
	text.WriteString("---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: z}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\nsubjects: [{kind: User, name: z}]\n")
	got := satchel(t, "inspect", writeBundle(t, text.String()))
	first, _, _ := strings.Cut(got.Out, "Permissions of User a0 ")
	if !strings.Contains(first, "Permissions of User z (1):\n  in the namespace operators:\n    ! may do everything — what the ClusterRole cluster-admin of the cluster gives: ?\n") ||
		!strings.Contains(got.Out, "Permissions of other subjects:\n  and 151 more, none of them marked") {
		t.Errorf("%.1500s", got.Out)
	}
}

// TestFlagsAreNamed checks that remedies name flags, and no fields of a BundleDeployment.
func TestFlagsAreNamed(t *testing.T) {
	var sources []string
	for _, pattern := range []string{"../convert/*.go", "../convert/*/*.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatal("no sources", err)
		}
		sources = append(sources, found...)
	}
	named := 0
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		content, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(string(content), "\n") {
			if code := strings.TrimSpace(line); strings.HasPrefix(code, "//") || !strings.Contains(code, `"`) && !strings.Contains(code, "`") {
				continue
			}
			for _, field := range []string{"spec.path", "spec.format", "spec.target.namespace", "watchNamespaces", "registryV1."} {
				if !strings.Contains(line, field) {
					continue
				}
				named++
				if strings.Contains(kit.FlagsFor(line), field) {
					t.Errorf("%s: %s is named where a flag would be of use: %s", source, field, strings.TrimSpace(line))
				}
			}
		}
	}
	if named < 10 {
		t.Errorf("only %d fields were found", named)
	}
}
