// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/cli/kit"
)

func completionCommand(a *kit.App) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a script that completes commands, names and flags in your shell",
		Long: `Prints a script that makes the shell complete commands, flags, and the names of objects in the cluster.

As a kubectl plugin, the program is completed by kubectl's own script when an executable file kubectl_complete-satchel in
the PATH holds the two lines:

    #!/bin/sh
    exec kubectl satchel __complete "$@"`,
		Example: a.Example(`
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
