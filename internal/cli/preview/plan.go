// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/cli/bundle"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/manifests"
	"github.com/satchel-dev/satchel/internal/cli/printer"
)

// previewExitCodes is the part of the help about exit codes.
const previewExitCodes = `Exit codes:

    0    nothing would change
    1    something would change
    2    the plan would be refused, or failed: not found, no access, a bundle that cannot be converted
    130  interrupted by Ctrl-C`

// PlanCommand returns the command plan.
func PlanCommand(a *kit.App) *cobra.Command {
	var o previewOptions
	cmd := &cobra.Command{
		Use:     "plan NAME | plan -f FILE",
		GroupID: kit.GroupPreview,
		Short:   "Show what the controller would do for a BundleDeployment, and its impact",
		Long: `Computes the plan of a BundleDeployment with the controller's code and your own permissions, and changes nothing. The
plan shows what would be created, changed, adopted and deleted, what blocks it, and its impact: new permissions, CRDs,
images, workloads that restart. Each change is tried as a dry run.

Without flags it uses the current artifact of the source; --path, --image or --revision preview something else in its
place. A folder or image replaces the whole artifact: spec.path is looked up in it. An artifact server that is a Service
of the cluster is reached through the API server, which needs permission to get services/proxy.

-f takes the manifest of a BundleDeployment in place of the one on the cluster, which need not exist yet, and validates
it by the CRD. BundleSource, Secrets and ConfigMaps that are beside it in the files take precedence over those of the
cluster. If the cluster has no artifact of its source, the source is fetched from here.

-o diff writes a unified diff of the objects on the cluster and the result of the dry run. Fields that only an API server
writes, such as status, are left out. --ignore-snippet prints what to write under spec.drift for the fields of
applied objects that differ now, so that drift of these fields is ignored.

The permissions of the deployment's ServiceAccount are checked by impersonation, if you may impersonate it. Checks that
were not possible are named. Values of Secrets are never shown.

` + previewExitCodes,
		Example: a.Example(`
# What would the current revision of the source change?
satchel plan podinfo -n demo

# With all fields that change, or as a diff
satchel plan podinfo --fields
satchel plan podinfo -o diff

# What would this manifest change, before it is committed?
satchel plan -f deploy/podinfo.yaml

# What would this folder change, before it is committed?
satchel plan podinfo --path ./bundle

# Go back: what would the revision before change?
satchel plan podinfo --revision previous

# For a pull request: is anything refused, and which permissions does it grant?
satchel plan podinfo --image quay.io/org/bundle:v2 -o json | jq '.violations, .impact.permissions'`),
		ValidArgsFunction: a.CompleteOne(kit.Deployments),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := o.target(cmd, args)
			if err != nil {
				return err
			}
			return runPlan(cmd.Context(), a, o, t)
		},
	}
	a.OutputFlag(cmd, &o.output, printer.OutputText, printer.OutputWide, outputDiff, printer.OutputJSON, printer.OutputYAML)
	cmd.Flags().BoolVar(&o.fields, "fields", false, "Show the fields that change; -o wide does so, too.")
	cmd.Flags().BoolVar(&o.ignoreSnippet, "ignore-snippet", false, "Print the rules for spec.drift.ignore that would leave the differences alone.")
	previewFlags(cmd, &o)
	return cmd
}

// outputDiff is a unified diff.
const outputDiff printer.Output = "diff"

// previewFlags adds the flags that say what is previewed.
func previewFlags(cmd *cobra.Command, o *previewOptions) {
	flags := cmd.Flags()
	flags.StringVar(&o.Path, "path", "", "Folder on this machine to preview in place of the source's artifact.")
	flags.StringVar(&o.image, "image", "", "Image to preview in place of the source's artifact.")
	flags.StringVar(&o.revision, "revision", "", "Revision of the history to preview: its name, its digest or the beginning of it, or \"previous\".")
	flags.StringVar(&o.Platform, "platform", "", "Platform of the image, as os/arch; without it: linux/amd64, or the only one.")
	flags.BoolVar(&o.Insecure, "insecure", false, "Speak plain HTTP with the image's registry; on loopback this is detected.")
	manifests.ImagePolicyFlag(cmd, &o.ImagePolicies)
	bundle.LimitFlags(cmd, &o.Limits)
	manifests.Flag(cmd, &o.files, "It is planned in place of the one on the cluster.")
	cmd.MarkFlagsMutuallyExclusive("path", "image", "revision")
	_ = cmd.MarkFlagDirname("path") // it only fails for a flag that does not exist
}

// target reads the arguments. With -f, the name is that of a BundleDeployment in the files, and may be missing.
func (o *previewOptions) target(cmd *cobra.Command, args []string) (kit.Target, error) {
	for _, name := range []string{"path", "image", "revision"} {
		if flag := cmd.Flag(name); flag.Changed && flag.Value.String() == "" {
			return kit.Target{}, kit.UsageError(cmd, "--%s is empty", name)
		}
	}
	switch {
	case o.image == "" && (o.Insecure || o.Platform != ""):
		return kit.Target{}, kit.UsageError(cmd, "--insecure and --platform are about --image")
	case o.image == "" && len(o.files) == 0 && len(o.ImagePolicies) > 0:
		return kit.Target{}, kit.UsageError(cmd, "--image-policy is about images that are fetched from here: add --image or -f")
	case o.ignoreSnippet && o.output != printer.OutputText:
		return kit.Target{}, kit.UsageError(cmd, "--ignore-snippet is YAML by itself: leave -o out")
	case len(o.files) > 0 && len(args) == 0:
		return kit.Target{Kind: kit.Deployments}, nil
	}
	return kit.OneDeployment(cmd, args)
}

func runPlan(ctx context.Context, a *kit.App, o previewOptions, t kit.Target) error {
	v, err := preview(ctx, a, o, t)
	if err != nil {
		return err
	}
	switch {
	case o.ignoreSnippet:
		err = printSnippet(a, v)
	case o.output == outputDiff:
		err = printDiff(a, v)
	case o.output == printer.OutputJSON, o.output == printer.OutputYAML:
		err = printer.PrintValue(a.Streams.Out, o.output, v)
	default:
		_, err = fmt.Fprint(a.Streams.Out, v.Print(printer.StyleFor(a.Streams.Out), a.Name, o.fields || o.output == printer.OutputWide))
	}
	switch {
	case err != nil:
		return err
	case v.Refused():
		return kit.ErrRefused
	case v.Changes():
		return kit.ErrNo
	}
	return nil
}
