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
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/image"
	"github.com/satchel-dev/satchel/internal/view"
)

// verifyOptions are the flags of verify.
type verifyOptions struct {
	bundle.OpenOptions

	output printer.Output
}

// verified is what verify says. Its JSON form is what -o json prints.
type verified struct {
	Reference string `json:"reference"`
	Digest    string `json:"digest"`
	Signed    bool   `json:"signed"`
	SignedBy  string `json:"signedBy,omitempty"`
	Problem   string `json:"problem,omitempty"`
}

// verifyCommand returns the command bundle verify.
func verifyCommand(a *kit.App) *cobra.Command {
	var o verifyOptions
	cmd := &cobra.Command{
		Use:   "verify REF --key FILE",
		Short: "Check whether an image or OCI artifact is signed with a key",
		Long: `Resolves REF in a registry, and looks for a signature of exactly that digest, as the source controller does for a source
with verify.provider cosign: in both formats of cosign, and without a transparency log.

` + bundle.RegistryHelp + `

Exit codes:

    0    signed with the key
    1    not signed, or not with the key
    2    failed: wrong use, no such image, no access, a key that cannot be read
    130  interrupted by Ctrl-C`,
		Example: a.Example(`
# Would a source with verify accept it?
satchel bundle verify ghcr.io/org/bundle:v1.0.0 --key cosign.pub`),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) != 1:
				return kit.UsageError(cmd, "bundle verify needs one reference, got %s", kit.Given(args))
			case o.Key == "":
				return kit.UsageError(cmd, "bundle verify needs --key, the public key that has to have signed it")
			}
			return verify(cmd.Context(), a, o, args[0])
		},
	}
	cmd.Flags().StringVar(&o.Key, "key", "", "Public key, as cosign generate-key-pair writes it. Required.")
	_ = cmd.MarkFlagFilename("key", "pub", "pem") // it only fails for a flag that does not exist
	bundle.RegistryFlags(cmd, &o.Insecure)
	a.OutputFlag(cmd, &o.output, printer.OutputText, printer.OutputJSON, printer.OutputYAML)
	return cmd
}

func verify(ctx context.Context, a *kit.App, o verifyOptions, what string) error {
	ref, err := bundle.ImageReference(what, o.Insecure)
	if err != nil {
		return err
	}
	v, err := lookForSignature(ctx, a, o, what, ref)
	if err != nil {
		return err
	}
	switch {
	case o.output != printer.OutputText:
		err = printer.PrintValue(a.Streams.Out, o.output, v)
	case v.Signed:
		_, err = fmt.Fprintf(a.Streams.Out, "%s, which is %s, is signed by %s.\n", v.Reference, v.Digest, view.Inline(v.SignedBy))
	default:
		_, err = fmt.Fprintf(a.Streams.Out, "%s, which is %s, is not signed with %s: %s\n", v.Reference, v.Digest, view.Inline(o.Key), view.Bounded(v.Problem))
	}
	if err == nil && !v.Signed {
		return kit.ErrNo
	}
	return err
}

// lookForSignature asks the registry.
func lookForSignature(ctx context.Context, a *kit.App, o verifyOptions, what string, ref name.Reference) (verified, error) {
	var plain []string
	if host := ref.Context().RegistryStr(); o.Insecure || bundle.IsLoopback(host) && !bundle.SpeaksTLS(ctx, ref) {
		plain = []string{host}
	}
	limits := fetch.DefaultLimits()
	client := bundle.LocalPolicy(plain).HTTPClient(limits)
	defer client.CloseIdleConnections()
	options := image.Options{Ref: ref.String(), Insecure: len(plain) > 0, Client: client, Limits: limits}
	if err := bundle.Trust(ctx, a, o.OpenOptions, ref, &options); err != nil {
		return verified{}, err
	}
	fetcher, err := image.New(options)
	if err != nil {
		return verified{}, err
	}
	resolved, err := fetcher.Resolve(ctx)
	if err != nil {
		return verified{}, &bundle.DownloadError{What: what, Ref: ref, Err: err}
	}
	v := verified{Reference: ref.Name(), Digest: resolved.Digest}
	seen, err := fetcher.Verify(ctx, resolved)
	var problem *fetch.Error
	switch {
	case err == nil:
		v.Signed, v.SignedBy = true, seen.VerifiedBy
	case errors.As(err, &problem) && problem.Reason == fetch.Unverified:
		v.Problem = strings.TrimPrefix(err.Error(), "image "+ref.String()+": verifying "+resolved.Digest+": ")
	default:
		return v, &bundle.DownloadError{What: what, Ref: ref, Err: err}
	}
	return v, nil
}
