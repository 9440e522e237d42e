// SPDX-License-Identifier: Apache-2.0

package remove

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
)

// AwaitGone waits until the deployment is gone, and says what the controller waits for. When the time is over it lists the
// objects that are left.
func AwaitGone(ctx context.Context, a *kit.App, x *kit.Explorer, o DeleteOptions, t kit.Target) error {
	var last *v1alpha1.BundleDeployment
	err := a.WaitFor(ctx, t, o.Timeout, func() (kit.WaitState, error) {
		d := new(v1alpha1.BundleDeployment)
		err := x.Client.Get(ctx, client.ObjectKey{Namespace: x.Namespace, Name: t.Name}, d)
		switch {
		case kit.IsObjectNotFound(err):
			return kit.WaitState{Done: true, Text: "gone"}, nil
		case err != nil:
			return kit.WaitState{}, &kit.AccessError{Verb: "get", Resource: t.Kind.Resource, Namespace: x.Namespace, Err: err}
		}
		last = d
		return kit.WaitState{Text: LeavingText(d)}, nil
	})
	if errors.Is(err, kit.ErrNo) && last != nil {
		listLeft(a, last)
	}
	return err
}

// LeavingText is how far a removal is.
func LeavingText(d *v1alpha1.BundleDeployment) string {
	s := view.Summarize(d)
	text := "the controller has not begun yet"
	if view.RemovalBlocked(d) != "" || s.Reason == v1alpha1.ReasonRemoving || s.Reason == v1alpha1.ReasonRemovalFailed {
		text = view.OneLine(s.Message, 0)
	}
	if left := d.Status.Inventory; left != nil && left.Count > 0 {
		text = fmt.Sprintf("%s left: %s", view.Plural(int(left.Count), "object"), text)
	}
	return text
}

// listLeft says what remains, and why, as the controller sees it.
func listLeft(a *kit.App, d *v1alpha1.BundleDeployment) {
	s, out := view.Summarize(d), printer.StyleFor(a.Streams.Out)
	fmt.Fprintf(a.Streams.Out, "%s\n", view.Printable(s.Text()))
	if hint := view.HintFor(s.Reason); hint != "" {
		fmt.Fprintf(a.Streams.Out, "%s %s\n", out.Paint(printer.Bold, "What to do:"), hint)
	}
	listed, err := inventory.Decode(d.Status.Inventory)
	if err != nil {
		fmt.Fprintf(a.Streams.Out, "%s\n", view.Inline(err.Error()))
		return
	}
	var left []AffectedObject
	for _, entry := range listed.Entries {
		left = append(left, AffectedObject{Group: entry.Group, Kind: entry.Kind, Namespace: entry.Namespace, Name: entry.Name})
	}
	var text strings.Builder
	WriteAffected(&text, "Left", left)
	fmt.Fprint(a.Streams.Out, text.String())
}
