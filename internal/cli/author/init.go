// SPDX-License-Identifier: Apache-2.0

package author

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/satchel-dev/satchel/internal/cli/bundle"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/scaffold"
	"github.com/satchel-dev/satchel/internal/view"
)

// initOptions are the flags of init.
type initOptions struct {
	name             string
	from             []string
	dir              string
	format, path     string
	installNamespace string
	namespace        string // of the BundleDeployment
	watchNamespaces  []string
	serviceAccount   string
	image            string
	git, branch      string
	force, dryRun    bool
	output           printer.Output
	limits           convert.Limits
}

// initCommand returns the command bundle init.
func initCommand(a *kit.App) *cobra.Command {
	var o initOptions
	cmd := &cobra.Command{
		Use:   "init NAME",
		Short: "Make a bundle of manifests, of a folder or of an Operator SDK project",
		Long: `Writes a folder that is ready to be committed, and asks no cluster:

    NAME/bundle/                       the bundle, as it is published
    NAME/deploy/bundledeployment.yaml  the BundleDeployment that installs it
    NAME/permissions/rbac.yaml         its ServiceAccount, with the least permissions that it needs (see the command rbac)

The permissions have a folder of their own, because a BundleDeployment that is deleted needs them until its objects are
gone: delete NAME/deploy first, and NAME/permissions when the BundleDeployment is gone.

What --from names is copied, and files that are left out are named:

    files, or several folders   manifests, as plain+v0
    a package of a chart        (a file that ends in .tgz) that chart
    a folder                    the format that is detected: plain+v0, registry+v1, kustomize or helm; --format chooses
    a project of Operator SDK   (it has a file PROJECT) the bundle that make bundle wrote, as registry+v1; or config/,
    or kubebuilder              built from config/default, as kustomize
    nothing                     an example to begin with

A bundle that render refuses is not written. The BundleDeployment takes it from --image, or from --git, a repository to
which the folder is committed. Without both it names an image that has to be replaced.

If a file exists and differs, the command stops before it writes anything, unless --force replaces it. Other files of the
folder are not changed; those in NAME/bundle, which become part of the bundle, are listed as kept.

` + kit.ExitCodes,
		Example: a.Example(`
# Of manifests in a folder
satchel bundle init shop --from ./k8s --image ghcr.io/org/shop:v1.0.0

# Of a project of Operator SDK, installed in its own namespace
satchel bundle init my-operator --from ~/src/my-operator --install-namespace my-operator-system

# For GitOps: the bundle lies in the repository that the folder is committed to
satchel bundle init shop --from ./k8s --git https://git.example.org/org/fleet.git

# What would be written?
satchel bundle init shop --from deployment.yaml --from service.yaml --dry-run`),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd, args); err != nil {
				return err
			}
			return initBundle(cmd.Context(), a, o)
		},
	}
	initFlags(a, cmd, &o)
	return cmd
}

func initFlags(a *kit.App, cmd *cobra.Command, o *initOptions) {
	flags := cmd.Flags()
	flags.StringArrayVar(&o.from, "from", nil, "File or folder to make the bundle of; may be repeated.")
	flags.StringVar(&o.dir, "dir", "", "Folder to write; without it: NAME, in the current folder.")
	a.EnumFlag(cmd, &o.format, "format", "", "Format of the bundle; detected when left out.",
		string(convert.PlainV0), string(convert.RegistryV1), string(convert.Helm), string(convert.Kustomize))
	flags.StringVar(&o.path, "path", "", "Folder inside the folder of --from that holds the bundle, such as an overlay of a kustomization.")
	flags.StringVar(&o.installNamespace, "install-namespace", "", "Namespace of the objects that name none, and of the operator; without it: NAME. "+
		"The BundleDeployment is in --namespace; without that: in the same namespace.")
	flags.StringArrayVar(&o.watchNamespaces, "watch-namespace", nil, "Namespace that the operator of a registry+v1 bundle watches; may be repeated.")
	flags.StringVar(&o.serviceAccount, "service-account", "installer", "ServiceAccount that installs the bundle.")
	flags.StringVar(&o.image, "image", "", "Image that the bundle will be pushed as.")
	flags.StringVar(&o.git, "git", "", "URL of the Git repository that the folder is committed to.")
	flags.StringVar(&o.branch, "branch", "main", "Branch of the Git repository.")
	flags.BoolVar(&o.force, "force", false, "Replace existing files.")
	flags.BoolVar(&o.dryRun, "dry-run", false, "Say what would be written, and write nothing.")
	bundle.LimitFlags(cmd, &o.limits)
	a.OutputFlag(cmd, &o.output, printer.OutputText, printer.OutputJSON, printer.OutputName)
	_ = cmd.MarkFlagDirname("dir") // it only fails for a flag that does not exist
	a.CompleteFlag(cmd, "install-namespace", a.CompleteNamespaces)
	a.CompleteFlag(cmd, "watch-namespace", a.CompleteNamespaces)
}

// check reads the arguments and refuses flags that have no effect together.
func (o *initOptions) check(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return kit.UsageError(cmd, "bundle init needs one name, got %s", kit.Given(args))
	}
	o.name = args[0]
	if wrong := validation.IsDNS1123Label(o.name); len(wrong) > 0 {
		return kit.UsageError(cmd, "the name %q cannot be that of a BundleDeployment: %s", o.name, wrong[0])
	}
	if o.image != "" && o.git != "" {
		return kit.UsageError(cmd, "a bundle comes from --image or from --git, not from both")
	}
	if _, err := bundle.ImageReference(cmp.Or(o.image, placeholder+o.name), false); err != nil {
		return kit.UsageError(cmd, "--image %v", err)
	}
	if o.git != "" && !slices.ContainsFunc([]string{"https://", "http://", "ssh://"}, func(scheme string) bool { return strings.HasPrefix(o.git, scheme) }) {
		return kit.UsageError(cmd, "--git %q is no URL that begins with https://, http:// or ssh://", o.git)
	}
	if cmd.Flag("branch").Changed && o.git == "" {
		return kit.UsageError(cmd, "--branch has no effect without --git")
	}
	o.dir = cmp.Or(o.dir, o.name)
	o.installNamespace = cmp.Or(o.installNamespace, o.name)
	o.namespace = o.installNamespace
	if given := cmd.Flag("namespace"); given.Changed {
		o.namespace = given.Value.String()
	}
	return nil
}

// initBundle makes the bundle, checks it, and writes it.
func initBundle(ctx context.Context, a *kit.App, o initOptions) (err error) {
	taken, err := o.take()
	if err != nil {
		return err
	}
	files, err := drawUp(ctx, a, &o, taken)
	if err != nil {
		return err
	}
	w, err := planWriting(o.dir, files)
	if err != nil {
		return err
	}
	if len(w.Differ) > 0 && !o.force {
		return fmt.Errorf("%s in %s would be replaced: %s; give another folder with --dir, or --force to replace them",
			view.Plural(len(w.Differ), "file"), o.dir, strings.Join(someNames(w.Differ), ", "))
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !o.dryRun {
		if err := w.write(files); err != nil {
			return err
		}
	}
	return printInit(a, o, taken, w)
}

// take opens what --from names and makes a bundle of it.
func (o *initOptions) take() (b scaffold.Bundle, err error) {
	if len(o.from) == 0 {
		return scaffold.Starter(o.name, convert.Format(o.format))
	}
	sources := make([]scaffold.Source, 0, len(o.from))
	for _, name := range o.from {
		dir, file := name, ""
		info, err := os.Stat(name)
		switch {
		case err != nil:
			return b, fmt.Errorf("reading what --from names: %w", err)
		case !info.IsDir():
			dir, file = filepath.Dir(name), filepath.Base(name)
		}
		opened, err := bundle.OpenFolder(dir)
		if err != nil {
			return b, err
		}
		defer opened.Close() //nolint:errcheck // only read from
		sources = append(sources, scaffold.Source{Name: name, Files: opened, File: file})
		defer func() {
			for _, link := range opened.Links() {
				b.Notes = append(b.Notes, link+" is a symbolic link and left out, as the controllers do")
			}
		}()
	}
	b, err = scaffold.Take(sources, convert.Format(o.format), o.path)
	var refusal *convert.Error
	if errors.As(err, &refusal) {
		return b, fmt.Errorf("%s: %w", strings.Join(o.from, ", "), kit.Refused(refusal, false))
	}
	return b, err
}

// mostNamesListed is how many files a message names.
const mostNamesListed = 10

// someNames are the first names, and how many more there are.
func someNames(names []string) []string {
	if len(names) <= mostNamesListed {
		return names
	}
	return append(append([]string{}, names[:mostNamesListed]...), fmt.Sprintf("and %d more", len(names)-mostNamesListed))
}
