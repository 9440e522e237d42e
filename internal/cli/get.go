// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// getOptions are the flags of get.
type getOptions struct {
	output     output
	everywhere bool
	selector   string
}

func (a *app) getCommand() *cobra.Command {
	var o getOptions
	cmd := &cobra.Command{
		Use:     "get [deployments|sources|all] [NAME...]",
		GroupID: groupSee,
		Short:   "List BundleDeployments and BundleSources and their state",
		Long: `Lists BundleDeployments (when no kind is given), BundleSources or both, one line each: whether it is Ready, the
revision in force, the number of its objects, its age, and what its controller says. Digests are cut to 12 digits; -o
wide shows all of them, and more columns.

` + exitCodes,
		Example: a.example(`
# The deployments of the current namespace
satchel get

# Deployments and sources of all namespaces
satchel get all -A

# One source, with everything it says about itself
satchel get source podinfo -o yaml

# Names for a script
satchel get deployments -l team=payments -o name`),
		ValidArgsFunction: a.completeTargets(true),
		RunE: func(cmd *cobra.Command, args []string) error {
			targets := parseTargets(args)
			if o.everywhere && targets[0].name != "" {
				return usageError(cmd, "a name means one object of one namespace: leave -A or the name out")
			}
			return a.get(cmd.Context(), o, targets)
		},
	}
	a.outputFlag(cmd, &o.output, outputTable, outputWide, outputJSON, outputYAML, outputName)
	cmd.Flags().BoolVarP(&o.everywhere, "all-namespaces", "A", false, "List the objects of all namespaces.")
	cmd.Flags().StringVarP(&o.selector, "selector", "l", "", "List only objects whose labels match, such as -l app=shop,tier!=test.")
	return cmd
}

// group is the objects of one kind.
type group struct {
	kind    kind
	objects []object
}

func (a *app) get(ctx context.Context, o getOptions, targets []target) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	groups, err := c.collect(ctx, o, targets)
	if err != nil {
		return err
	}
	return a.printGroups(o, groups, c.namespace, len(targets) == 1 && targets[0].name != "")
}

// collect reads the targets and groups them by kind.
func (c *cluster) collect(ctx context.Context, o getOptions, targets []target) ([]group, error) {
	found := map[string][]object{}
	for _, t := range targets {
		var objects []object
		var err error
		if t.name == "" {
			objects, err = c.list(ctx, t.kind, o.everywhere, o.selector)
		} else {
			var one object
			one, err = c.get(ctx, t)
			objects = []object{one}
		}
		if err != nil {
			return nil, err
		}
		found[t.kind.name] = append(found[t.kind.name], objects...)
	}
	var groups []group
	for _, k := range kinds {
		if len(found[k.name]) > 0 {
			groups = append(groups, group{kind: k, objects: found[k.name]})
		}
	}
	return groups, nil
}

// printGroups writes what was found; single means that the user asked for one object by its name.
func (a *app) printGroups(o getOptions, groups []group, namespace string, single bool) error {
	switch o.output {
	case outputJSON, outputYAML:
		return printValue(a.streams.Out, o.output, document(groups, single))
	case outputName:
		for _, g := range groups {
			for _, item := range g.objects {
				fmt.Fprintf(a.streams.Out, "%s.%s/%s\n", strings.ToLower(g.kind.name), v1alpha1.GroupVersion.Group, item.GetName())
			}
		}
		return nil
	}
	if len(groups) == 0 {
		fmt.Fprintln(a.streams.ErrOut, nothingFound(o, namespace))
		return nil
	}
	for i, g := range groups {
		if i > 0 {
			fmt.Fprintln(a.streams.Out)
		}
		fmt.Fprint(a.streams.Out, a.objectTable(g, o, len(groups) > 1).render(styleFor(a.streams.Out)))
	}
	return nil
}

func nothingFound(o getOptions, namespace string) string {
	text := "Nothing found"
	if o.selector != "" {
		text += " with the labels " + o.selector
	}
	if o.everywhere {
		return text + " in any namespace."
	}
	return fmt.Sprintf("%s in the namespace %s; -A looks in all.", text, namespace)
}

// document is what -o json and yaml print: the object itself when one was named, else a List as kubectl has it.
func document(groups []group, single bool) any {
	items := []object{}
	for _, g := range groups {
		for _, item := range g.objects {
			item.SetManagedFields(nil)
			items = append(items, item)
		}
	}
	if single && len(items) == 1 {
		return items[0]
	}
	return map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}, "items": items}
}

// statusWidth is where the column STATUS is cut, unless the output is wide.
const statusWidth = 100

// objectTable lists objects of one kind; qualified puts the kind before the names.
func (a *app) objectTable(g group, o getOptions, qualified bool) *table {
	wide := o.output == outputWide
	t := &table{headers: headers(g.kind, wide, o.everywhere)}
	for _, item := range g.objects {
		s := summarize(item)
		name, revision, limit := item.GetName(), shortRevision(s.revision), statusWidth
		if qualified {
			name = g.kind.word + "/" + name
		}
		if wide {
			revision, limit = s.revision, 0
		}
		texts := []string{name, s.readiness(), dash(printable(revision))}
		if g.kind.name == v1alpha1.BundleDeploymentKind {
			texts = append(texts, objectCount(s.objects))
		}
		texts = append(texts, age(a.now(), item.GetCreationTimestamp()))
		if wide {
			texts = append(texts, wideColumns(item)...)
		}
		texts = append(texts, oneLine(s.text(), limit))
		if o.everywhere {
			texts = append([]string{item.GetNamespace()}, texts...)
		}
		row := t.add(texts...)
		row[readyColumn(o)].color = s.color()
	}
	return t
}

func readyColumn(o getOptions) int {
	if o.everywhere {
		return 2
	}
	return 1
}

func headers(k kind, wide, everywhere bool) []string {
	var h []string
	if everywhere {
		h = append(h, "NAMESPACE")
	}
	h = append(h, "NAME", "READY", "REVISION")
	deployment := k.name == v1alpha1.BundleDeploymentKind
	if deployment {
		h = append(h, "OBJECTS")
	}
	h = append(h, "AGE")
	switch {
	case wide && deployment:
		h = append(h, "SOURCE", "FORMAT", "INSTALLED IN", "ACCOUNT", "INTERVAL")
	case wide:
		h = append(h, "FROM", "INTERVAL")
	}
	return append(h, "STATUS")
}

// wideColumns are the further columns of -o wide.
func wideColumns(o object) []string {
	switch o := o.(type) {
	case *v1alpha1.BundleDeployment:
		return []string{o.SourceName(), dash(string(o.Status.Format)), o.InstallNamespaceOrDefault(), o.Spec.ServiceAccountName,
			short(o.Spec.IntervalOrDefault())}
	case *v1alpha1.BundleSource:
		from := make([]string, 0, len(o.Spec.Sources))
		for _, s := range o.Spec.Sources {
			from = append(from, printable(upstream(s)))
		}
		return []string{strings.Join(from, ", "), short(o.Spec.IntervalOrDefault())}
	}
	return nil
}

// objectCount is the number of applied objects, and of those in trouble.
func objectCount(counts *v1alpha1.ObjectCounts) string {
	if counts == nil {
		return "-"
	}
	text := strconv.Itoa(int(counts.Applied))
	if counts.Unhealthy > 0 {
		text += fmt.Sprintf(" (%d unhealthy)", counts.Unhealthy)
	}
	return text
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// age is how long ago something was, as kubectl writes it.
func age(now time.Time, then metav1.Time) string {
	if then.IsZero() {
		return "-"
	}
	return duration.HumanDuration(now.Sub(then.Time))
}

// short is a duration without empty parts: 10m instead of 10m0s.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
