// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// completionTimeout bounds what pressing Tab may take.
const completionTimeout = 3 * time.Second

// completer suggests words; cobra calls it when the user presses Tab.
type completer = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective)

func (a *app) completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a script that completes commands, names and flags in your shell",
		Long: `Prints a script that makes the shell complete commands, flags, and the names of objects in the cluster.

As a kubectl plugin, the program is completed by kubectl's own script when an executable file kubectl_complete-satchel in
the PATH holds the two lines:

    #!/bin/sh
    exec kubectl satchel __complete "$@"`,
		Example: a.example(`
# bash, for all sessions to come (needs the package bash-completion)
satchel completion bash > ~/.local/share/bash-completion/completions/satchel

# zsh, where a folder of $fpath is yours
satchel completion zsh > "${fpath[1]}/_satchel"

# fish
satchel completion fish > ~/.config/fish/completions/satchel.fish

# PowerShell, for this session
satchel completion powershell | Out-String | Invoke-Expression`),
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError(cmd, "completion needs the name of one shell: bash, zsh, fish or powershell")
			}
			root, out := cmd.Root(), a.streams.Out
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(out)
			}
			return usageError(cmd, "there is no completion for %q: choose bash, zsh, fish or powershell", args[0])
		},
	}
}

// completeFlag sets how a flag's value is completed. It can only fail for a flag that does not exist, which the test
// of all flags would show.
func (a *app) completeFlag(cmd *cobra.Command, flag string, complete completer) {
	_ = cmd.RegisterFlagCompletionFunc(flag, complete)
}

// fixed completes a few words.
func fixed(words ...string) completer {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeOne completes the name of one object.
func (a *app) completeOne(k kind) completer {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.objectNames(cmd.Context(), k), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeTargets completes [KIND] NAME; with many, further names.
func (a *app) completeTargets(many bool) completer {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		k, isKind := deployments, false
		if len(args) > 0 {
			if named, found := kindNamed(args[0]); found {
				k, isKind = named, true
			}
		}
		given := len(args)
		if isKind {
			given--
		}
		if given > 0 && !many {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if word, _, found := strings.Cut(begun, "/"); found {
			return a.qualifiedNames(cmd.Context(), word), cobra.ShellCompDirectiveNoFileComp
		}
		words := slices.DeleteFunc(a.objectNames(cmd.Context(), k), func(name string) bool { return slices.Contains(args, name) })
		if len(args) == 0 {
			words = append(words, kindWords(many)...)
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

func kindWords(many bool) []string {
	if many {
		return []string{"deployments", "sources", "all"}
	}
	return []string{"deployment", "source"}
}

// qualifiedNames completes KIND/NAME.
func (a *app) qualifiedNames(ctx context.Context, word string) []string {
	k, found := kindNamed(word)
	if !found {
		return nil
	}
	words := a.objectNames(ctx, k)
	for i, name := range words {
		words[i] = word + "/" + name
	}
	return words
}

// objectNames returns the names of a kind in the namespace; none when the cluster does not answer in time.
func (a *app) objectNames(ctx context.Context, k kind) []string {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	c, err := a.connect()
	if err != nil {
		return nil
	}
	list := &metav1.PartialObjectMetadataList{} // an inventory is large, and completion has to be fast
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(k.name + "List"))
	if err := c.client.List(ctx, list, client.InNamespace(c.namespace)); err != nil {
		return nil
	}
	words := make([]string, 0, len(list.Items))
	for _, item := range list.Items {
		words = append(words, item.Name)
	}
	return words
}

// completeNamespaces completes the names of namespaces, where the user may list them.
func (a *app) completeNamespaces(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	config, err := a.restConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	c, err := client.New(config, client.Options{Mapper: namespaceMapper()})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(namespaceKind.GroupVersion().WithKind("NamespaceList"))
	if err := c.List(ctx, list); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	words := make([]string, 0, len(list.Items))
	for _, item := range list.Items {
		words = append(words, item.Name)
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// completeContexts completes the contexts of the kubeconfig.
func (a *app) completeContexts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	config, err := a.config.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	words := make([]string, 0, len(config.Contexts))
	for name := range config.Contexts {
		words = append(words, name)
	}
	slices.Sort(words)
	return words, cobra.ShellCompDirectiveNoFileComp
}
