// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/image"
)

// verifyOptions are the flags of verify.
type verifyOptions struct {
	bundleOptions

	output output
}

// verified is what verify says. Its JSON form is what -o json prints.
type verified struct {
	Reference string `json:"reference"`
	Digest    string `json:"digest"`
	Signed    bool   `json:"signed"`
	SignedBy  string `json:"signedBy,omitempty"`
	Problem   string `json:"problem,omitempty"`
}

func (a *app) verifyCommand() *cobra.Command {
	var o verifyOptions
	cmd := &cobra.Command{
		Use:     "verify REF --key FILE",
		GroupID: groupAuthor,
		Short:   "Check whether an image or OCI artifact is signed with a key",
		Long: `Resolves REF in a registry, and looks for a signature of exactly that digest, as the source controller does for a source
with verify.provider cosign: in both formats of cosign, and without a transparency log.

` + registryHelp + `

Exit codes:

    0    signed with the key
    1    not signed, or not with the key
    2    failed: wrong use, no such image, no access, a key that cannot be read
    130  interrupted by Ctrl-C`,
		Example: a.example(`
# Would a source with verify accept it?
satchel verify ghcr.io/org/bundle:v1.0.0 --key cosign.pub`),
		ValidArgsFunction: completionOfNothing,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) != 1:
				return usageError(cmd, "verify needs one reference, got %s", given(args))
			case o.key == "":
				return usageError(cmd, "verify needs --key, the public key that has to have signed it")
			}
			return a.verify(cmd.Context(), o, args[0])
		},
	}
	cmd.Flags().StringVar(&o.key, "key", "", "Public key, as cosign generate-key-pair writes it. Required.")
	_ = cmd.MarkFlagFilename("key", "pub", "pem") // it only fails for a flag that does not exist
	registryFlags(cmd, &o.insecure)
	a.outputFlag(cmd, &o.output, outputText, outputJSON, outputYAML)
	return cmd
}

func (a *app) verify(ctx context.Context, o verifyOptions, what string) error {
	ref, err := imageReference(what, o.insecure)
	if err != nil {
		return err
	}
	v, err := a.lookForSignature(ctx, o, what, ref)
	if err != nil {
		return err
	}
	switch {
	case o.output != outputText:
		err = printValue(a.streams.Out, o.output, v)
	case v.Signed:
		_, err = fmt.Fprintf(a.streams.Out, "%s, which is %s, is signed by %s.\n", v.Reference, v.Digest, inline(v.SignedBy))
	default:
		_, err = fmt.Fprintf(a.streams.Out, "%s, which is %s, is not signed with %s: %s\n", v.Reference, v.Digest, inline(o.key), bounded(v.Problem))
	}
	if err == nil && !v.Signed {
		return errNo
	}
	return err
}

// lookForSignature asks the registry.
func (a *app) lookForSignature(ctx context.Context, o verifyOptions, what string, ref name.Reference) (verified, error) {
	var plain []string
	if host := ref.Context().RegistryStr(); o.insecure || isLoopback(host) && !speaksTLS(ctx, ref) {
		plain = []string{host}
	}
	limits := fetch.DefaultLimits()
	client := localPolicy(plain).HTTPClient(limits)
	defer client.CloseIdleConnections()
	options := image.Options{Ref: ref.String(), Insecure: len(plain) > 0, Client: client, Limits: limits}
	if err := a.trust(ctx, o.bundleOptions, ref, &options); err != nil {
		return verified{}, err
	}
	fetcher, err := image.New(options)
	if err != nil {
		return verified{}, err
	}
	resolved, err := fetcher.Resolve(ctx)
	if err != nil {
		return verified{}, &downloadError{what: what, ref: ref, err: err}
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
		return v, &downloadError{what: what, ref: ref, err: err}
	}
	return v, nil
}
