// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/internal/cli/inspect"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/lint"
)

// TestM8HostileBundlesAreExaminedInWorkers: a value that contains itself overflows the stack, which ends the worker process
// and not this one, for every command that reads the chart.
func TestM8HostileBundlesAreExaminedInWorkers(t *testing.T) {
	chart := t.TempDir()
	for name, content := range map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: app\nversion: 1.0.0\n", "templates/a.yaml": `{{ $d := dict }}{{ $_ := set $d "a" $d }}{{ $d }}`,
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(chart, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(chart, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, command := range []string{"validate", "inspect", "render"} {
		got := satchel(t, command, chart, "--install-namespace", "demo")
		if got.Code != kit.ExitError || !strings.Contains(got.Err, "exceeded the limit of 2048 MiB memory") {
			t.Errorf("%s: %s", command, got)
		}
	}
}

func TestValidate(t *testing.T) {
	t.Chdir(bundles)
	for name, tc := range map[string]struct {
		reason string
		args   []string
		code   int
	}{
		"faulty":         {reason: "all problems at once, with what to do", args: []string{"./faulty"}, code: kit.ExitError},
		"gadget":         {reason: "nothing to say", args: []string{"./gadget", "--strict"}, code: kit.ExitOK},
		"greeter":        {reason: "warnings are no errors", args: []string{"./registry"}, code: kit.ExitOK},
		"greeter-strict": {reason: "unless they are asked to be", args: []string{"./registry", "--strict"}, code: kit.ExitNo},
		"greeter-json":   {reason: "for programs", args: []string{"./registry", "-o", "json"}, code: kit.ExitOK},
		"plain":          {reason: "plain bundles too", args: []string{"./plain", "--strict"}, code: kit.ExitOK},
		"broken":         {reason: "what the reader says of them", args: []string{"./broken", "--strict"}, code: kit.ExitError},
		"choice": {reason: "with the flags of render, what is wrong with the choice", code: kit.ExitError,
			args: []string{"./gadget", "--install-namespace", "tools", "--watch-namespace", "shop"}},
		"part":      {reason: "a part of a bundle passes for a plain one", args: []string{"./gadget/manifests", "--strict"}, code: kit.ExitNo},
		"plain-v0":  {reason: "what RukPak would not take", args: []string{"./plain", "--plain-v0"}, code: kit.ExitError},
		"broken-v0": {reason: "with lines", args: []string{"./broken", "--plain-v0"}, code: kit.ExitError},
		"no-path":   {reason: "what could not be found", args: []string{"./faulty", "--path", "nowhere"}, code: kit.ExitError},
	} {
		t.Run(name, func(t *testing.T) {
			got := satchel(t, append([]string{"validate"}, tc.args...)...)
			if got.Code != tc.code {
				t.Errorf("%s: exit %d, want %d", tc.reason, got.Code, tc.code)
			}
			golden(t, "../../validate/"+name, got.String())
		})
	}
	if got := satchel(t, "validate", "."); got.Code != kit.ExitError || !strings.HasPrefix(got.Out, "Hint: there are registry+v1 bundles in it: faulty, gadget, registry; if one of them was meant, name it: add --path faulty\nRead the folder ") {
		t.Errorf("what may have been meant is not said: %s", got)
	}
}

func TestValidateUsage(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, want string
		args         []string
	}{
		"nothing":      {reason: "what to validate?", want: "validate needs one folder or image, or -f with a BundleDeployment, got none"},
		"no folder":    {reason: "it could not be read", args: []string{"./none"}, want: "there is no folder ./none"},
		"no config":    {reason: "options that cannot be read are no finding about the bundle", args: []string{bundles + "gadget", "--config", "./none"}, want: "no such file"},
		"two formats":  {reason: "which one?", args: []string{bundles + "gadget", "--plain-v0", "--format", "registry+v1"}, want: "--plain-v0 is about bundles of that format, and --format says registry+v1"},
		"other output": {reason: "what there is", args: []string{bundles + "gadget", "-o", "yaml"}, want: "not one of: text, json"},
	} {
		got := satchel(t, append([]string{"validate"}, tc.args...)...)
		if got.Code != kit.ExitError || got.Out != "" || !strings.Contains(got.Err, tc.want) {
			t.Errorf("%s: %s: %s", name, tc.reason, got)
		}
	}
}

// TestValidateIsBounded checks the output for a bundle with errors everywhere, and that it contains no control characters.
func TestValidateIsBounded(t *testing.T) {
	dir := t.TempDir()
	var text strings.Builder
	for i := range 150 {
		fmt.Fprintf(&text, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"a\\e[2J/%d\"}\n", i)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	got := satchel(t, "validate", dir)
	if got.Code != kit.ExitError || strings.Contains(got.Out, "\x1b") || strings.Count(got.Out, "\n") > 4*kit.MostListed {
		t.Errorf("%d lines, exit %d:\n%.2000s", strings.Count(got.Out, "\n"), got.Code, got.Out)
	}
	got = satchel(t, "validate", dir, "-o", "json")
	var v inspect.Verdict
	if err := json.Unmarshal([]byte(got.Out), &v); err != nil || v.Count(lint.Error) < 100 {
		t.Errorf("%d errors, %v", v.Count(lint.Error), err)
	}
}

func TestWriteWrapped(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text, want string
		width              int
	}{
		"no width":  {reason: "lines stay in one piece", text: "a b c d e f", want: "- a b c d e f\n"},
		"narrow":    {reason: "broken between words", text: "a b c d e f", width: 7, want: "- a b c\n    d e\n    f\n"},
		"long word": {reason: "words stay in one piece", text: "aaaaaaaaaa b", width: 7, want: "- aaaaaaaaaa\n    b\n"},
		"nothing":   {reason: "an empty line", want: "-\n"},
	} {
		var out strings.Builder
		printer.WriteWrapped(&out, tc.text, "- ", "    ", tc.width)
		if out.String() != tc.want {
			t.Errorf("%s: %s: got %q", name, tc.reason, out.String())
		}
	}
}

// TestValidateAndInspectImage checks that images are read like folders, and that no files of them are left.
func TestValidateAndInspectImage(t *testing.T) {
	ref, digest := serveImage(t)
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	validated, inspected := satchel(t, "validate", ref, "--insecure"), satchel(t, "inspect", ref, "--insecure")
	if validated.Code != kit.ExitOK || !strings.HasPrefix(validated.Out, "Read the image "+ref+", which is "+digest+": registry+v1, examined as installed in operators, watching all namespaces.\n") {
		t.Errorf("%s", validated)
	}
	if inspected.Code != kit.ExitOK || !strings.HasPrefix(inspected.Out, "Greeter\n") || !strings.Contains(inspected.Err, digest) {
		t.Errorf("%s", inspected)
	}
	nothingLeft(t, temporary)
}
