// SPDX-License-Identifier: Apache-2.0

package program

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/cli/kit"
)

// completionHelp is the help of the command completion, for a plugin of kubectl.
const completionHelp = `Prints a script that makes the shell complete commands, flags, and the names of objects in the cluster.

As a kubectl plugin, the program is completed by kubectl's own script when the PATH has an executable file
kubectl_complete-FILE with the two lines:

    #!/bin/sh
    exec kubectl PLUGIN __complete "$@"`

// completionExamples are those of a program.
const completionExamples = `
# bash, for all sessions to come (needs the package bash-completion)
DISPLAY completion bash > ~/.local/share/bash-completion/completions/PROGRAM

# zsh, where a folder of $fpath is yours
DISPLAY completion zsh > "${fpath[1]}/_PROGRAM"

# fish
DISPLAY completion fish > ~/.config/fish/completions/PROGRAM.fish

# PowerShell, for this session
DISPLAY completion powershell | Out-String | Invoke-Expression`

// CompletionCommand returns the command completion of a program with a file name, which is a plugin of kubectl under another.
func CompletionCommand(a *kit.App, display, file, plugin string) *cobra.Command {
	names := strings.NewReplacer("DISPLAY", display, "PROGRAM", file, "PLUGIN", plugin, "FILE", strings.ReplaceAll(plugin, "-", "_"))
	return &cobra.Command{
		Use:       "completion bash|zsh|fish|powershell",
		Short:     "Print a script that completes commands, names and flags in your shell",
		Long:      names.Replace(completionHelp),
		Example:   a.Example(names.Replace(completionExamples)),
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return kit.UsageError(cmd, "completion needs the name of one shell: bash, zsh, fish or powershell")
			}
			root, out := cmd.Root(), a.Streams.Out
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
			return kit.UsageError(cmd, "there is no completion for %q: choose bash, zsh, fish or powershell", args[0])
		},
	}
}
