// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/satchel-dev/satchel/internal/cli/kit"
)

// TestEveryCommandExplainsItself checks that each command has a description, examples and exit codes, and that each flag with
// a few allowed values has completion.
func TestEveryCommandExplainsItself(t *testing.T) {
	root := rootCommand(testApp(&bytes.Buffer{}))
	for _, cmd := range allCommands(root) {
		if cmd.Short == "" || cmd.Long == "" || cmd.Example == "" {
			t.Errorf("%s lacks Short, Long or Example", cmd.CommandPath())
		}
		if cmd.Name() != "completion" && !strings.Contains(cmd.Long, "Exit codes:") {
			t.Errorf("%s does not tell its exit codes", cmd.CommandPath())
		}
		if cmd != root && cmd.ValidArgsFunction == nil && len(cmd.ValidArgs) == 0 && !strings.Contains(cmd.Use, "PATH|IMAGE") {
			t.Errorf("%s completes no arguments", cmd.CommandPath())
		}
		for _, line := range strings.Split(cmd.Long+"\n"+cmd.Example, "\n") {
			if len([]rune(line)) > 122 {
				t.Errorf("%s: a line of the help is too long: %s", cmd.CommandPath(), line)
			}
		}
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			_, completed := cmd.GetFlagCompletionFunc(flag.Name)
			if strings.Contains(flag.Usage, "One of:") && !completed {
				t.Errorf("%s --%s is not completed", cmd.CommandPath(), flag.Name)
			}
		})
	}
	for _, flag := range []string{"namespace", "context"} {
		if _, completed := root.GetFlagCompletionFunc(flag); !completed {
			t.Errorf("--%s is not completed", flag)
		}
	}
}

// allCommands are a command and all below it.
func allCommands(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, below := range cmd.Commands() {
		all = append(all, allCommands(below)...)
	}
	return all
}

// TestExamplesParse runs the command line of each example as far as its flags.
func TestExamplesParse(t *testing.T) {
	root := rootCommand(testApp(&bytes.Buffer{}))
	seen := 0
	for _, cmd := range allCommands(root) {
		for line := range strings.SplitSeq(strings.ReplaceAll(cmd.Example, "\\\n", " "), "\n") {
			words, found := strings.CutPrefix(strings.TrimSpace(line), "satchel ")
			if !found {
				continue
			}
			seen++
			words, _, _ = strings.Cut(words, "|")
			words, _, _ = strings.Cut(words, ">")
			fields := strings.Fields(strings.TrimSuffix(strings.TrimSpace(words), " 2"))
			named, rest, err := rootCommand(testApp(&bytes.Buffer{})).Find(fields)
			if err == nil {
				err = named.ParseFlags(rest)
			}
			if err != nil || named.Name() != fields[0] && named.Name() != fields[1] {
				t.Errorf("%s: %q: %v", cmd.CommandPath(), line, err)
			}
		}
	}
	if seen < 15 {
		t.Errorf("only %d examples were found", seen)
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
