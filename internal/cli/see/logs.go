// SPDX-License-Identifier: Apache-2.0

package see

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
)

// logsOptions are the flags of logs.
type logsOptions struct {
	container          string
	follow, previous   bool
	timestamps, prefix bool
	tail               int64
	since              time.Duration
	controller         bool
	systemNamespace    string
}

// LogsCommand returns the command logs.
func LogsCommand(a *kit.App) *cobra.Command {
	var o logsOptions
	cmd := &cobra.Command{
		Use:     "logs NAME",
		GroupID: kit.GroupSee,
		Short:   "Show the logs of a BundleDeployment's Pods, or what the controllers say about it",
		Long: `Shows the logs of all containers of the Pods that belong to a BundleDeployment, each line after the names of its Pod and
container. With --follow new lines follow until Ctrl-C, those of new Pods and of containers that start again, too.

With --controller it shows instead the lines of Satchel's controllers about the deployment and its source, where the
controllers run as Pods. What could steer the terminal is replaced in every line, and very long lines are cut.

` + kit.ExitCodes,
		Example: a.Example(`
# The last lines of all containers
satchel logs podinfo -n demo

# One container, as it goes on
satchel logs podinfo -c app --tail 20 --follow

# Why did it crash?
satchel logs podinfo --previous

# What do the controllers say about it?
satchel logs podinfo --controller --since 1h`),
		ValidArgsFunction: a.CompleteOne(kit.Deployments),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := kit.OneDeployment(cmd, args)
			if err == nil {
				err = o.check(cmd)
			}
			if err != nil {
				return err
			}
			return logs(cmd.Context(), a, o, t)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.container, "container", "c", "", "Show containers of this name only.")
	flags.BoolVarP(&o.follow, "follow", "f", false, "Go on with new lines, until Ctrl-C.")
	flags.BoolVarP(&o.previous, "previous", "p", false, "Show what containers wrote before they were started again.")
	flags.BoolVar(&o.timestamps, "timestamps", false, "Begin each line with its time.")
	flags.BoolVar(&o.prefix, "prefix", true, "Begin each line with the names of its Pod and container.")
	flags.Int64Var(&o.tail, "tail", 100, "Begin with so many of the last lines of each container; -1 shows all.")
	flags.DurationVar(&o.since, "since", 0, "Show lines that are not older than this, such as 5m.")
	flags.BoolVar(&o.controller, "controller", false, "Show what the controllers say about the deployment.")
	flags.StringVar(&o.systemNamespace, "system-namespace", kit.SystemNamespace, "Where the controllers are.")
	a.CompleteFlag(cmd, "system-namespace", a.CompleteNamespaces)
	return cmd
}

func (o logsOptions) check(cmd *cobra.Command) error {
	switch {
	case o.tail < -1:
		return kit.UsageError(cmd, "--tail is a number of lines, or -1 for all")
	case o.since < 0:
		return kit.UsageError(cmd, "--since is how old lines may be, such as 5m")
	case o.follow && o.previous:
		return kit.UsageError(cmd, "what ended before does not go on: leave --follow or --previous out")
	case o.controller && o.container != "":
		return kit.UsageError(cmd, "the controllers have one container each: leave -c or --controller out")
	}
	return nil
}

// logReader reads logs of Pods with the user's permissions.
type logReader struct {
	*kit.Explorer
	*LineWriter

	pods    corev1client.PodsGetter
	options logsOptions
	wanted  func(line string) bool // nil for all lines
}

func logs(ctx context.Context, a *kit.App, o logsOptions, t kit.Target) error {
	x, err := a.Explore()
	if err != nil {
		return err
	}
	pods, err := corev1client.NewForConfig(x.Config)
	if err != nil {
		return fmt.Errorf("preparing the connection to the cluster: %w", err)
	}
	r := &logReader{Explorer: x, pods: pods, options: o, LineWriter: &LineWriter{Out: a.Streams.Out, style: printer.StyleFor(a.Streams.Out), Prefix: o.prefix}}
	find := func(ctx context.Context) ([]LogSource, error) { return r.podsOf(ctx, t) }
	if o.controller {
		d, err := x.Deployment(ctx, t)
		if err != nil {
			return err
		}
		r.wanted, find = AboutDeployment(d), r.controllers
	}
	found, err := find(ctx)
	if err != nil {
		return err
	}
	if len(found) == 0 && (o.controller || !o.follow) {
		a.NoteOmitted(x.Omitted.List())
		return noLogs(a, o, t)
	}
	if o.follow {
		return followLogs(ctx, a, r, find, found)
	}
	for _, s := range found {
		r.read(ctx, s, r.request(s))
	}
	a.NoteOmitted(x.Omitted.List())
	return errors.Join(context.Cause(ctx), r.failure())
}

// noLogs says that there is nothing to read.
func noLogs(a *kit.App, o logsOptions, t kit.Target) error {
	switch {
	case o.controller:
		return fmt.Errorf("no controllers run as Pods in the namespace %q, as far as you may see: name another with --system-namespace", o.systemNamespace)
	case o.container != "":
		return fmt.Errorf("no Pod of %s has a container %q", t.Name, o.container)
	}
	fmt.Fprintf(a.Streams.ErrOut, "%s has no Pods; tree shows what it has.\n", view.Inline(t.Name))
	return nil
}

// request says which lines of a container are asked for.
func (r *logReader) request(s LogSource) *corev1.PodLogOptions {
	o := &corev1.PodLogOptions{Container: s.Name, Previous: r.options.previous, Timestamps: r.options.timestamps, Follow: r.options.follow}
	if r.options.tail >= 0 {
		o.TailLines = &r.options.tail
		if r.wanted != nil {
			o.TailLines = new(max(r.options.tail, sifted)) // most of them are about others
		}
	}
	if r.options.since > 0 {
		o.SinceSeconds = new(int64(max(r.options.since, time.Second) / time.Second))
	}
	if !s.since.IsZero() {
		o.SinceSeconds = nil
		o.TailLines = nil
		o.SinceTime = new(metav1.NewTime(s.since))
	}
	return o
}

// sifted is how many of the last lines of a controller are looked through.
const sifted = 20_000
