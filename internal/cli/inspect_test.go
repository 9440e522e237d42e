// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbac "k8s.io/api/rbac/v1"

	"github.com/satchel-dev/satchel/internal/cli/inspect"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
)

func TestInspect(t *testing.T) {
	t.Chdir(bundles)
	for name, args := range map[string][]string{
		"gadget":      {"./gadget"},
		"gadget-json": {"./gadget", "-o", "json"},
		"greeter":     {"./registry", "--install-namespace", "tools", "--watch-namespace", "shop"},
		"plain":       {"./plain", "-o", "text"},
		"plain-yaml":  {"./plain", "-o", "yaml"},
		"faulty":      {"./faulty"},
	} {
		t.Run(name, func(t *testing.T) {
			golden(t, "../../inspect/"+name, satchel(t, append([]string{"inspect"}, args...)...).String())
		})
	}
}

func TestInspectUsage(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, want string
		args         []string
	}{
		"nothing":     {reason: "what to inspect?", want: "inspect needs one folder or image, or -f with a BundleDeployment, got none"},
		"a namespace": {reason: "which one?", want: "--install-namespace", args: []string{bundles + "plain", "-n", "demo"}},
		"no such way": {reason: "the converter's word", want: "always watches all namespaces", args: []string{bundles + "gadget", "--watch-namespace", "shop"}},
	} {
		if got := satchel(t, append([]string{"inspect"}, tc.args...)...); got.Code != kit.ExitError || got.Out != "" || !strings.Contains(got.Err, tc.want) {
			t.Errorf("%s: %s: %s", name, tc.reason, got)
		}
	}
}

// TestInspectFitsTheTerminal checks that no line is longer than the terminal, except for long words.
func TestInspectFitsTheTerminal(t *testing.T) {
	var d inspect.Description
	if err := json.Unmarshal([]byte(satchel(t, "inspect", bundles+"gadget", "-o", "json").Out), &d); err != nil {
		t.Fatal(err)
	}
	const width = 60
	for line := range strings.SplitSeq(d.Print(printer.Style{}, width), "\n") {
		if len([]rune(line)) > width && len(strings.Fields(line)) > 2 {
			t.Errorf("%d characters: %s", len([]rune(line)), line)
		}
	}
}

// TestInspectHostile shows a bundle with control characters in every string and with too many of everything.
func TestInspectHostile(t *testing.T) {
	const bad = "a\x1b[2J\nb"
	d := inspect.Description{Name: bad, DisplayName: bad, Description: bad, Format: bad, Package: bad, Version: bad, Provider: bad, Channels: []string{bad}, SuggestedNamespace: bad}
	for range 3 * kit.MostListed {
		d.Objects = append(d.Objects, inspect.KindCount{Kind: bad, Group: bad})
		d.CRDs = append(d.CRDs, inspect.CrdSummary{Name: bad, Kind: bad, Versions: []string{bad}})
		d.Webhooks = append(d.Webhooks, inspect.WebhookSummary{Name: bad, ServedBy: bad, Rules: []string{bad}})
		d.Certificates = append(d.Certificates, bad)
		d.Images = append(d.Images, inspect.ImageUse{Image: bad, Uses: []string{bad}})
		d.Requirements, d.Warnings = append(d.Requirements, bad), append(d.Warnings, bad)
	}
	d.Permissions = []inspect.PermissionHolder{{Account: bad, Scopes: []inspect.Permission{{Namespace: bad, Rules: make([]inspect.PermissionRule, 3*kit.MostListed)}}}}
	d.Permissions[0].Scopes[0].Rules[0] = inspect.PermissionRule{Resources: bad, Verbs: bad, Danger: bad}
	text := d.Print(printer.Style{}, 80)
	if strings.Contains(text, "\x1b") {
		t.Errorf("it can steer the terminal: %q", text[:500])
	}
	if lines := strings.Count(text, "\n"); lines > 12*kit.MostListed {
		t.Errorf("%d lines", lines)
	}
	if !strings.Contains(text, "and 200 more; -o json prints all") {
		t.Error("what is left out is not counted")
	}
}

func TestDangers(t *testing.T) {
	for name, tc := range map[string]struct {
		reason     string
		rule       rbac.PolicyRule
		everywhere bool
		want       string
	}{
		"harmless":          {reason: "most rules are", rule: rule("apps", "deployments", "get", "create"), everywhere: true},
		"everything":        {reason: "no other reason matters then", rule: rule("*", "*", "*"), want: "may do everything"},
		"all Secrets":       {reason: "those of others too", rule: rule("", "secrets", "list"), everywhere: true, want: "reads the Secrets of all namespaces"},
		"own Secrets":       {reason: "an operator needs its own", rule: rule("", "secrets", "list")},
		"a named Secret":    {reason: "only that one", rule: named(rule("", "secrets", "get"), "a"), everywhere: true},
		"writes Secrets":    {reason: "writing is not reading", rule: rule("", "secrets", "create"), everywhere: true},
		"all verbs":         {reason: "reading is one of them", rule: rule("", "secrets", "*"), everywhere: true, want: "reads the Secrets of all namespaces"},
		"all resources":     {reason: "and what a bundle of tomorrow brings", rule: rule("apps", "*", "get"), want: "names resources that do not exist yet"},
		"verbs of one":      {reason: "wildcards are marked", rule: rule("", "configmaps", "*"), want: "has all verbs"},
		"escalate":          {reason: "past RBAC's own check", rule: rule(rbac.GroupName, "clusterroles", "escalate"), want: "may grant itself any permission"},
		"bind a role":       {reason: "whichever it is, it is another's", rule: named(rule(rbac.GroupName, "roles", "bind"), "admin"), want: "may grant itself any permission"},
		"by another verb":   {reason: "all verbs that begin so", rule: rule("authentication.k8s.io", "userextras/scopes", "impersonate:user-info"), want: "may impersonate other users"},
		"into a Pod":        {reason: "another container in it", rule: rule("", "pods/ephemeralcontainers", "patch"), want: "may run commands in Pods"},
		"another API":       {reason: "the operator answers requests of that API", rule: rule("apiregistration.k8s.io", "apiservices", "create"), want: "may serve in place of other APIs"},
		"no name":           {reason: "to list is to name none", rule: named(rule("", "secrets", "list"), ""), everywhere: true, want: "reads the Secrets of all namespaces"},
		"none among some":   {reason: "the others do not hide it", rule: named(rule("", "secrets", "list"), "a", ""), everywhere: true, want: "reads the Secrets of all namespaces"},
		"one of everything": {reason: "only that one", rule: named(rule("*", "*", "delete"), "a"), want: "names resources that do not exist yet"},
		"impersonate":       {reason: "the permissions of another subject", rule: rule("", "serviceaccounts", "impersonate"), want: "may impersonate other users"},
		"tokens":            {reason: "the permissions of another subject", rule: rule("", "serviceaccounts/token", "create"), want: "may authenticate as any ServiceAccount"},
		"exec":              {reason: "a Pod's rights", rule: rule("", "pods/exec", "create"), want: "may run commands in Pods"},
		"exec in all":       {reason: "by a pattern", rule: rule("", "*/exec", "create"), want: "may run commands in Pods"},
		"another's group":   {reason: "Secrets of a cloud are its own affair", rule: rule("cloud.example.org", "secrets", "get"), everywhere: true},
		"admission":         {reason: "sees and changes what others write", rule: rule("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "update"), want: "may intercept what others write"},
		"its own webhook":   {reason: "that one only", rule: named(rule("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "update"), "a")},
		"through the node":  {reason: "past the API server", rule: rule("", "nodes/proxy", "get"), everywhere: true, want: "reaches all Pods through their nodes"},
		"approval":          {reason: "a certificate for any user", rule: rule("certificates.k8s.io", "certificatesigningrequests/approval", "update"), want: "may issue itself certificates"},
	} {
		if got, _ := view.DangerOf(tc.rule, tc.everywhere); got != tc.want {
			t.Errorf("%s: %s: got %q, want %q", name, tc.reason, got, tc.want)
		}
	}
}

func rule(group, resource string, verbs ...string) rbac.PolicyRule {
	return rbac.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

func named(r rbac.PolicyRule, names ...string) rbac.PolicyRule {
	r.ResourceNames = names
	return r
}

func TestFirstParagraph(t *testing.T) {
	for in, want := range map[string]string{
		"":                                   "",
		"One.\nTwo.\n\nThree.":               "One. Two.",
		"# Title\n\nText with [a link](u).":  "Text with a link.",
		"Title\n=====\nText":                 "Title",
		"\n\n---\n## Title\n":                "",
		"**Bold**.":                          "Bold.",
		"[a](b) and [c](d) [not a link] (e)": "a and c [not a link] (e)",
	} {
		if diff := cmp.Diff(want, inspect.FirstParagraph(in)); diff != "" {
			t.Errorf("%q: -want +got:\n%s", in, diff)
		}
	}
}

// TestInspectCorpus inspects published bundles without any flags.
func TestInspectCorpus(t *testing.T) {
	published, err := filepath.Glob("../../../shared/corpus/registryv1/bundles/*/*")
	if err != nil || len(published) == 0 {
		t.Skip("the corpus of published bundles is not beside the repository (../shared/corpus), so none is inspected")
	}
	for _, dir := range published {
		got := satchel(t, "inspect", dir, "-o", "json")
		var d inspect.Description
		if err := json.Unmarshal([]byte(got.Out), &d); err != nil || got.Code != kit.ExitOK {
			t.Errorf("%s: exit %d, %v\n%s", dir, got.Code, err, got.Err)
			continue
		}
		if d.Package == "" || d.Version == "" || len(d.Objects) == 0 || len(d.InstallModes) == 0 {
			t.Errorf("%s: something is missing: %.1500s", dir, got.Out)
		}
	}
}
