// SPDX-License-Identifier: Apache-2.0

package see

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/internal/view"
)

// sourceStatus shows a BundleSource.
func sourceStatus(ctx context.Context, a *kit.App, o printer.Output, t kit.Target) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	found, err := c.Get(ctx, t)
	if err != nil {
		return err
	}
	source, isSource := found.(*v1alpha1.BundleSource)
	if !isSource {
		return fmt.Errorf("%s is no BundleSource", t)
	}
	status := view.NewSourceStatus(source, users(ctx, a, c, source))
	if o == printer.OutputText {
		_, err = fmt.Fprint(a.Streams.Out, PrintSource(status, printer.StyleFor(a.Streams.Out), a.Now()))
	} else {
		err = printer.PrintValue(a.Streams.Out, o, status)
	}
	if err == nil && !status.UpToDate {
		return kit.ErrNo
	}
	return err
}

// users are the deployments that install from a source, as far as the user may see them.
func users(ctx context.Context, a *kit.App, c *kit.Cluster, source *v1alpha1.BundleSource) []string {
	var list v1alpha1.BundleDeploymentList
	if err := c.Client.List(ctx, &list, client.InNamespace(source.Namespace)); err != nil {
		a.Note([]string{fmt.Sprintf("which BundleDeployments install from it is not shown: %v", err)})
		return nil
	}
	var names []string
	for i := range list.Items {
		if effective.SourceName(&list.Items[i]) == source.Name {
			names = append(names, list.Items[i].Name)
		}
	}
	slices.Sort(names)
	return names
}

// PrintSource writes the state of a source for people.
func PrintSource(v view.SourceStatus, s printer.Style, now time.Time) string {
	color := map[metav1.ConditionStatus]printer.Color{metav1.ConditionTrue: printer.Green, metav1.ConditionFalse: printer.Red}[v.Ready]
	if v.Ready == metav1.ConditionUnknown {
		color = printer.Yellow
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s %s/%s: %s\n", v1alpha1.BundleSourceKind, v.Namespace, s.Paint(printer.Bold, v.Name), s.Paint(color, v.State))
	nodes := sourceLine(v.Source, s, now).Below
	if v.Problem != nil {
		nodes = append(nodes, printer.Node{Text: s.Paint(printer.Red, "✗ "+view.Inline(v.Reason)), Below: problemNodes(*v.Problem, s, v.Reason)})
	}
	users := "no BundleDeployment of the namespace"
	if len(v.UsedBy) > 0 {
		users = "BundleDeployment " + view.Inline(strings.Join(v.UsedBy, ", "))
	}
	printer.WriteNodes(&out, append(nodes, printer.Node{Text: "used by " + users}), "")
	fmt.Fprintf(&out, "%s\n", s.Paint(printer.Bold, "What happens next:"))
	for _, line := range v.Next {
		fmt.Fprintf(&out, "  %s\n", view.Printable(line))
	}
	return out.String()
}
