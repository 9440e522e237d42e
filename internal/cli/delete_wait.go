// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// awaitGone waits until the deployment is gone, and says what the controller waits for. When the time is over it lists the
// objects that are left.
func (a *app) awaitGone(ctx context.Context, x *explorer, o deleteOptions, t target) error {
	var last *v1alpha1.BundleDeployment
	err := a.waitFor(ctx, t, o.timeout, func() (waitState, error) {
		d := new(v1alpha1.BundleDeployment)
		err := x.client.Get(ctx, client.ObjectKey{Namespace: x.namespace, Name: t.name}, d)
		switch {
		case isObjectNotFound(err):
			return waitState{done: true, text: "gone"}, nil
		case err != nil:
			return waitState{}, &accessError{verb: "get", resource: t.kind.resource, namespace: x.namespace, err: err}
		}
		last = d
		return waitState{text: leavingText(d)}, nil
	})
	if errors.Is(err, errNo) && last != nil {
		a.listLeft(last)
	}
	return err
}

// leavingText is how far a removal is.
func leavingText(d *v1alpha1.BundleDeployment) string {
	s := summarize(d)
	text := "the controller has not begun yet"
	if s.reason == v1alpha1.ReasonRemoving || s.reason == v1alpha1.ReasonRemovalFailed {
		text = oneLine(s.message, 0)
	}
	if left := d.Status.Inventory; left != nil && left.Count > 0 {
		text = fmt.Sprintf("%s left: %s", plural(int(left.Count), "object"), text)
	}
	return text
}

// listLeft says what remains, and why, as the controller sees it.
func (a *app) listLeft(d *v1alpha1.BundleDeployment) {
	s, out := summarize(d), styleFor(a.streams.Out)
	fmt.Fprintf(a.streams.Out, "%s\n", printable(s.text()))
	if hint := hintFor(s.reason); hint != "" {
		fmt.Fprintf(a.streams.Out, "%s %s\n", out.paint(bold, "What to do:"), hint)
	}
	listed, err := inventory.Decode(d.Status.Inventory)
	if err != nil {
		fmt.Fprintf(a.streams.Out, "%s\n", inline(err.Error()))
		return
	}
	var left []affectedObject
	for _, entry := range listed.Entries {
		left = append(left, affectedObject{Group: entry.Group, Kind: entry.Kind, Namespace: entry.Namespace, Name: entry.Name})
	}
	var text strings.Builder
	writeAffected(&text, "Left", left)
	fmt.Fprint(a.streams.Out, text.String())
}

// canAsk tells whether the input is a terminal.
func (a *app) canAsk() bool {
	in, isFile := a.streams.In.(*os.File)
	return isFile && term.IsTerminal(int(in.Fd())) && isTerminal(a.streams.ErrOut)
}

// confirm asks a question, and accepts one answer as yes. Ctrl-C ends it.
func (a *app) confirm(ctx context.Context, question, wanted string) error {
	fmt.Fprint(a.streams.ErrOut, question)
	answers := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(a.streams.In).ReadString('\n') // an end of the input is no answer
		answers <- strings.TrimSpace(line)
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(a.streams.ErrOut)
		return context.Cause(ctx)
	case answer := <-answers:
		if answer == wanted {
			return nil
		}
	}
	fmt.Fprintln(a.streams.Out, "Nothing was deleted.")
	return errNo
}
