// SPDX-License-Identifier: Apache-2.0

package list

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
)

// change is an object that changed.
type change struct {
	kind    kit.Kind
	object  view.Object
	deleted bool
}

// follow writes a line for each change after what was listed, until ctx ends.
func follow(ctx context.Context, a *kit.App, c *kit.Cluster, o Options, targets []kit.Target, listed []kit.Group) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	kinds := kindsOf(targets)
	tables := map[string]*printer.Table{}
	seen := map[types.UID]string{}
	changes := make(chan change)
	for _, k := range kinds {
		g := kit.Group{Kind: k}
		for _, known := range listed {
			if known.Kind.Name == k.Name {
				g = known
			}
		}
		for _, item := range g.Objects {
			seen[item.GetUID()] = item.GetResourceVersion()
		}
		tables[k.Name] = objectTable(a, g, o, len(kinds) > 1)
		go func() { cancel(watchKind(ctx, c, o, k, targets, changes)) }()
	}
	style := printer.StyleFor(a.Streams.Out)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case next := <-changes:
			uid := next.object.GetUID()
			if seen[uid] == next.object.GetResourceVersion() && !next.deleted || !o.selects(next.object) {
				continue
			}
			seen[uid] = next.object.GetResourceVersion()
			if next.deleted {
				delete(seen, uid)
			}
			if o.Output == Format(printer.OutputName) {
				fmt.Fprintln(a.Streams.Out, qualifiedName(next.kind, next.object.GetName()))
				continue
			}
			row := objectRow(a, next.kind, next.object, o, len(kinds) > 1)
			if next.deleted {
				row[len(row)-1].Text = "deleted"
			}
			fmt.Fprint(a.Streams.Out, tables[next.kind.Name].Line(style, row))
		}
	}
}

// watchKind passes on what happens to the objects of a kind, until ctx ends or the user may not watch them. A watch that the
// server ends is begun again; what was seen before is sorted out by the receiver.
func watchKind(ctx context.Context, c *kit.Cluster, o Options, k kit.Kind, targets []kit.Target, changes chan<- change) error {
	options := client.ListOptions{Namespace: c.Namespace}
	if o.Everywhere {
		options.Namespace = ""
	}
	if o.Selector != "" {
		selector, err := labels.Parse(o.Selector)
		if err != nil {
			return fmt.Errorf("reading -l: %w", err)
		}
		options.LabelSelector = selector
	}
	names := map[string]bool{}
	for _, t := range targets {
		if t.Kind.Name == k.Name && t.Name != "" {
			names[t.Name] = true
		}
	}
	if len(names) == 1 {
		for name := range names {
			options.FieldSelector = fields.OneTermEqualSelector("metadata.name", name)
		}
	}
	for {
		w, err := c.Client.Watch(ctx, k.List(), &options)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
			return &kit.AccessError{Verb: "watch", Resource: k.Resource, Namespace: options.Namespace, Err: err}
		case err == nil:
			passOn(ctx, w, k, names, changes)
		}
		if err := kit.Pause(ctx, kit.WatchPause); err != nil {
			return err
		}
	}
}

// passOn passes on the events of one watch, until it ends.
func passOn(ctx context.Context, w watch.Interface, k kit.Kind, names map[string]bool, changes chan<- change) {
	defer w.Stop()
	for event := range w.ResultChan() {
		found, isObject := event.Object.(view.Object)
		if !isObject || len(names) > 0 && !names[found.GetName()] {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case changes <- change{kind: k, object: found, deleted: event.Type == watch.Deleted}:
		}
	}
}
