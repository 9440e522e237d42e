// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

func (a *app) statusCommand() *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:     "status NAME",
		GroupID: groupSee,
		Short:   "Show the progress of a BundleDeployment, and where it is stuck",
		Long: `Shows the pipeline of a BundleDeployment from its source to health. The first failed step has the whole message and what
to do about it; the end says what happens next without user action.

Signs: ✓ done, … in progress, ✗ failed, · waits for the steps before it.

Exit codes:

    0    Ready
    1    not Ready
    2    failed: not found, no access
    130  interrupted by Ctrl-C`,
		Example: a.example(`
# Where is it stuck?
satchel status podinfo -n demo

# For a script: is it Ready?
satchel status podinfo >/dev/null && echo ready

# The first failing step
satchel status podinfo -o json | jq .problem`),
		ValidArgsFunction: a.completeOne(deployments),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := oneTarget(cmd, args)
			if err != nil {
				return err
			}
			if t.kind.name != deployments.name {
				return usageError(cmd, "status shows BundleDeployments; for a source: %s get source %s -o yaml", a.name, t.name)
			}
			return a.status(cmd.Context(), o, t)
		},
	}
	a.outputFlag(cmd, &o, outputText, outputJSON, outputYAML)
	return cmd
}

// oneTarget reads the arguments of a command about one object.
func oneTarget(cmd *cobra.Command, args []string) (target, error) {
	targets := parseTargets(args)
	if len(targets) != 1 || targets[0].name == "" {
		return target{}, usageError(cmd, "%s needs the name of one object, got %s", cmd.Name(), given(args))
	}
	return targets[0], nil
}

func (a *app) status(ctx context.Context, o output, t target) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	p, err := c.pipeline(ctx, t, a)
	if err != nil {
		return err
	}
	if o == outputText {
		fmt.Fprint(a.streams.Out, p.print(styleFor(a.streams.Out), a.now()))
	} else if err := printValue(a.streams.Out, o, p); err != nil {
		return err
	}
	if !p.upToDate {
		return errNo
	}
	return nil
}

// pipeline reads a deployment and its source.
func (c *cluster) pipeline(ctx context.Context, t target, a *app) (pipeline, error) {
	raw, err := c.getRaw(ctx, t)
	if err != nil {
		return pipeline{}, err
	}
	d := new(v1alpha1.BundleDeployment)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw.Object, d); err != nil {
		return pipeline{}, fmt.Errorf("reading %s %s: %w", t.kind.name, t.name, err)
	}
	if d.SourceName() == "" { // a source of Flux
		return newPipeline(d, nil, a.name, a.now()), nil
	}
	source := new(v1alpha1.BundleSource)
	err = c.client.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: d.SourceName()}, source)
	switch {
	case isObjectNotFound(err):
		source = nil
	case err != nil:
		return pipeline{}, &accessError{verb: "get", resource: sources.resource, namespace: c.namespace, err: err}
	}
	return newPipeline(d, source, a.name, a.now()), nil
}
