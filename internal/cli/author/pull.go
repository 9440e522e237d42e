// SPDX-License-Identifier: Apache-2.0

package author

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/cli/bundle"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/manifests"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/cli/rbac"
	"github.com/satchel-dev/satchel/internal/view"
)

// pullOptions are the flags of pull.
type pullOptions struct {
	bundle.OpenOptions

	output printer.Output
}

// pulled is what pull wrote. Its JSON form is what it prints.
type pulled struct {
	Reference string `json:"reference"`
	Digest    string `json:"digest"`
	Folder    string `json:"folder"`
	Files     int    `json:"files"`
	SignedBy  string `json:"signedBy,omitempty"`
}

// pullCommand returns the command bundle pull.
func pullCommand(a *kit.App) *cobra.Command {
	var o pullOptions
	cmd := &cobra.Command{
		Use:   "pull REF [DIR]",
		Short: "Fetch an image or OCI artifact from a registry into a folder",
		Long: `Fetches the files of an image or artifact as the source controller does, all layers in one tree, within its limits, and
writes them into a new folder; without DIR that is named after the repository. Links are left out, and an archive with
paths outside of it is refused. On failure, no files are left behind.

With --key it has to be signed with that key, as push --sign-key and cosign sign --key do.

` + bundle.RegistryHelp + `

` + kit.ExitCodes,
		Example: a.Example(`
# Inspect the files of a published bundle
satchel bundle pull quay.io/org/operator-bundle:v1.2.3 ./operator

# Only if it is signed with this key
satchel bundle pull ghcr.io/org/bundle:v1.0.0 --key cosign.pub`),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return nil, cobra.ShellCompDirectiveFilterDirs
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 && len(args) != 2 {
				return kit.UsageError(cmd, "bundle pull needs a reference, and at most one folder; got %s", kit.Given(args))
			}
			return pull(cmd.Context(), a, o, args)
		},
	}
	cmd.Flags().StringVar(&o.Platform, "platform", "", "Platform of the image, as os/arch; without it: linux/amd64, or the only one.")
	cmd.Flags().StringVar(&o.Key, "key", "", "Public key that has to have signed it, as cosign generate-key-pair writes it.")
	_ = cmd.MarkFlagFilename("key", "pub", "pem") // it only fails for a flag that does not exist
	bundle.RegistryFlags(cmd, &o.Insecure)
	manifests.ImagePolicyFlag(cmd, &o.ImagePolicies)
	a.OutputFlag(cmd, &o.output, printer.OutputText, printer.OutputJSON, printer.OutputYAML, printer.OutputName)
	return cmd
}

func pull(ctx context.Context, a *kit.App, o pullOptions, args []string) error {
	ref, err := bundle.ImageReference(args[0], o.Insecure)
	if err != nil {
		return err
	}
	dir := rbac.BaseName(ref.Context().RepositoryStr())
	if len(args) == 2 {
		dir = args[1]
	}
	if err := bundle.CheckFree(dir); err != nil {
		return err
	}
	p, err := pullInto(ctx, a, o, args[0], ref, dir)
	if err != nil {
		return err
	}
	switch o.output {
	case printer.OutputName:
		_, err = fmt.Fprintln(a.Streams.Out, p.Reference+"@"+p.Digest)
	case printer.OutputJSON, printer.OutputYAML:
		err = printer.PrintValue(a.Streams.Out, o.output, p)
	default:
		signed := ""
		if p.SignedBy != "" {
			signed = ", signed by " + view.Inline(p.SignedBy)
		}
		_, err = fmt.Fprintf(a.Streams.Out, "Pulled %s, which is %s%s: %s in %s.\n", p.Reference, p.Digest, signed, view.Plural(p.Files, "file"), view.Inline(dir))
	}
	return err
}

// pullInto fetches into a folder.
func pullInto(ctx context.Context, a *kit.App, o pullOptions, what string, ref name.Reference, dir string) (p pulled, err error) {
	b, err := bundle.OpenImageBundle(ctx, a, what, o.OpenOptions)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	count, err := bundle.WriteFolder(ctx, dir, b.Files)
	if err != nil {
		return p, err
	}
	return pulled{Reference: strings.TrimSuffix(ref.Name(), "@"+b.Resolved.Digest), Digest: b.Resolved.Digest, Folder: dir, Files: count, SignedBy: b.Resolved.VerifiedBy}, nil
}
