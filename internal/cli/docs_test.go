// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/tests/clirig"
)

// TestEveryCommandExplainsItself checks descriptions, examples, exit codes and completion.
func TestEveryCommandExplainsItself(t *testing.T) {
	clirig.CheckHelp(t, testRoot())
}

// TestExamplesParse runs the command line of each example as far as its flags.
func TestExamplesParse(t *testing.T) {
	if seen := clirig.CheckExamples(t, testRoot, "satchel"); seen < 15 {
		t.Errorf("only %d examples were found", seen)
	}
}

// TestMigrateSaysWhereItIs checks that the commands of the plugin are not there, and found nevertheless.
func TestMigrateSaysWhereItIs(t *testing.T) {
	for _, tc := range []struct {
		args  []string
		code  int
		wants []string
	}{
		{[]string{"migrate", "--cluster", "-n", "operators"}, kit.ExitError, []string{"Error: migrate is a command of the kubectl plugin satchel-migrate: put kubectl-satchel_migrate,", "run kubectl satchel-migrate manifests; see satchel help migrate"}},
		{[]string{"adopt", "web", "--dry-run", "--former", "helm/web"}, kit.ExitError, []string{"Error: adopt is a command of the kubectl plugin satchel-migrate: ", "run kubectl satchel-migrate adopt; see satchel help migrate"}},
		{[]string{"help", "migrate"}, kit.ExitOK, []string{"kubectl satchel-migrate manifests    translates", "make build"}},
		{[]string{"help", "adopt"}, kit.ExitOK, []string{"kubectl satchel-migrate adopt        adopts"}},
		{[]string{"adopt", "--help"}, kit.ExitOK, []string{"kubectl satchel-migrate adopt        adopts"}},
		{[]string{"help"}, kit.ExitOK, []string{"help migrate says where it is"}},
	} {
		got := satchel(t, tc.args...)
		for _, want := range tc.wants {
			if got.Code != tc.code || !strings.Contains(got.Out+got.Err, want) {
				t.Errorf("%v: %q with exit code %d is missing in %s", tc.args, want, tc.code, got)
			}
		}
	}
	for _, args := range [][]string{{"__complete", ""}, {"__complete", "mig"}, {"__complete", "ad"}} {
		if got := satchel(t, args...); strings.Contains(got.Out, "migrate") || strings.Contains(got.Out, "adopt") {
			t.Errorf("%v: the shell offers it: %s", args, got)
		}
	}
}

// TestPluginName checks that messages name the program as the user runs it.
func TestPluginName(t *testing.T) {
	got := runAs(t, "/opt/bin/kubectl-satchel", time.Now, "status", "--help")
	for _, want := range []string{"Usage:\n  kubectl satchel status [deployment|source|catalog|rollout] NAME", "\n  kubectl satchel status podinfo -n demo\n"} {
		if !strings.Contains(got.Out, want) {
			t.Errorf("%q is missing in\n%s", want, got.Out)
		}
	}
	if strings.Contains(got.Out, "\n  satchel ") {
		t.Errorf("another name is used in\n%s", got.Out)
	}
	for path, want := range map[string]string{
		"satchel": "satchel", "/tmp/x/satchel": "satchel", "kubectl-satchel": "kubectl satchel", "kubectl-satchel.exe": "kubectl satchel",
		"renamed": "satchel", "kubectl-": "satchel",
	} {
		if got := kit.DisplayName(path); got != want {
			t.Errorf("displayName(%q) = %q, want %q", path, got, want)
		}
	}
}

// TestHelpHidesGlobalFlags checks that the help of a command lists only its own flags.
func TestHelpHidesGlobalFlags(t *testing.T) {
	if got := satchel(t, "get", "--help"); strings.Contains(got.Out, "--as-group") || !strings.Contains(got.Out, "satchel --help") {
		t.Errorf("got\n%s", got.Out)
	}
	if got := satchel(t, "--help"); !strings.Contains(got.Out, "--as-group") {
		t.Errorf("got\n%s", got.Out)
	}
}

func TestUsageErrors(t *testing.T) {
	t.Setenv("KUBECONFIG", "/none/config")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for name, tc := range map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"typing error":       {"the command is suggested", []string{"gte"}, `there is no command "gte"; did you mean get?; see satchel --help`},
		"no command":         {"nothing is near", []string{"xyzzy"}, `there is no command "xyzzy"; see satchel --help`},
		"a verb of bundle":   {"where it is", []string{"push"}, `there is no command "push"; did you mean bundle?; see satchel --help`},
		"no verb":            {"what there is", []string{"bundle", "verfy"}, `there is no command bundle "verfy"; did you mean bundle verify?; see satchel bundle --help`},
		"no verb is near":    {"where to look", []string{"bundle", "xyzzy"}, `there is no command bundle "xyzzy"; see satchel bundle --help`},
		"no flag":            {"where to look", []string{"get", "--foo"}, "unknown flag: --foo; see satchel get --help"},
		"no format":          {"what there is", []string{"get", "-o", "csv"}, `invalid argument "csv" for "-o, --output" flag: "csv" is not one of: table, wide, name, json, yaml, jsonpath=, custom-columns=; see satchel get --help`},
		"name and -A":        {"a name is of one namespace", []string{"get", "a", "-A"}, "a name means one object of one namespace: leave -A or the name out; see satchel get --help"},
		"name and -l":        {"a name is a name", []string{"get", "a", "-l", "a=b"}, "a name means one object whatever its labels: leave -l or the name out; see satchel get --help"},
		"status of nothing":  {"of what?", []string{"status"}, "status needs the name of one object, got none; see satchel status --help"},
		"status of two":      {"of which?", []string{"status", "a", "b"}, "status needs the name of one object, got 2: a b; see satchel status --help"},
		"source with source": {"a flag without meaning", []string{"reconcile", "source", "a", "--with-source"}, "--with-source is for deployments; a source is resolved anyway; see satchel reconcile --help"},
		"no shell":           {"which one?", []string{"completion"}, "completion needs the name of one shell: bash, zsh, fish or powershell; see satchel completion --help"},
		"unknown shell":      {"what there is", []string{"completion", "csh"}, `there is no completion for "csh": choose bash, zsh, fish or powershell; see satchel completion --help`},
		"no cluster":         {"how to choose one", []string{"get"}, "no cluster is chosen: the file /none/config of KUBECONFIG does not exist: correct KUBECONFIG, or give --kubeconfig or --server"},
		"no such kubeconfig": {"the file is named", []string{"get", "--kubeconfig", "/none"}, "reading the kubeconfig: stat /none: no such file or directory"},
		"no server": {"which cluster, and what to do", []string{"get", "-s", "http://127.0.0.1:1"},
			"the cluster at http://127.0.0.1:1 cannot be reached (dial tcp 127.0.0.1:1: connect: connection refused): start it, or choose another with --context or --kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			got := satchel(t, tc.args...)
			if diff := cmp.Diff(outcome{Code: kit.ExitError, Err: "Error: " + tc.want + "\n"}, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestVersion(t *testing.T) {
	for _, format := range []string{"text", "json", "yaml"} {
		golden(t, "version/"+format, satchel(t, "version", "--client", "-o", format).String())
	}
	if v := kit.BuildVersion("v1.2.3"); v.Version != "v1.2.3" || v.Go == "" {
		t.Errorf("the linker's version is lost: %+v", v)
	}
	if v := kit.BuildVersion(""); v.Version == "" {
		t.Errorf("a version is missing: %+v", v)
	}
}

func TestCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if got := satchel(t, "completion", shell); got.Code != kit.ExitOK || !strings.Contains(got.Out, "__complete") {
			t.Errorf("%s: %s", shell, got)
		}
	}
}
