// SPDX-License-Identifier: Apache-2.0

package author

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/cli/bundle"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/fetch"
)

// tagText matches valid tags (OCI distribution specification).
var tagText = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)

// tagCommand returns the command bundle tag.
func tagCommand(a *kit.App) *cobra.Command {
	var insecure bool
	var o printer.Output
	cmd := &cobra.Command{
		Use:   "tag REF TAG",
		Short: "Give an image or OCI artifact of a registry another tag",
		Long: `Points a tag of the same repository at what REF is now, without downloading it: nothing is rebuilt, so the digest and the
signatures stay. An existing tag is moved. The output names the digest.

` + bundle.RegistryHelp + `

` + kit.ExitCodes,
		Example: a.Example(`
# Promote a tested version to the stable channel
satchel bundle tag ghcr.io/org/bundle:v1.0.0 stable

# By digest, so that it cannot be replaced in between
satchel bundle tag ghcr.io/org/bundle@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef v1.0.0`),
		ValidArgsFunction: completionOfNothing,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return kit.UsageError(cmd, "bundle tag needs a reference and a tag, got %s", kit.Given(args))
			}
			if !tagText.MatchString(args[1]) {
				return kit.UsageError(cmd, "%q is no tag: at most 128 letters, digits, dots, dashes and underscores, with a letter or digit first", args[1])
			}
			return tag(cmd.Context(), a, args[0], args[1], insecure, o)
		},
	}
	bundle.RegistryFlags(cmd, &insecure)
	a.OutputFlag(cmd, &o, printer.OutputText, printer.OutputJSON, printer.OutputYAML, printer.OutputName)
	return cmd
}

// completionOfNothing completes no words: completion sends no requests to registries.
var completionOfNothing = cobra.NoFileCompletions

func tag(ctx context.Context, a *kit.App, what, to string, insecure bool, o printer.Output) error {
	ref, err := bundle.ImageReference(what, insecure)
	if err != nil {
		return err
	}
	registry := bundle.Registry(a, ref, insecure)
	defer registry.Client.CloseIdleConnections()
	tag := ref.Context().Tag(to)
	digest, err := registry.Tag(ctx, ref, tag)
	if err != nil {
		return PlainHTTPHint(err)
	}
	switch p := (Publication{From: ref.Name(), Reference: tag.Name(), Digest: digest.String()}); o {
	case printer.OutputName:
		_, err = fmt.Fprintln(a.Streams.Out, p.Pinned())
	case printer.OutputJSON, printer.OutputYAML:
		err = printer.PrintValue(a.Streams.Out, o, map[string]string{"from": p.From, "reference": p.Reference, "digest": p.Digest})
	default:
		_, err = fmt.Fprintf(a.Streams.Out, "%s is now %s.\n", tag.Name(), digest)
	}
	return err
}

// PlainHTTPHint says which flag permits what the client refused.
func PlainHTTPHint(err error) error {
	if err != nil && fetch.ReasonOf(err) == fetch.Refused && strings.Contains(err.Error(), "plain HTTP to ") {
		return fmt.Errorf("%s; add --insecure if that is a registry without TLS", strings.ReplaceAll(err.Error(), ": use https, or list the host in --insecure-hosts", ""))
	}
	return err
}
