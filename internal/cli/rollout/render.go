// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/rollout/revision"
	"github.com/satchel-dev/satchel/internal/view"
)

// renderOptions are the flags of rollout render.
type renderOptions struct {
	choice
	folder string
}

func renderCommand(a *kit.App) *cobra.Command {
	var o renderOptions
	cmd := &cobra.Command{
		Use:   "render NAME",
		Short: "Write the BundleDeployment of each cluster",
		Long: `Writes the BundleDeployments that a revision of a BundleRollout results in, one file for each cluster, as the controller
creates them but for the annotations of a start and the names of copies of inputs that only one cluster has; and the
immutable BundleSource that they use, where the revision is stored already. Nothing is changed in the cluster. Files of
other names in the folder stay.

Exit codes:

    0    written
    2    failed: not found, no access, a cluster for which nothing can be rendered
    130  interrupted by Ctrl-C`,
		Example: a.Example(`
# Compare the BundleDeployments before and after a change
satchel rollout render cert-manager -n fleet -o before
satchel rollout render cert-manager -n fleet -f rollout.yaml -o after
diff -r before after`),
		ValidArgsFunction: a.CompleteOne(kit.Rollouts),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := kit.OneRollout(cmd, args)
			switch {
			case err != nil:
				return err
			case o.folder == "":
				return kit.UsageError(cmd, "rollout render needs a folder: add -o DIR")
			}
			return render(cmd.Context(), a, o, t)
		},
	}
	o.flags(a, cmd)
	cmd.Flags().StringVarP(&o.folder, "output", "o", "", "Folder to write to; it is created where it does not exist.")
	return cmd
}

func render(ctx context.Context, a *kit.App, o renderOptions, t kit.Target) error {
	r, err := newReader(a)
	if err != nil {
		return err
	}
	run, err := r.candidate(ctx, a, o.choice, t)
	if err != nil {
		return err
	}
	if run.name == "" {
		a.Note([]string{"the revision has no name yet, because copies of ConfigMaps or Secrets count in it: the source is written as " + revision.SourceName(run.object.Name, nextRevision.Name)})
		run.name = nextRevision.Name
	}
	clusters, err := r.clusters(ctx, run.object)
	if err != nil {
		return err
	}
	manifests, err := manifestsOf(run, clusters)
	if err != nil {
		return err
	}
	if err := writeAll(o.folder, manifests); err != nil {
		return err
	}
	fmt.Fprintf(a.Streams.Out, "%s: %s written to %s\n", t, view.Plural(len(manifests), "manifest"), view.Inline(o.folder))
	return nil
}

// manifest is a file, and the object in it.
type manifest struct {
	file   string
	object map[string]any
}

// manifestsOf are the source, if it is known, and the BundleDeployments.
func manifestsOf(run *candidate, clusters []revision.Cluster) ([]manifest, error) {
	renderer, err := run.renderer()
	if err != nil {
		return nil, err
	}
	all := make([]manifest, 0, len(clusters)+1)
	if len(run.data.Sources) > 0 {
		spec := v1alpha1.BundleSourceSpec{Sources: run.data.Sources, Ignore: run.data.Ignore, Immutable: true}
		all = append(all, manifestOf(run, v1alpha1.BundleSourceKind, revision.SourceName(run.object.Name, run.name), map[string]string{v1alpha1.RolloutLabel: run.object.Name}, nil, spec))
	}
	var problems []error
	for i := range clusters {
		child, err := renderer.Render(&clusters[i])
		if err != nil {
			problems = append(problems, fmt.Errorf("cluster %s: %w", clusters[i].Name, err))
			continue
		}
		all = append(all, manifestOf(run, v1alpha1.BundleDeploymentKind, child.Name, child.Labels, child.Annotations, child.Spec))
	}
	return all, errors.Join(problems...)
}

func manifestOf(run *candidate, kind, name string, labels, annotations map[string]string, spec any) manifest {
	metadata := map[string]any{"name": name, "namespace": run.object.Namespace, "labels": labels}
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	object := map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": kind, "metadata": metadata, "spec": spec}
	return manifest{file: name + ".yaml", object: object}
}

// writeAll writes files into a folder.
func writeAll(folder string, all []manifest) error {
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // manifests are for other users as well, as git writes them
		return fmt.Errorf("creating the folder %s: %w", folder, kit.WithoutPath(err))
	}
	for _, one := range all {
		text, err := printer.YamlText(one.object)
		if err != nil {
			return fmt.Errorf("encoding %s: %w", one.file, err)
		}
		file := filepath.Join(folder, one.file)
		if err := os.WriteFile(file, text, 0o644); err != nil { //nolint:gosec // as above
			return fmt.Errorf("writing %s: %w", file, kit.WithoutPath(err))
		}
	}
	return nil
}
