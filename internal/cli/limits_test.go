// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/satchel-dev/satchel/internal/convert"
)

// TestLimitFlags: every command that converts bundles has the flags of the controllers for what their manifests may be.
func TestLimitFlags(t *testing.T) {
	limits := convert.DefaultLimits()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	limits.BindFlags(flags)
	for _, command := range []string{"render", "validate", "inspect", "rbac", "plan", "run", "bundle init"} {
		help := satchel(t, append(strings.Fields(command), "--help")...).Out
		flags.VisitAll(func(f *pflag.Flag) {
			if !strings.Contains(help, "--"+f.Name) {
				t.Errorf("%s has no --%s", command, f.Name)
			}
		})
	}
}

// TestLimitsOfABundle: what the limits of the controllers would refuse can be tried without them.
func TestLimitsOfABundle(t *testing.T) {
	dir := t.TempDir()
	object := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  a: " + strings.Repeat("x", 2<<20) + "\n"
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(object), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args    []string
		code    int
		message string
	}{
		{[]string{"render"}, 2, "raise --limit-object-bytes"},
		{[]string{"render", "--limit-object-bytes=3000000"}, 0, ""},
		{[]string{"render", "--limit-object-bytes=3000000", "--limit-manifest-bytes=2000000"}, 2, "raise --limit-manifest-bytes"},
		{[]string{"inspect", "--limit-object-bytes=3000000"}, 0, ""},
		{[]string{"rbac"}, 2, "raise --limit-object-bytes"},
		{[]string{"rbac", "--limit-object-bytes=3000000"}, 0, ""},
		{[]string{"validate"}, 2, "raise --limit-object-bytes"},
		{[]string{"validate", "--limit-object-bytes=3000000"}, 0, ""},
	} {
		got := satchel(t, append(c.args, dir, "--install-namespace", "demo")...)
		if said := strings.Join(strings.Fields(got.Out+got.Err), " "); got.Code != c.code || !strings.Contains(said, c.message) {
			t.Errorf("%v: exit %d, %.500s", c.args, got.Code, said)
		}
	}
}

// TestWarningsOfEqualKeys: render, inspect and validate say where a key is that appears twice.
func TestWarningsOfEqualKeys(t *testing.T) {
	dir := t.TempDir()
	object := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: b}\ndata: {a: b}\n"
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(object), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"render", "inspect", "validate"} {
		got := satchel(t, command, dir, "--install-namespace", "demo")
		if said := strings.Join(strings.Fields(got.Out+got.Err), " "); got.Code != 0 || !strings.Contains(said, `line 5: the key "data" appears twice in one mapping, with equal values; the first is in line 4`) {
			t.Errorf("%s: exit %d, %s", command, got.Code, said)
		}
	}
}
