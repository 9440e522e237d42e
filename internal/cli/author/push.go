// SPDX-License-Identifier: Apache-2.0

package author

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/satchel-dev/satchel/internal/cli/bundle"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/publish"
	"github.com/satchel-dev/satchel/internal/view"
)

// pushOptions are the flags of push.
type pushOptions struct {
	buildOptions

	insecure bool
	signKey  string
	output   printer.Output
}

// pushCommand returns the command bundle push.
func pushCommand(a *kit.App) *cobra.Command {
	var o pushOptions
	cmd := &cobra.Command{
		Use:   "push PATH|LAYOUT REF",
		Short: "Push a folder to a registry, as an image or OCI artifact",
		Long: `Builds the folder of a bundle as build does, or takes the OCI layout (a folder, or an archive that ends in .tar) that
build wrote, and pushes it under a tag. Content that the registry has already is not sent again, and pushing the same
folder again changes nothing. The output names the digest, with which a BundleDeployment can pin it.

` + buildHelp + `

With --sign-key it is signed by its digest, as cosign sign --key does, with the file that cosign generate-key-pair wrote.
The password is read from COSIGN_PASSWORD, or asked for on a terminal. The source of a deployment names the public key in
verify.secretRef. An existing signature of the same key is kept.

` + bundle.RegistryHelp + `

` + kit.ExitCodes,
		Example: a.Example(`
# Publish a version
satchel bundle push ./bundle ghcr.io/org/bundle:v1.0.0

# Signed, and with its origin
satchel bundle push ./bundle ghcr.io/org/bundle:v1.0.0 --sign-key cosign.key \
  --source https://git.example.org/org/repo --revision main@sha1:8a1b2c3d

# For a script: the reference with its digest
satchel bundle push ./bundle localhost:5000/bundle:dev -o name`),
		ValidArgsFunction: completePush,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return kit.UsageError(cmd, "bundle push needs a folder or layout, and a reference; got %s", kit.Given(args))
			}
			to, err := bundle.TargetTag(args[1], o.insecure)
			if err != nil {
				return err
			}
			return push(cmd.Context(), a, o, args[0], to)
		},
	}
	buildFlags(a, cmd, &o.buildOptions)
	cmd.Flags().StringVar(&o.signKey, "sign-key", "", "Private key to sign with, as cosign generate-key-pair writes it.")
	_ = cmd.MarkFlagFilename("sign-key", "key") // it only fails for a flag that does not exist
	bundle.RegistryFlags(cmd, &o.insecure)
	a.OutputFlag(cmd, &o.output, printer.OutputText, printer.OutputJSON, printer.OutputYAML, printer.OutputName)
	return cmd
}

// completePush completes a folder or archive, and nothing for the reference, which may not exist yet.
func completePush(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveDefault
}

func push(ctx context.Context, a *kit.App, o pushOptions, what string, to name.Tag) (err error) {
	var key *publish.Key
	if o.signKey != "" {
		if key, err = readKey(a, o.signKey); err != nil { // before anything is sent
			return err
		}
	}
	image, p, closed, err := toPush(ctx, a, o, what)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closed()) }()
	registry := bundle.Registry(a, to, o.insecure)
	defer registry.Client.CloseIdleConnections()
	if err := send(ctx, a, registry, to, image); err != nil {
		return err
	}
	p.Reference = to.Name()
	if key != nil {
		fresh, err := registry.Sign(ctx, to.Digest(p.Digest), key)
		if err != nil {
			return fmt.Errorf("%s is pushed, and not signed: %w", p.Pinned(), err)
		}
		if p.SignedBy = o.signKey; !fresh {
			p.SignedBy += " (already)"
		}
	}
	return printPublished(a, o.output, "Pushed", p)
}

// toPush is the image of a layout, or of a folder that is packed; close it.
func toPush(ctx context.Context, a *kit.App, o pushOptions, what string) (v1.Image, Publication, func() error, error) {
	if !publish.IsLayout(what) {
		made, err := makeBundle(ctx, a, o.buildOptions, what)
		if err != nil {
			return nil, Publication{}, nil, err
		}
		return made.image, made.published, made.packed.Close, nil
	}
	if o.kind != "" || len(o.ignore)+len(o.annotations) > 0 || o.source+o.revision+o.created != "" {
		return nil, Publication{}, nil, fmt.Errorf("%s is an OCI layout, which is pushed as it is: give the flags about its content to build", what)
	}
	stored, err := publish.OpenLayout(ctx, what, fetch.DefaultLimits())
	if err != nil {
		return nil, Publication{}, nil, err
	}
	return stored.Image, Publication{From: what, Digest: stored.Digest.String(), Content: stored.Content.String()}, stored.Close, nil
}

// send pushes and shows the progress.
func send(ctx context.Context, a *kit.App, registry publish.Registry, to name.Tag, image v1.Image) error {
	progress := printer.NewProgress(a.Streams.ErrOut, "Pushing "+to.Name())
	defer progress.Done()
	registry.Progress = func(sent, _ int64) { progress.Bytes.Store(sent) }
	return PlainHTTPHint(registry.Push(ctx, to, image))
}

// readKey reads a key, and decrypts it if it has a password.
func readKey(a *kit.App, file string) (*publish.Key, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the key %s: %w", file, kit.WithoutPath(err))
	}
	var password []byte
	if publish.Encrypted(data) {
		if password, err = readPassword(a, file); err != nil {
			return nil, err
		}
	}
	key, err := publish.ReadKey(data, password)
	if errors.Is(err, publish.ErrPassword) {
		return nil, fmt.Errorf("the key %s cannot be decrypted: the password is wrong, or the file is damaged; set COSIGN_PASSWORD", file)
	}
	if err != nil {
		return nil, fmt.Errorf("the key %s cannot be used: %w", file, err)
	}
	return key, nil
}

// readPassword is that of the environment, or the one that the user types.
func readPassword(a *kit.App, file string) ([]byte, error) {
	if password, set := os.LookupEnv("COSIGN_PASSWORD"); set {
		return []byte(password), nil
	}
	in, isFile := a.Streams.In.(*os.File)
	if !isFile || !term.IsTerminal(int(in.Fd())) {
		return nil, fmt.Errorf("the key %s has a password: set COSIGN_PASSWORD, or run this on a terminal", file)
	}
	fmt.Fprintf(a.Streams.ErrOut, "Password of %s: ", view.Inline(file))
	password, err := term.ReadPassword(int(in.Fd()))
	fmt.Fprintln(a.Streams.ErrOut)
	if err != nil {
		return nil, fmt.Errorf("reading the password: %w", err)
	}
	return password, nil
}

// PlainHTTPHint says which flag permits what the client refused.
func PlainHTTPHint(err error) error {
	if err != nil && fetch.ReasonOf(err) == fetch.Refused && strings.Contains(err.Error(), "plain HTTP to ") {
		return fmt.Errorf("%s; add --insecure if that is a registry without TLS", strings.ReplaceAll(err.Error(), ": use https, or list the host in --insecure-hosts", ""))
	}
	return err
}
