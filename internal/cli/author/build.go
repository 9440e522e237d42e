// SPDX-License-Identifier: Apache-2.0

package author

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/cli/bundle"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/ignore"
	"github.com/satchel-dev/satchel/internal/publish"
	"github.com/satchel-dev/satchel/internal/view"
)

// buildOptions say what is made of a folder: the flags of build and push.
type buildOptions struct {
	kind             string
	ignore           []string
	source, revision string
	created          string
	annotations      []string
}

// IgnoreFile lists what is left out of a bundle; it is left out itself.
const IgnoreFile = ".satchelignore"

// Annotations that flags set.
const (
	sourceAnnotation   = "org.opencontainers.image.source"
	revisionAnnotation = "org.opencontainers.image.revision"
)

// buildCommand returns the command bundle build.
func buildCommand(a *kit.App) *cobra.Command {
	var (
		o      buildOptions
		file   string
		report printer.Output
	)
	cmd := &cobra.Command{
		Use:   "build PATH [-o FILE.tar]",
		Short: "Make an image or OCI artifact of a folder, without a registry",
		Long: `Packs the folder of a bundle and says its digest. With -o it is written as an OCI layout in a tar archive, which push
brings to a registry, and skopeo, crane and oras read. Nothing is installed, and no registry and no cluster is asked.

` + buildHelp + `

` + kit.ExitCodes,
		Example: a.Example(`
# What will be its digest?
satchel bundle build ./bundle --print name

# Build here, and push where the login is
satchel bundle build ./bundle -o bundle.tar
satchel bundle push bundle.tar ghcr.io/org/bundle:v1.0.0`),
		ValidArgsFunction: completeFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return kit.UsageError(cmd, "bundle build needs one folder, got %s", kit.Given(args))
			}
			return build(cmd.Context(), a, o, args[0], file, report)
		},
	}
	buildFlags(a, cmd, &o)
	cmd.Flags().StringVarP(&file, "output", "o", "", "Archive to write, which ends in .tar.")
	_ = cmd.MarkFlagFilename("output", "tar") // it only fails for a flag that does not exist
	report = printer.OutputText
	a.EnumFlag(cmd, (*string)(&report), "print", "", "What to print about it.", string(printer.OutputText), string(printer.OutputJSON), string(printer.OutputYAML), string(printer.OutputName))
	return cmd
}

// buildHelp is the part of the help about how a folder is packed.
const buildHelp = `A bundle of the format registry+v1 becomes a container image from scratch, labelled with its annotations, as OLM and
RukPak want it; any other folder an OCI artifact of the media types of Flux, which its OCIRepository reads as well. --as
chooses. There is one layer. Its digest depends only on the names and bytes of the files: owners, modes and times are left
out. The same folder has the same digest, as long as flags and this program are the same.

Left out are folders of version control, symbolic links, and what .satchelignore in the folder and --ignore name, in the
syntax of .gitignore. What the source controller would refuse (names, numbers, sizes) is refused before anything is sent.`

// buildFlags adds the flags that say what is made of a folder.
func buildFlags(a *kit.App, cmd *cobra.Command, o *buildOptions) {
	flags := cmd.Flags()
	a.EnumFlag(cmd, &o.kind, "as", "", "What to make of the folder; without it: what suits its format.", string(publish.Image), string(publish.Artifact))
	flags.StringArrayVar(&o.ignore, "ignore", nil, "Pattern of files to leave out, in the syntax of .gitignore; may be repeated.")
	flags.StringVar(&o.source, "source", "", "URL that the bundle was made from: the annotation "+sourceAnnotation+".")
	flags.StringVar(&o.revision, "revision", "", "Revision that it was made from: the annotation "+revisionAnnotation+".")
	flags.StringVar(&o.created, "created", "", "When it was made, as 2006-01-02T15:04:05Z; without it: SOURCE_DATE_EPOCH of the environment, or nothing.")
	flags.StringArrayVar(&o.annotations, "annotation", nil, "Further annotation, as KEY=VALUE; may be repeated.")
}

// completeFolder completes a folder.
func completeFolder(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveFilterDirs
}

func build(ctx context.Context, a *kit.App, o buildOptions, what, file string, report printer.Output) (err error) {
	if file != "" && !strings.HasSuffix(file, ".tar") {
		return fmt.Errorf("the archive %s has to end in .tar, by which it is recognised", file)
	}
	made, err := makeBundle(ctx, a, o, what)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, made.packed.Close()) }()
	p := made.published
	if file != "" {
		if err := publish.WriteLayout(ctx, file, made.image); err != nil {
			return err
		}
		p.File = file
	}
	return printPublished(a, report, "Built", p)
}

// madeImage is what a folder became.
type madeImage struct {
	packed    *publish.Packed
	image     v1.Image
	published Publication
}

// makeBundle packs a folder. Close what it packed.
func makeBundle(ctx context.Context, a *kit.App, o buildOptions, what string) (made madeImage, err error) {
	options, err := o.read()
	if err != nil {
		return made, err
	}
	files, notes, err := openForPacking(what, o.ignore)
	if err != nil {
		return made, err
	}
	defer func() { err = errors.Join(err, files.close()) }()
	packed, err := publish.Pack(ctx, files.FS, fetch.DefaultLimits())
	if err != nil {
		return made, fetch.Describe(err, "packing %s", what)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, packed.Close())
		}
	}()
	format := formatOf(a, packed.FS())
	if options.Kind = publish.Kind(o.kind); options.Kind == "" {
		options.Kind = publish.Artifact
		if format == convert.RegistryV1 {
			options.Kind = publish.Image
		}
	}
	image, err := packed.Image(options)
	if err != nil {
		return made, err
	}
	digest, err := image.Digest()
	if err != nil {
		return made, fmt.Errorf("making the image: %w", err)
	}
	a.Note(notes())
	return madeImage{packed: packed, image: image, published: Publication{
		From: what, Kind: options.Kind, Format: string(format), Digest: digest.String(), Content: packed.Content.String(),
		Files: packed.Files, Bytes: packed.Bytes, Size: packed.Size,
	}}, nil
}

// formatOf is the format of a bundle. A folder that is none may be published all the same, as a part of one.
func formatOf(a *kit.App, files fs.FS) convert.Format {
	_, format, err := convert.Enter(files, convert.Options{})
	var refusal *convert.Error
	if errors.As(err, &refusal) {
		for _, p := range refusal.Problems {
			a.Note([]string{"the format of this folder cannot be detected, so set spec.format: " + view.Inline(p.String())})
		}
	}
	return format
}

// packable are the files of a folder that are packed.
type packable struct {
	fs.FS

	close func() error
}

// openForPacking opens a folder without what is left out.
func openForPacking(what string, patterns []string) (packable, func() []string, error) {
	info, err := os.Stat(what)
	if err == nil && !info.IsDir() {
		err = errors.New("it is a file: give the folder of the bundle")
	}
	if err != nil {
		return packable{}, nil, fmt.Errorf("reading %s: %w", what, kit.WithoutPath(err))
	}
	opened, err := bundle.OpenFolder(what)
	if err != nil {
		return packable{}, nil, err
	}
	list, err := fs.ReadFile(opened, IgnoreFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return packable{}, nil, errors.Join(fmt.Errorf("reading %s in %s: %w", IgnoreFile, what, kit.WithoutPath(err)), opened.Close())
	}
	files, err := ignore.FS(opened, strings.Join(append([]string{string(list)}, append(patterns, "/"+IgnoreFile)...), "\n"))
	if err != nil {
		return packable{}, nil, errors.Join(fmt.Errorf("%s and --ignore: %w", IgnoreFile, err), opened.Close())
	}
	notes := func() []string {
		var lines []string
		for _, link := range opened.Links() {
			lines = append(lines, link+" is a symbolic link and left out, as the controllers do")
		}
		return lines
	}
	return packable{FS: files, close: opened.Close}, notes, nil
}

// read reads the flags.
func (o buildOptions) read() (publish.Options, error) {
	made := publish.Options{Annotations: map[string]string{}}
	for key, value := range map[string]string{sourceAnnotation: o.source, revisionAnnotation: o.revision} {
		if value != "" {
			made.Annotations[key] = value
		}
	}
	for _, pair := range o.annotations {
		key, value, found := strings.Cut(pair, "=")
		if !found || key == "" {
			return made, fmt.Errorf("the annotation %q is not of the form KEY=VALUE", pair)
		}
		made.Annotations[key] = value
	}
	var err error
	made.Created, err = createdAt(o.created, os.Getenv("SOURCE_DATE_EPOCH"))
	return made, err
}

// createdAt returns when a bundle was made: the flag, or else the environment (https://reproducible-builds.org).
func createdAt(flag, epoch string) (time.Time, error) {
	switch {
	case flag != "":
		at, err := time.Parse(time.RFC3339, flag)
		if err != nil {
			return at, fmt.Errorf("--created %q is no time such as 2006-01-02T15:04:05Z", flag)
		}
		return at.UTC(), nil
	case epoch != "":
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH %q is no number of seconds: correct it, or unset it", epoch)
		}
		return time.Unix(seconds, 0).UTC(), nil
	}
	return time.Time{}, nil
}

// Publication is what build and push made. Its JSON form is what they print.
type Publication struct {
	From      string       `json:"from"`
	Kind      publish.Kind `json:"kind,omitempty"`
	Format    string       `json:"format,omitempty"`
	Reference string       `json:"reference,omitempty"`
	Digest    string       `json:"digest"`
	Content   string       `json:"content"` // as in the revision of an artifact
	Files     int          `json:"files,omitempty"`
	Bytes     int64        `json:"bytes,omitempty"` // of the files
	Size      int64        `json:"size,omitempty"`  // of the layer, compressed
	File      string       `json:"file,omitempty"`
	SignedBy  string       `json:"signedWith,omitempty"`
}

// Pinned is the reference with its digest, which is immutable.
func (p Publication) Pinned() string {
	if p.Reference == "" {
		return p.Digest
	}
	return p.Reference + "@" + p.Digest
}

// printPublished says what was made.
func printPublished(a *kit.App, o printer.Output, done string, p Publication) error {
	switch o {
	case printer.OutputName:
		_, err := fmt.Fprintln(a.Streams.Out, view.Printable(p.Pinned()))
		return err
	case printer.OutputJSON, printer.OutputYAML:
		return printer.PrintValue(a.Streams.Out, o, p)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s %s", done, view.Inline(bundle.FolderName(filepath.Clean(p.From))))
	if p.Files > 0 {
		fmt.Fprintf(&out, " (%s, %s, %s) as %s", cmp.Or(p.Format, "no format"), view.Plural(p.Files, "file"), printer.BytesText(p.Bytes), kindText[p.Kind])
	}
	out.WriteString(".\n")
	for _, line := range []struct{ name, value string }{
		{"reference", p.Reference}, {"file", p.File}, {"digest", p.Digest}, {"content", p.Content}, {"signed", p.SignedBy},
	} {
		if line.value != "" {
			fmt.Fprintf(&out, "  %-10s %s\n", line.name, view.Inline(line.value))
		}
	}
	if p.Reference != "" {
		fmt.Fprintf(&out, "\nIn a BundleDeployment:\n  source: {sources: [{image: {reference: %q}}]}\n", p.Pinned())
	}
	_, err := fmt.Fprint(a.Streams.Out, out.String())
	return err
}

var kindText = map[publish.Kind]string{publish.Image: "a container image", publish.Artifact: "an OCI artifact"}
