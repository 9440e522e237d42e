// SPDX-License-Identifier: Apache-2.0

package kit

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

// CompletionTimeout bounds what pressing Tab may take.
const CompletionTimeout = 3 * time.Second

// Completer suggests words; cobra calls it when the user presses Tab.
type Completer = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective)

// CompleteFlag sets how a flag's value is completed. It can only fail for a flag that does not exist, which the test
// of all flags would show.
func (a *App) CompleteFlag(cmd *cobra.Command, flag string, complete Completer) {
	_ = cmd.RegisterFlagCompletionFunc(flag, complete)
}

// Fixed completes a few words.
func Fixed(words ...string) Completer {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteOne completes the name of one object.
func (a *App) CompleteOne(k Kind) Completer {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.objectNames(cmd.Context(), k), cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteNames completes the names of a kind, whatever the arguments are: for flags.
func (a *App) CompleteNames(k Kind) Completer {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return a.objectNames(cmd.Context(), k), cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteTargets completes [KIND] NAME; with many, further names.
func (a *App) CompleteTargets(many bool) Completer {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		k, isKind := Deployments, false
		if len(args) > 0 {
			if named, found := KindNamed(args[0]); found {
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
		return []string{"deployments", "sources", "catalogs", "all"}
	}
	return []string{"deployment", "source", "catalog"}
}

// qualifiedNames completes KIND/NAME.
func (a *App) qualifiedNames(ctx context.Context, word string) []string {
	k, found := KindNamed(word)
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
func (a *App) objectNames(ctx context.Context, k Kind) []string {
	ctx, cancel := context.WithTimeout(ctx, CompletionTimeout)
	defer cancel()
	c, err := a.Connect()
	if err != nil {
		return nil
	}
	list := &metav1.PartialObjectMetadataList{} // an inventory is large, and completion has to be fast
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(k.Name + "List"))
	if err := c.Client.List(ctx, list, client.InNamespace(c.Namespace)); err != nil {
		return nil
	}
	words := make([]string, 0, len(list.Items))
	for _, item := range list.Items {
		words = append(words, item.Name)
	}
	return words
}

// CompleteNamespaces completes the names of namespaces, where the user may list them.
func (a *App) CompleteNamespaces(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), CompletionTimeout)
	defer cancel()
	config, err := a.RestConfig()
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

// CompleteContexts completes the contexts of the kubeconfig.
func (a *App) CompleteContexts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	config, err := a.Config.ToRawKubeConfigLoader().RawConfig()
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
