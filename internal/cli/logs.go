// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
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

func (a *app) logsCommand() *cobra.Command {
	var o logsOptions
	cmd := &cobra.Command{
		Use:     "logs NAME",
		GroupID: groupSee,
		Short:   "Show the logs of a BundleDeployment's Pods, or what the controllers say about it",
		Long: `Shows the logs of all containers of the Pods that belong to a BundleDeployment, each line after the names of its Pod and
container. With --follow new lines follow until Ctrl-C, those of new Pods and of containers that start again, too.

With --controller it shows instead the lines of Satchel's controllers about the deployment and its source, where the
controllers run as Pods. What could steer the terminal is replaced in every line, and very long lines are cut.

` + exitCodes,
		Example: a.example(`
# The last lines of all containers
satchel logs podinfo -n demo

# One container, as it goes on
satchel logs podinfo -c app --tail 20 --follow

# Why did it crash?
satchel logs podinfo --previous

# What do the controllers say about it?
satchel logs podinfo --controller --since 1h`),
		ValidArgsFunction: a.completeOne(deployments),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := oneDeployment(cmd, args)
			if err == nil {
				err = o.check(cmd)
			}
			if err != nil {
				return err
			}
			return a.logs(cmd.Context(), o, t)
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
	flags.StringVar(&o.systemNamespace, "system-namespace", systemNamespace, "Where the controllers are.")
	a.completeFlag(cmd, "system-namespace", a.completeNamespaces)
	return cmd
}

func (o logsOptions) check(cmd *cobra.Command) error {
	switch {
	case o.tail < -1:
		return usageError(cmd, "--tail is a number of lines, or -1 for all")
	case o.since < 0:
		return usageError(cmd, "--since is how old lines may be, such as 5m")
	case o.follow && o.previous:
		return usageError(cmd, "what ended before does not go on: leave --follow or --previous out")
	case o.controller && o.container != "":
		return usageError(cmd, "the controllers have one container each: leave -c or --controller out")
	}
	return nil
}

// logReader reads logs of Pods with the user's permissions.
type logReader struct {
	*explorer
	*lineWriter

	pods    corev1client.PodsGetter
	options logsOptions
	wanted  func(line string) bool // nil for all lines
}

func (a *app) logs(ctx context.Context, o logsOptions, t target) error {
	x, err := a.explore()
	if err != nil {
		return err
	}
	pods, err := corev1client.NewForConfig(x.config)
	if err != nil {
		return fmt.Errorf("preparing the connection to the cluster: %w", err)
	}
	r := &logReader{explorer: x, pods: pods, options: o, lineWriter: &lineWriter{out: a.streams.Out, style: styleFor(a.streams.Out), prefix: o.prefix}}
	find := func(ctx context.Context) ([]logSource, error) { return r.podsOf(ctx, t) }
	if o.controller {
		d, err := x.deployment(ctx, t)
		if err != nil {
			return err
		}
		r.wanted, find = aboutDeployment(d), r.controllers
	}
	found, err := find(ctx)
	if err != nil {
		return err
	}
	if len(found) == 0 && (o.controller || !o.follow) {
		a.noteOmitted(x.omitted.list())
		return a.noLogs(o, t)
	}
	if o.follow {
		return a.followLogs(ctx, r, find, found)
	}
	for _, s := range found {
		r.read(ctx, s, r.request(s))
	}
	a.noteOmitted(x.omitted.list())
	return errors.Join(context.Cause(ctx), r.failure())
}

// noLogs says that there is nothing to read.
func (a *app) noLogs(o logsOptions, t target) error {
	switch {
	case o.controller:
		return fmt.Errorf("no controllers run as Pods in the namespace %q, as far as you may see: name another with --system-namespace", o.systemNamespace)
	case o.container != "":
		return fmt.Errorf("no Pod of %s has a container %q", t.name, o.container)
	}
	fmt.Fprintf(a.streams.ErrOut, "%s has no Pods; tree shows what it has.\n", inline(t.name))
	return nil
}

// request says which lines of a container are asked for.
func (r *logReader) request(s logSource) *corev1.PodLogOptions {
	o := &corev1.PodLogOptions{Container: s.name, Previous: r.options.previous, Timestamps: r.options.timestamps, Follow: r.options.follow}
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
		o.SinceSeconds, o.TailLines, o.SinceTime = nil, nil, new(metav1.NewTime(s.since))
	}
	return o
}

// sifted is how many of the last lines of a controller are looked through.
const sifted = 20_000
